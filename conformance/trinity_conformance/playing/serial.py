"""Search for a serial order of the actions of a race that explains the result of each, and the rows at the end (L7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.race_actions import RACE_ACTIONS, World
from trinity_conformance.playing.race_run import RACES_CHECK, Taken

_LOST: Final = "TRANSACTION_CONFLICT"


def judge(taken: Sequence[Taken], first: World, last: World) -> None:
    """Check that a serial order explains a race: an action that ended before another began precedes it.

    Args:
        taken: the actions.
        first: the table before it.
        last: the table after it.

    Raises:
        NonConformance: no order does, or an action failed without any other one that could have caused it.
    """
    for one in taken:
        if one.failed and (one.result[0] != _LOST or not any(one.overlaps(o) for o in taken if o is not one)):
            raise NonConformance(RACES_CHECK, f"an action failed: {_listed(taken)}")
    done = [one for one in taken if not one.failed]
    if not _explained(done, first, last):
        raise NonConformance(
            RACES_CHECK, f"no serial order explains the results, and {last.words} afterwards: {_listed(taken)}"
        )


def _explained(rest: Sequence[Taken], world: World, last: World) -> bool:
    """Return whether the actions of ``rest``, in some order, lead from ``world`` to ``last``."""
    if not rest:
        return world.rows == last.rows and world.columns == last.columns
    for one in rest:
        others = [other for other in rest if other is not one]
        if any(other.precedes(one) for other in others):
            continue
        after, result = RACE_ACTIONS[one.name].effect(world, one.mark)
        if result == one.result and _explained(others, after, last):
            return True
    return False


def _listed(taken: Sequence[Taken]) -> str:
    return "\n".join(["", *(f"  {one.words}" for one in taken)])
