"""Self-test: generated histories must find every mutant of the model, and nothing wrong with the model itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.model.tables import Model
from trinity_conformance.mutants.effects import DML_MUTANTS
from trinity_conformance.mutants.engines import ENGINE_MUTANTS
from trinity_conformance.mutants.feeds import FEED_MUTANTS
from trinity_conformance.mutants.functions import FUNCTION_MUTANTS
from trinity_conformance.mutants.maintenance import MAINTENANCE_MUTANTS
from trinity_conformance.mutants.tables import MUTANTS, ModelSubject
from trinity_conformance.playing.runner import failure_of, play
from trinity_conformance.playing.traces import History
from trinity_conformance.shrink.histories import ShrinkBudget, shrink


@dataclass(frozen=True)
class Kill:
    """The check and the history that found one mutant.

    Attributes:
        mutant: its name.
        fault: what is wrong with it, and the rule.
        number: number of the history that found it; -1 if none did.
        check: id of the check that failed.
        steps: steps of the shrunk history.
        rows: row versions of the shrunk history.
    """

    mutant: str
    fault: str
    number: int = -1
    check: str = ""
    steps: int = 0
    rows: int = 0

    @property
    def killed(self) -> bool:
        """True when a history found it."""
        return self.number >= 0


def self_test(at_most: int = 60, seed: int = 0, mutants: Collection[str] | None = None) -> list[Kill]:
    """Play the same histories on every mutant.

    Args:
        at_most: histories that each mutant may survive.
        seed: number of the first history.
        mutants: names of mutants; all by default.

    Raises:
        NonConformance: the model disagreed with itself.
    """
    kinds: tuple[tuple[Mapping[str, type[Model]], Callable[[int], History]], ...] = (
        ({**MUTANTS, **MAINTENANCE_MUTANTS, **FEED_MUTANTS}, lambda n: sample(histories(rota(n)), n)),
        (DML_MUTANTS, lambda n: sample(programs(dml_rota(n)), n)),
        ({**ENGINE_MUTANTS, **FUNCTION_MUTANTS}, lambda n: sample(engine_histories(engine_rota(n)), n)),
    )
    found: list[Kill] = []
    for known, draw in kinds:
        chosen = {name: mutant for name, mutant in known.items() if mutants is None or name in mutants}
        generated = [draw(n) for n in range(seed, seed + at_most)] if chosen else []
        for history in generated:
            play(ModelSubject(), history)
        found += [_hunt(name, mutant, generated) for name, mutant in chosen.items()]
    return found


def _hunt(name: str, mutant: type[Model], generated: list[History]) -> Kill:
    fault = (mutant.__doc__ or "").strip()
    subject = ModelSubject(mutant)
    for number, history in enumerate(generated):
        if (failure := failure_of(subject, history, every_step=False)) is not None:
            small = shrink(failure, partial(failure_of, subject), ShrinkBudget(10, 300))
            assert small.history is not None
            return Kill(name, fault, number, small.check, len(small.history.steps), small.history.rows)
    return Kill(name, fault)
