"""Runs checks on an adapter within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trinity.spi import ENTRY_POINT_GROUP, EVERYTHING, Capability, Format
from trinity_conformance.generate.races import races
from trinity_conformance.playing.capabilities import verify
from trinity_conformance.playing.commits import try_commits
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.engine_refusals import ENGINE_REFUSALS, refuse_engines
from trinity_conformance.playing.first_steps import first_steps
from trinity_conformance.playing.meanwhile import try_meanwhile
from trinity_conformance.playing.race_play import Races
from trinity_conformance.playing.race_run import RACES_CHECK
from trinity_conformance.playing.refusals import REFUSALS, refuse_all
from trinity_conformance.playing.runner import Tally, play
from trinity_conformance.playing.sink_checks import try_sinks
from trinity_conformance.playing.subject import LeftToSpark, Subject, TrinitySubject, Unsupported
from trinity_conformance.playing.traces import History
from trinity_conformance.shrink.histories import shrink
from trinity_conformance.shrink.races import shrink_race
from trinity_conformance.suite.budgets import BUDGETS, Budget
from trinity_conformance.suite.checks import CHECKS, check_of, checks_as_of
from trinity_conformance.suite.gaps import Gap
from trinity_conformance.suite.parts import Part, fault_histories, generated_of
from trinity_conformance.suite.results import Report, blocked_by, results_of, unmet, with_gaps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["connectors", "run_check", "run_histories"]

Progress: TypeAlias = Callable[[Tally, str], None]
"""Takes the work so far, and what is being played: a kind of histories, or the id of a check."""


def _silent(tally: Tally, what: str) -> None:
    """Tell nobody."""


_OF_SPARK: Final = frozenset({"spark", "refusal of a DataFrame"})
"""Situations that only Spark has."""
_UNSEEN: Final = "no other process can open its tables"


def connectors() -> list[str]:
    """Return the names of the installed adapters, sorted."""
    return sorted(point.name for point in entry_points(group=ENTRY_POINT_GROUP))


def run_check(
    connector: str | type[Format],
    spark: SparkSession | None,
    check: str | None = None,
    budget: Budget | str = "smoke",
    seed: int = 0,
    folder: Path | None = None,
    progress: Progress = _silent,
    options: Mapping[str, Any] = MappingProxyType({}),
    as_of: str | None = None,
    gaps: Collection[Gap] = (),
) -> Report:
    """Run one check, or all of them over the same histories.

    Args:
        connector: name of the adapter's entry point, or its class.
        spark: the session to run on, in turns with this process; None for this process alone.
        check: id of a check; all by default.
        budget: one of :data:`BUDGETS`, or its name.
        seed: number of the first history; the same seed gives the same histories.
        folder: an empty folder for the tables; a temporary one by default.
        progress: called with the work so far and what is being played, before and after each piece of it.
        options: further settings of the adapter's catalog; a ``warehouse`` among them replaces the folder, and must be
            as empty.
        as_of: a version of the suite; checks that are newer are left out.
        gaps: known gaps. Their failures are not made smaller, and the run goes on after them.

    Raises:
        TrinityError: the adapter cannot be opened.
    """
    if folder is None:
        with TemporaryDirectory(prefix="trinity-conformance-") as made:
            return run_check(connector, spark, check, budget, seed, Path(made), progress, options, as_of, gaps)
    begun = monotonic()
    chosen = BUDGETS[budget] if isinstance(budget, str) else budget
    checks = [check_of(check)] if check else list(CHECKS) if as_of is None else checks_as_of(as_of)
    wanted = {c.id for c in checks}
    tally = Tally()
    name = connector if isinstance(connector, str) else f"{connector.__module__}:{connector.__qualname__}"
    try:
        subject = first_steps(connector, spark, folder, options, tally)
    except NonConformance as failure:
        return Report(name, chosen.name, seed, blocked_by(failure, checks), tally, monotonic() - begun)
    excused = {
        *([] if subject.durable else ["reopen"]),
        *([] if subject.others_see else ["read by a fresh process", "action within another process's"]),
        *(_OF_SPARK if spark is None else []),
    }
    try:
        declares, undeclared, found = subject.capabilities, frozenset[Capability](), list[NonConformance]()
        if "capabilities" in wanted:
            progress(tally, "capabilities")
            verified = verify(subject, tally)
            undeclared, found, subject.capabilities = verified.undeclared, [*verified.findings], verified.usable
        can, expected = subject.capabilities, {gap.check for gap in gaps}
        wanted &= {c.id for c in checks if c.possible(can)}
        for part in generated_of(checks, chosen, seed, can, tally, excused, alone=spark is None):
            found += run_histories(subject, chosen, part, tally, progress, expected)
        if "faults" in wanted:
            with subject.alone():
                part = fault_histories(chosen, seed, can, tally, excused)
                found += run_histories(subject, chosen, part, tally, progress, expected)
        if "writers" in wanted and subject.others_see:
            progress(tally, "writers")
            with subject.alone():
                found += run_races(subject, chosen, seed, tally, expected)
        if "bad-input" in wanted:
            progress(tally, "bad-input")
            seconds = max(chosen.seconds_in_all - (monotonic() - begun), chosen.patience * chosen.refusal_seconds)
            found += refuse_all(subject, tally, seconds, REFUSALS[: chosen.refusals])
        if "engine-options" in wanted:
            progress(tally, "engine-options")
            seconds = max(chosen.seconds_in_all - (monotonic() - begun), chosen.patience * chosen.refusal_seconds)
            found += refuse_engines(subject, tally, seconds, ENGINE_REFUSALS[: chosen.refusals])
        if "merge-sinks" in wanted:
            progress(tally, "merge-sinks")
            found += try_sinks(subject, tally)
        if "commits" in wanted and (check is not None or chosen.concurrency):
            progress(tally, "commits")
            found += try_commits(subject, tally)
        if "concurrency" in wanted and (check is not None or chosen.concurrency):
            progress(tally, "concurrency")
            found += try_meanwhile(subject, tally)
    finally:
        tally.left.update(subject.left)
        subject.close()
    results = results_of(checks, tally, found, excused, can, alone=spark is None)
    if not subject.others_see:
        results = [replace(r, unplayed=_UNSEEN) if r.check.races else r for r in results]
    results = with_gaps(results, gaps, date.today())
    lacks, more = (sorted(c.value for c in found) for found in (EVERYTHING - declares, undeclared))
    return Report(name, chosen.name, seed, results, tally, monotonic() - begun, lacks, more)


def run_histories(
    subject: Subject,
    budget: Budget,
    part: Part,
    tally: Tally,
    progress: Progress = _silent,
    expected: Collection[str] = (),
) -> list[NonConformance]:
    """Play generated histories until the budget is used up.

    Return the failures, shrunk but for those of checks that are expected to fail.
    """
    begun, found = monotonic(), list[NonConformance]()
    progress(tally, part.what)
    for number, history in enumerate(part.histories):
        new = sum(failure.check not in expected for failure in found)
        if new >= budget.failures or (number and _over(monotonic() - begun, budget, part, tally)):
            break
        try:
            play(subject, history, tally)
        except Unsupported as reason:
            tally.unsupported[str(reason)] += 1
        except LeftToSpark:
            pass
        except NonConformance as failure:
            known = failure.check in expected
            found.append(failure if known else shrink(failure, lambda h: _trial(subject, h), budget.shrink))
        progress(tally, part.what)
    return found


def _over(seconds: float, budget: Budget, part: Part, tally: Tally) -> bool:
    """Return whether a part has had its time; note the checks that have seen too little in it."""
    if seconds <= part.seconds:
        return False
    short = part.short()
    if short and seconds <= budget.patience * part.seconds:
        return False
    tally.late.update(short)
    return True


def run_races(
    subject: TrinitySubject, budget: Budget, seed: int, tally: Tally, expected: Collection[str] = ()
) -> list[NonConformance]:
    """Play races until the budget is used up, or one fails; return its failure, made small unless it is expected."""
    begun, check = monotonic(), check_of(RACES_CHECK)
    drawn_races = islice(races(seed, subject.capabilities), budget.longer * budget.races)
    part = Part("writers", (), budget.race_seconds, lambda: [check.id] if unmet(check, tally, ()) else [])
    with Races(subject) as played:
        for number, race in enumerate(drawn_races):
            if (number >= budget.races and not part.short()) or (
                number and _over(monotonic() - begun, budget, part, tally)
            ):
                break
            if (failure := played.failure_of(race, tally)) is not None:
                trial = partial(played.failure_of, tally=tally)
                return [failure if failure.check in expected else shrink_race(failure, trial, budget.shrink)]
    return []


def _trial(subject: Subject, history: History) -> NonConformance | None:
    try:
        play(subject, history, every_step=True)
    except NonConformance as failure:
        return failure
    except (Unsupported, LeftToSpark):
        return None
    return None
