"""The number of histories of the conformance suite that tests play."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from trinity_conformance import BUDGETS, Budget, Share
from trinity_conformance.shrink.histories import ShrinkBudget


def played(budget: Budget, **most: int) -> Budget:
    """Return a budget that plays a fixed number of histories of some kinds, however long they take."""
    shares = {kind: Share(math.inf, most[kind]) if kind in most else share for kind, share in budget.shares.items()}
    return replace(budget, shares=shares)


BUDGET: Final = replace(
    played(BUDGETS["smoke"], histories=3, programs=2, engines=2, faults=2, races=12),
    name="test",
    shrink=ShrinkBudget(math.inf, 40),
)
QUICK: Final = replace(
    played(BUDGET, histories=1, programs=1, engines=1, faults=1), refusals=5, concurrency=False, longer=1
)
"""A part of the suite for the short tier, from seed 1 on, whose histories are not repeated (L2)."""
