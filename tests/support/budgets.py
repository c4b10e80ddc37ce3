"""How much of the conformance suite the tests play."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from trinity_conformance import Budget
from trinity_conformance.shrink.histories import ShrinkBudget

__all__ = ["BUDGET", "QUICK"]

BUDGET: Final = Budget(
    "test",
    seconds=math.inf,
    histories=3,
    failures=1,
    shrink=ShrinkBudget(seconds=40, tries=40),
    program_seconds=math.inf,
    programs=2,
    engine_seconds=math.inf,
    engine_histories=2,
    refusal_seconds=math.inf,
    fault_seconds=math.inf,
    fault_histories=2,
)
QUICK: Final = replace(
    BUDGET, histories=1, programs=1, engine_histories=1, refusals=5, concurrency=False, fault_histories=1, longer=1
)
"""A part of it, for the short tier; from seed 1 on, whose histories are not played a second time (L2)."""
