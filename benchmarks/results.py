"""A result: the figure of one case of one table, and its reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.timing import Timings


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        case, catalog: the measured case, and its catalog.
        ours, reference: the figures in ``unit``.
        factor, allowance: the budget of medians: ``ours <= factor * reference + allowance``.
        unit: ``s`` or ``MB``.
        peers: all figures of the same rounds, by name; the reference is the best one that counts.
        found: merged rows at the end, the same for all; None where no rows are read.
    """

    case: str
    catalog: str
    ours: Timings
    reference: Timings
    factor: float
    allowance: float = 0.0
    unit: str = "s"
    peers: Mapping[str, Timings] = field(default_factory=dict)
    found: int | None = None

    @property
    def ratio(self) -> float:
        """Ours by reference."""
        return self.ours.median / self.reference.median

    @property
    def within(self) -> bool:
        """True when the budget is kept."""
        return self.ours.median <= self.factor * self.reference.median + self.allowance

    @property
    def budget(self) -> str:
        """The budget as text."""
        extra = f" + {self.allowance:.2f} {self.unit}" if self.allowance else ""
        return f"{self.factor:g}x{extra}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a value for JSON."""
        return {
            "case": self.case,
            "catalog": self.catalog,
            "ours": self.ours.median,
            "ours_range": [self.ours.least, self.ours.most],
            "reference": self.reference.median,
            "reference_range": [self.reference.least, self.reference.most],
            "factor": self.factor,
            "allowance": self.allowance,
            "unit": self.unit,
            "ratio": round(self.ratio, 3),
            "within": self.within,
            "peers": {n: {"median": t.median, "range": [t.least, t.most]} for n, t in self.peers.items()},
            "found": self.found,
        }


def against_best(
    case: str, catalog: str, ours: Timings, peers: Mapping[str, Timings], factor: float, found: int | None = None
) -> Result:
    """Return the result compared with the fastest of the peers."""
    best = min(peers.values(), key=lambda times: times.median)
    return Result(case, catalog, ours, best, factor, peers=peers, found=found)
