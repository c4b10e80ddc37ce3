"""Measures two things in turns, so that what disturbs one disturbs the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

__all__ = ["Result", "in_turns", "rounds"]


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        case, catalog: what was measured, where.
        ours, reference: medians, in ``unit``.
        factor, allowance: the budget: ``ours <= factor * reference + allowance``.
        unit: ``s`` or ``MB``.
    """

    case: str
    catalog: str
    ours: float
    reference: float
    factor: float
    allowance: float = 0.0
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Ours by reference."""
        return self.ours / self.reference

    @property
    def within(self) -> bool:
        """True when the budget is kept."""
        return self.ours <= self.factor * self.reference + self.allowance

    @property
    def budget(self) -> str:
        """The budget as text."""
        extra = f" + {self.allowance:.2f} {self.unit}" if self.allowance else ""
        return f"{self.factor:g}x{extra}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {**asdict(self), "ratio": round(self.ratio, 3), "within": self.within}


def in_turns(
    runs: int, ours: Callable[[], object], reference: Callable[[], object], *, warm: bool = False
) -> tuple[float, float]:
    """Medians of ``runs`` timings of each, in seconds; one round before, to warm up, is not counted.

    The order changes from round to round, so that neither always runs on what the other left in the caches.

    Args:
        runs: how many rounds count.
        ours: what is timed.
        reference: what it is timed beside.
        warm: True where both have run already, so that there is no round before.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(int(warm), runs + 1):
        pair = [(0, ours), (1, reference)]
        for which, call in pair if number % 2 else pair[::-1]:
            start = time.perf_counter()
            call()
            if number:
                times[which].append(time.perf_counter() - start)
    return median(times[0]), median(times[1])


def rounds(
    runs: int, works: Mapping[str, Callable[[int], object]], between: Callable[[str], object]
) -> dict[str, float]:
    """Medians of ``runs`` timings of each work, in seconds; round 0, to warm up, is not counted.

    Args:
        runs: how many rounds count.
        works: name -> what is timed, given the number of the round.
        between: run after each work, not timed.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(runs + 1):
        order = list(works) if number % 2 else list(works)[::-1]
        for name in order:
            start = time.perf_counter()
            works[name](number)
            if number:
                times[name].append(time.perf_counter() - start)
            between(name)
    return {name: median(found) for name, found in times.items()}
