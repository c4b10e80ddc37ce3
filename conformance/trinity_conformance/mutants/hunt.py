"""Hunts faults of adapters: without Spark each must be found by something that a smoke run plays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from trinity_conformance.generate.executors import without_spark
from trinity_conformance.generate.faults import faulted
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.generate.races import races
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS, AdapterMutant
from trinity_conformance.playing.commits import COMMITS, try_commits
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.meanwhile import MEANWHILE, try_meanwhile
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.race_play import Races
from trinity_conformance.playing.refusals import refuse_all
from trinity_conformance.playing.runner import failure_of
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import History, Trace
from trinity_conformance.shrink.histories import ShrinkBudget, shrink
from trinity_conformance.shrink.races import shrink_race

_HISTORIES: Final = 12
_PROGRAMS: Final = 6
_FAULTS: Final = 8
_RACES: Final = 12
_SHRINK: Final = ShrinkBudget(60, 120)


@dataclass(frozen=True)
class Finds:
    """The finding of one check about a fault.

    Attributes:
        check: id of the check.
        message: what differed.
        trace: the history that was made small, or the case.
    """

    check: str
    message: str
    trace: Trace

    @property
    def steps(self) -> int:
        """Number of steps that show the difference."""
        return len(self.trace.steps)


@dataclass(frozen=True)
class AdapterKill:
    """The findings about one fault of an adapter.

    Attributes:
        mutant: its name.
        fault: what is wrong with it, and the rule.
        found: what each check found, the first of them first.
    """

    mutant: str
    fault: str
    found: tuple[Finds, ...] = ()

    @property
    def killed(self) -> bool:
        """True when a check found it."""
        return bool(self.found)


def hunt_adapters(mutants: Collection[str] | None = None, *, whole: bool = False) -> Iterator[AdapterKill]:
    """Yield each fault with its findings.

    Args:
        mutants: names of mutants; all by default.
        whole: True to let every check look for a fault; False to stop at the first check that finds it.
    """
    for name, mutant in ADAPTER_MUTANTS.items():
        if mutants is None or name in mutants:
            yield AdapterKill(name, mutant.fault, tuple(_first_of_each(_finds(mutant, whole=whole))))


def _first_of_each(found: Iterable[Finds]) -> Iterator[Finds]:
    seen = set[str]()
    for one in found:
        if one.check not in seen:
            seen.add(one.check)
            yield one


def unbroken() -> list[NonConformance]:
    """Return the findings of the same work in the adapter without a fault."""
    with _opened(AdapterMutant("none")) as subject:
        return [failure for part in _parts(subject) for failure in part()]


@contextmanager
def _opened(mutant: AdapterMutant) -> Iterator[TrinitySubject]:
    with TemporaryDirectory(prefix="trinity-conformance-") as folder:
        subject = TrinitySubject(mutant.adapter(), None, Path(folder))
        try:
            yield subject
        finally:
            subject.close()


def _finds(mutant: AdapterMutant, *, whole: bool) -> Iterator[Finds]:
    """Yield the shrunk findings of a smoke run without Spark, the cheapest part of the run first."""
    seen = set[str]()
    with _opened(mutant) as subject:
        for part in _parts(subject):
            for failure in part():
                if failure.check in seen:
                    continue
                small = _small(subject, failure)
                if small.trace is not None:
                    seen |= {failure.check, small.check}
                    yield Finds(small.check, small.message, small.trace)
            if seen and not whole:
                return


def _small(subject: TrinitySubject, failure: NonConformance) -> NonConformance:
    """Return the failure of a smaller history or race; of a case, the same."""
    if failure.history is not None:
        return shrink(failure, partial(failure_of, subject), _SHRINK)
    if failure.race is None:
        return failure
    with Races(subject) as played:
        return shrink_race(failure, partial(played.failure_of, tally=Tally()), _SHRINK)


def _parts(subject: TrinitySubject) -> Iterator[Callable[[], list[NonConformance]]]:
    """Yield the parts of a smoke run without Spark, the cheapest first."""
    tally = Tally()
    yield from (partial(try_commits, subject, tally, {name: check}) for name, check in COMMITS.items())
    yield from (partial(try_meanwhile, subject, tally, {name: check}) for name, check in MEANWHILE.items())
    if subject.others_see:
        yield partial(_races, subject)
    yield from (partial(_played, subject, history) for history in _drawn())
    yield partial(refuse_all, subject, tally)


@cache
def _drawn() -> tuple[History, ...]:
    """Return the histories of a smoke run, all kinds by turns."""
    return tuple(chain.from_iterable(map(_numbered, range(_HISTORIES))))


def _numbered(number: int) -> Iterator[History]:
    yield without_spark(sample(histories(rota(number)), number))
    if number < _PROGRAMS:
        yield without_spark(sample(programs(dml_rota(number)), number))
    if number < _FAULTS:
        yield faulted(number)


def _played(subject: TrinitySubject, history: History) -> list[NonConformance]:
    failure = failure_of(subject, history, every_step=False)
    return [] if failure is None else [failure]


def _races(subject: TrinitySubject) -> list[NonConformance]:
    with Races(subject) as played:
        found = (played.failure_of(race, Tally()) for race in islice(races(0, subject.capabilities), _RACES))
        return [*islice((failure for failure in found if failure is not None), 1)]
