"""Budgets: how much work a run may do, and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from trinity_conformance.shrink.histories import ShrinkBudget

Kind: TypeAlias = Literal["histories", "programs", "engines", "faults", "races"]
"""A kind of drawn work: histories of tables that deduplicate, programs of statements, histories of the other merge
engines, histories in which something goes wrong, races of writers in several processes."""


@dataclass(frozen=True)
class Share:
    """Limits of one kind of drawn work.

    Attributes:
        seconds: nothing begins after this time, once ``least`` have been played.
        most: maximum number that is played, even if there is time for more.
        least: minimum number that is played, whatever the time.
    """

    seconds: float
    most: int
    least: int = 1


@dataclass(frozen=True)
class Budget:
    """Limits of the work of a run.

    Attributes:
        name: its name on the command line.
        duration: how long a run takes, in words; without the start of Spark and the shrinking of failures.
        shares: limits of each kind of drawn work.
        failures: failing histories after which a kind of work stops.
        shrink: limits of the work on shrinking one failure.
        refusals: maximum number of bad inputs, and of bad options; None for all.
        concurrency: whether the cases of the checks ``commits`` and ``concurrency`` are played.
        longer: factor of ``most`` as long as a check has seen too little.
        patience: factor of ``seconds`` as long as a check has seen too little, for a busy machine.
        decides: False where it is too small to say that an adapter conforms.
        minutes: after a first round, drawn work is repeated from fresh seeds until this many minutes have passed since
            the beginning; 0 for one round.
    """

    name: str
    duration: str
    shares: Mapping[Kind, Share]
    failures: int = 2
    shrink: ShrinkBudget = field(default_factory=ShrinkBudget)
    refusals: int | None = None
    concurrency: bool = True
    longer: int = 3
    patience: int = 10
    decides: bool = True
    minutes: float = 0

    @property
    def seconds(self) -> float:
        """Maximum seconds of a run on a machine that is not busy, without the checks that are written by hand."""
        return 60 * self.minutes or sum(share.seconds for share in self.shares.values())

    def for_one_check(self) -> Budget:
        """Return the budget of a single check, which has all of the seconds."""
        shares = {kind: replace(share, seconds=self.seconds) for kind, share in self.shares.items()}
        return self if self.minutes else replace(self, shares=shares)


SEEDS_OF_A_ROUND: Final = 1000
"""The distance between the first seeds of two rounds; no round draws as many histories of a kind."""
_SMOKE: Final[Mapping[Kind, Share]] = {
    "histories": Share(300, 12),
    "programs": Share(200, 6),
    "engines": Share(400, 8),
    "faults": Share(200, 10),
    "races": Share(200, 12),
}
_ANY: Final = 100_000
"""A number that no time limit allows."""


def _larger(limits: Mapping[Kind, tuple[float, int]]) -> Mapping[Kind, Share]:
    """Return shares that play at least what smoke plays, of (seconds, most)."""
    return {kind: Share(*limits[kind], least=share.most) for kind, share in _SMOKE.items()}


BUDGETS: Final[Mapping[str, Budget]] = {
    b.name: b
    for b in (
        Budget(
            "quick",
            "ten seconds",
            {
                "histories": Share(3, 3), "programs": Share(2, 2), "engines": Share(2, 2), "faults": Share(2, 3),
                "races": Share(2, 1),
            },
            failures=1,
            shrink=ShrinkBudget(10, 20),
            refusals=8,
            longer=1,
            patience=1,
            decides=False,
        ),
        Budget("smoke", "two minutes", _SMOKE, failures=1, shrink=ShrinkBudget(30, 40)),
        Budget(
            "standard",
            "ten minutes",
            _larger({
                "histories": (300, 300), "programs": (150, 200), "engines": (150, 200), "faults": (60, 200),
                "races": (30, 200),
            }),
            failures=3,
            shrink=ShrinkBudget(90, 150),
        ),
        Budget(
            "deep",
            "an hour",
            _larger({
                "histories": (1400, _ANY), "programs": (1000, _ANY), "engines": (1100, _ANY), "faults": (400, _ANY),
                "races": (300, _ANY),
            }),
            failures=5,
            shrink=ShrinkBudget(300, 500),
        ),
        Budget(
            "soak",
            "as long as you say",
            _larger({kind: (math.inf, share.most) for kind, share in _SMOKE.items()}),
            failures=_ANY,
            shrink=ShrinkBudget(90, 150),
            minutes=60,
        ),
    )
}  # fmt: skip
"""Name -> budget. quick finds obvious faults in seconds, and never says that an adapter conforms. smoke is a fixed
number of histories, enough to see what every check is about; its seconds only limit a machine that is many times
slower. The larger ones play as many as there is time for, on a busy machine as many as every check needs, and on any
machine at least what smoke plays. soak plays smoke again and again from fresh seeds, and goes on after a finding."""
