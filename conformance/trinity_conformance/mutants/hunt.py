"""Hunts faults of adapters: without Spark each must be found by something that a smoke run plays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from trinity_conformance.generate.executors import without_spark
from trinity_conformance.generate.faults import faulted
from trinity_conformance.generate.histories import histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS, AdapterMutant
from trinity_conformance.playing.commits import COMMITS, try_commits
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.meanwhile import MEANWHILE, try_meanwhile
from trinity_conformance.playing.refusals import refuse_all
from trinity_conformance.playing.runner import Tally, play
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject, Unsupported
from trinity_conformance.playing.traces import History

__all__ = ["AdapterKill", "hunt_adapters", "unbroken"]

_HISTORIES: Final = 12
_PROGRAMS: Final = 6
_FAULTS: Final = 8


@dataclass(frozen=True)
class AdapterKill:
    """What found a fault of an adapter.

    Attributes:
        mutant: its name.
        fault: what is wrong with it, and the rule.
        check: id of the check that failed; empty if none did.
        message: what differed.
    """

    mutant: str
    fault: str
    check: str = ""
    message: str = ""

    @property
    def killed(self) -> bool:
        """True when a check found it."""
        return self.check != ""


def hunt_adapters(mutants: Collection[str] | None = None) -> Iterator[AdapterKill]:
    """Yield for each fault what found it first.

    Args:
        mutants: names of mutants; all by default.
    """
    for name, mutant in ADAPTER_MUTANTS.items():
        if mutants is None or name in mutants:
            failure = next(_failures(mutant), None)
            found = (failure.check, failure.message) if failure is not None else ("", "")
            yield AdapterKill(name, mutant.fault, *found)


def unbroken() -> list[NonConformance]:
    """Return what the same work finds in the adapter without a fault."""
    return list(_failures(AdapterMutant("none")))


def _failures(mutant: AdapterMutant) -> Iterator[NonConformance]:
    """Yield what a smoke run without Spark finds, the cheapest part of it first."""
    with TemporaryDirectory(prefix="trinity-conformance-") as folder:
        subject, tally = TrinitySubject(mutant.adapter(), None, Path(folder)), Tally()
        parts: chain[Callable[[], list[NonConformance]]] = chain(
            (partial(try_commits, subject, tally, {name: check}) for name, check in COMMITS.items()),
            (partial(try_meanwhile, subject, tally, {name: check}) for name, check in MEANWHILE.items()),
            _of_histories(subject),
            (partial(refuse_all, subject, tally, 60.0, None),),
        )
        try:
            yield from (failure for part in parts for failure in part())
        finally:
            subject.close()


def _of_histories(subject: TrinitySubject) -> Iterator[Callable[[], list[NonConformance]]]:
    for history in _drawn():
        yield partial(_played, subject, history)


@cache
def _drawn() -> tuple[History, ...]:
    """Return the histories of a smoke run, those of each kind by turns."""
    return tuple(chain.from_iterable(map(_numbered, range(_HISTORIES))))


def _numbered(number: int) -> Iterator[History]:
    yield without_spark(sample(histories(rota(number)), number))
    if number < _PROGRAMS:
        yield without_spark(sample(programs(dml_rota(number)), number))
    if number < _FAULTS:
        yield faulted(number)


def _played(subject: TrinitySubject, history: History) -> list[NonConformance]:
    try:
        play(subject, history)
    except NonConformance as failure:
        return [failure]
    except (Unsupported, LeftToSpark):
        pass
    return []
