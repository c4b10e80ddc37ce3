"""Budgets: how much work a run may do, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity_conformance.shrink.histories import ShrinkBudget

__all__ = ["BUDGETS", "Budget"]


@dataclass(frozen=True)
class Budget:
    """Limits of the work of a run.

    Attributes:
        name: its name on the command line.
        seconds: no history except the first begins after this time; failures found by then are still shrunk.
        histories: no more histories than this, even if there is time.
        failures: failing histories after which a run stops.
        shrink: limits of the work on shrinking one failure.
        program_seconds: as ``seconds``, for programs of statements.
        programs: no more programs than this.
        engine_seconds: as ``seconds``, for histories of merge engines.
        engine_histories: no more of them than this.
        refusal_seconds: seconds for bad input, and then for bad options, when histories have used up the others.
        refusals: no more bad inputs, and no more bad options, than this.
        fault_seconds: as ``seconds``, for histories in which something goes wrong.
        fault_histories: no more of them than this.
        race_seconds: as ``seconds``, for writers in several processes.
        races: no more races of them than this.
        longer: as long as a check has seen too little, so many times the histories.
        patience: as long as a check has seen too little, so many times the seconds, for a busy machine.
        concurrency: whether what commits keep, and commits within commits, are tried, all of it or nothing.
    """

    name: str
    seconds: float
    histories: int
    failures: int = 2
    shrink: ShrinkBudget = field(default_factory=ShrinkBudget)
    program_seconds: float = 20
    programs: int = 4
    engine_seconds: float = 30
    engine_histories: int = 5
    refusal_seconds: float = 15
    refusals: int | None = None
    concurrency: bool = True
    fault_seconds: float = 20
    fault_histories: int = 100_000
    race_seconds: float = 30
    races: int = 200
    longer: int = 3
    patience: int = 10

    @property
    def seconds_in_all(self) -> float:
        """Seconds after which only the handwritten checks begin."""
        return self.seconds + self.program_seconds + self.engine_seconds


BUDGETS: Final[Mapping[str, Budget]] = {
    b.name: b
    for b in (
        Budget("smoke", 300, 12, 1, ShrinkBudget(30, 40), 200, 6, 400, 8, 120, None, True, 200, 10, 200, 12),
        Budget(
            "standard",
            300,
            300,
            3,
            ShrinkBudget(90, 150),
            150,
            200,
            150,
            200,
            60,
            fault_seconds=60,
            fault_histories=200,
        ),
        Budget(
            name="deep",
            seconds=1400,
            histories=100_000,
            failures=5,
            shrink=ShrinkBudget(300, 500),
            program_seconds=1000,
            programs=100_000,
            engine_seconds=1100,
            engine_histories=100_000,
            refusal_seconds=120,
            fault_seconds=400,
            race_seconds=300,
            races=100_000,
        ),
    )
}
"""smoke takes about two minutes, standard ten, deep an hour, without the start of Spark and the shrinking of failures.

smoke is a fixed number of histories, enough to see what every check is about; its seconds only limit a machine that is
many times slower. The others play as many as there is time for, and on a busy machine as many as every check needs.
"""
