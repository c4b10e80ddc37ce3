"""The parts of a run: histories of each kind, as its budget says, and more while a check has seen too little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from trinity.spi import Capability
from trinity_conformance.generate.declared import drawn
from trinity_conformance.generate.engine_histories import ENGINE_GENERAL, engine_histories, resplit
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.generate.executors import by_turns, without_spark
from trinity_conformance.generate.faults import faulted
from trinity_conformance.generate.histories import GENERAL, histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.playing.coverage import BY_TURNS, uncertain
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.traces import History
from trinity_conformance.suite.budgets import Budget, Share
from trinity_conformance.suite.checks import Check, check_of
from trinity_conformance.suite.results import unmet

_RESPLIT: Final = 3
"""One of this many histories of merge engines is played a second time."""


@dataclass(frozen=True)
class Part:
    """A kind of histories of a run.

    Attributes:
        what: its name.
        histories: the histories.
        share: limits of the work; it goes on beyond its seconds while a check has seen too little.
        checks: ids of the checks that it is about.
        short: returns the ids of the checks that have seen too little so far.
    """

    what: str
    histories: Iterable[History]
    share: Share
    checks: Collection[str] = ()
    short: Callable[[], Collection[str]] = tuple


def generated_of(
    checks: list[Check],
    budget: Budget,
    seed: int,
    capabilities: Collection[Capability],
    tally: Tally,
    excused: Collection[str] = (),
    *,
    alone: bool = False,
) -> Iterator[Part]:
    """Yield each kind of histories that an adapter supports.

    Args:
        checks: the checks asked for.
        budget: limits of the work.
        seed: number of the first history.
        capabilities: the adapter's capabilities.
        tally: the situations seen so far; while one is below its quota, more histories follow.
        excused: situations that cannot occur.
        alone: whether this process executes all steps, and not in turns with Spark.
    """
    excused = {*excused, *uncertain(capabilities), *(BY_TURNS if alone else ())}

    def short(of: list[Check]) -> Callable[[], Collection[str]]:
        possible = [check for check in of if check.possible(capabilities)]
        return lambda: [check.id for check in possible if unmet(check, tally, excused)]

    for part in _drawn(checks, budget, seed, capabilities, short):
        played = (without_spark(h) if alone else by_turns(h, n) for n, h in enumerate(part.histories, seed))
        yield replace(part, histories=played)


def _drawn(
    checks: list[Check],
    budget: Budget,
    seed: int,
    can: Collection[Capability],
    short: Callable[[list[Check]], Callable[[], Collection[str]]],
) -> Iterator[Part]:
    emphasis = checks[0].emphasis if len(checks) == 1 else None
    shares, longer = budget.shares, budget.longer
    if any(c.emphasis and not c.engines for c in checks):
        about = [c for c in checks if c.emphasis and not (c.engines or c.programs)]
        share, enough = shares["histories"], short(about)
        found = drawn(_histories(seed, emphasis or GENERAL, can), can, share.most, enough, longer)
        yield Part("histories", found, share, _ids(about), enough)
    if (about := [c for c in checks if c.programs]) and Capability.ROW_CHANGES in can:
        share, enough = shares["programs"], short(about)
        found = drawn(_programs(seed, can), can, share.most, enough, longer)
        yield Part("programs of statements", found, share, _ids(about), enough)
    if about := [c for c in checks if c.engines and c.possible(can)]:
        share, enough = shares["engines"], short(about)
        found = _engine_histories(seed, share.most, emphasis or ENGINE_GENERAL, can, enough, longer)
        yield Part("histories of merge engines", found, share, _ids(about), enough)


def _ids(checks: Iterable[Check]) -> list[str]:
    return [check.id for check in checks]


def fault_histories(
    budget: Budget, seed: int, can: Collection[Capability], tally: Tally, excused: Collection[str] = ()
) -> Part:
    """Return histories with a fault in each write; the arguments are those of :func:`generated_of`."""
    excused = {*excused, *uncertain(can)}
    check, share = check_of("faults"), budget.shares["faults"]

    def short() -> list[str]:
        return [check.id] if unmet(check, tally, excused) else []

    generated = drawn((faulted(n, can) for n in count(seed)), can, share.most, short, budget.longer)
    return Part("faults", generated, share, [check.id], short)


def _histories(seed: int, emphasis: Mapping[str, int], can: Collection[Capability]) -> Iterator[History]:
    return (sample(histories(rota(n, can), emphasis), n) for n in count(seed))


def _programs(seed: int, can: Collection[Capability]) -> Iterator[History]:
    return (sample(programs(dml_rota(n, can)), n) for n in count(seed))


def _engine_histories(
    seed: int,
    most: int,
    emphasis: Mapping[str, int],
    can: Collection[Capability],
    short: Callable[[], object],
    longer: int,
) -> Iterator[History]:
    """Yield histories of merge engines; every third is repeated, with the same rows in other commits (L2).

    The repetitions follow later, so that a short run sees all kinds of tables first.
    """
    again: list[History] = []
    generated = (sample(engine_histories(engine_rota(n, can), emphasis), n) for n in count(seed))
    for number, history in enumerate(drawn(generated, can, most, short, longer), seed):
        again += [resplit(history, number)] if number % _RESPLIT == 0 else []
        yield history
        if len(again) > _RESPLIT:
            yield again.pop(0)
    yield from again
