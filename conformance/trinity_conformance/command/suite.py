"""Runs checks on an adapter within a time budget, and reports the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from importlib.metadata import entry_points
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trinity.spi import ENTRY_POINT_GROUP, EVERYTHING, Capability, Format
from trinity_conformance.command.checks import CHECKS, Check, check_of, checks_as_of
from trinity_conformance.command.gaps import Gap, stale
from trinity_conformance.generate.declared import drawn
from trinity_conformance.generate.engine_histories import ENGINE_GENERAL, engine_histories, resplit
from trinity_conformance.generate.engine_profiles import engine_rota
from trinity_conformance.generate.executors import by_turns, without_spark
from trinity_conformance.generate.faults import faulted
from trinity_conformance.generate.histories import GENERAL, histories, sample
from trinity_conformance.generate.profiles import dml_rota, rota
from trinity_conformance.generate.programs import programs
from trinity_conformance.generate.races import races
from trinity_conformance.playing import traces
from trinity_conformance.playing.capabilities import verify
from trinity_conformance.playing.commits import try_commits
from trinity_conformance.playing.coverage import uncertain
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
from trinity_conformance.shrink.histories import ShrinkBudget, shrink
from trinity_conformance.shrink.races import shrink_race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "BUDGETS",
    "Budget",
    "CheckResult",
    "Report",
    "connectors",
    "fault_histories",
    "generated_of",
    "results_of",
    "run_check",
    "run_histories",
]


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
        longer: as long as a check has seen too little, so many times the histories and the seconds.
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

    @property
    def seconds_in_all(self) -> float:
        """Seconds after which only the handwritten checks begin."""
        return self.seconds + self.program_seconds + self.engine_seconds


Progress: TypeAlias = Callable[[Tally, str], None]
"""Takes the work so far, and what is being played: a kind of histories, or the id of a check."""


def _silent(tally: Tally, what: str) -> None:
    """Tell nobody."""


OF_SPARK: Final = frozenset({"spark", "refusal of a DataFrame"})
"""Situations that only Spark has."""
BY_TURNS: Final = frozenset({"local after spark", "spark after local"})
"""Situations that need both executors."""
_UNSEEN: Final = "no other process can open its tables"
_RESPLIT: Final = 3
"""One of this many histories of merge engines is played a second time."""
BUDGETS: Final[Mapping[str, Budget]] = {
    b.name: b
    for b in (
        Budget("smoke", 300, 12, 1, ShrinkBudget(30, 40), 200, 6, 400, 8, 120, None, True, 200, 10, 200, 12),
        Budget("standard", 300, 300, 3, ShrinkBudget(90, 150), 150, 200, 150, 200, 60, fault_seconds=60),
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
many times slower. The others play as many as there is time for.
"""


@dataclass
class CheckResult:
    """Outcome of one check.

    Attributes:
        check: the check.
        observations: comparisons made.
        missing: situations below their quota: name -> (seen, wanted).
        failures: the failures found.
        lacking: True when the adapter lacks what the check needs.
        alone: True without Spark.
        blocked: True when the first steps failed, so that it was not run.
        late: True when it saw too little because its time was over.
        gap: the known gap that these failures are.
        unplayed: why it cannot be played on the adapter; empty where it can.
    """

    check: Check
    observations: int = 0
    missing: dict[str, tuple[int, int]] = field(default_factory=dict)
    failures: list[NonConformance] = field(default_factory=list)
    lacking: bool = False
    alone: bool = False
    blocked: bool = False
    late: bool = False
    gap: Gap | None = None
    unplayed: str = ""

    @property
    def status(self) -> str:
        """``failed``, ``known gap``, ``not supported``, ``not played``, ``inconclusive`` or ``passed``.

        An inconclusive check saw too little. Without Spark it is ``left out``, unless its time was over: the rest of
        it was left to Spark. A check that waits for the first steps to work is ``blocked``.
        """
        if self.failures:
            return "known gap" if self.gap is not None else "failed"
        if self.blocked:
            return "blocked"
        if self.lacking:
            return "not supported"
        if self.unplayed:
            return "not played"
        if self.missing or not self.observations:
            return "left out" if self.alone and not self.late else "inconclusive"
        return "passed"


@dataclass
class Report:
    """A whole run.

    Attributes:
        connector: name of the adapter.
        budget: the budget's name.
        seed: seed of the first history.
        results: one per check.
        tally: work and situations.
        seconds: duration without the start of Spark.
        lacks: what the adapter does not declare.
        undeclared: what works, although it does not declare it.
    """

    connector: str
    budget: str
    seed: int
    results: list[CheckResult]
    tally: Tally
    seconds: float = 0.0
    lacks: Sequence[str] = ()
    undeclared: Sequence[str] = ()

    @property
    def failures(self) -> list[NonConformance]:
        """All failures but those of known gaps, by check."""
        return [f for r in self.results if r.gap is None for f in r.failures]

    @property
    def conforms(self) -> bool:
        """True when nothing failed; see :attr:`inconclusive` for checks that prove nothing."""
        return not self.failures

    @property
    def inconclusive(self) -> list[str]:
        """Ids of the checks that saw too little to prove anything."""
        return [r.check.id for r in self.results if r.status == "inconclusive"]

    @property
    def left_out(self) -> list[str]:
        """Ids of the checks that need Spark, in a run without it."""
        return [r.check.id for r in self.results if r.status == "left out"]

    def save(self, folder: Path) -> None:
        """Keep the histories and cases of the failures as trace files."""
        for failure in self.failures:
            if failure.trace is not None:
                traces.save(failure.trace, folder)

    def text(self) -> str:
        """Return all failures as text; for an assertion's message."""
        return "\n\n".join(f.report(adapter=self.connector) for f in self.failures) or f"{self.connector}: no finding"


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
        *(OF_SPARK if spark is None else []),
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
            seconds = max(chosen.seconds_in_all - (monotonic() - begun), chosen.longer * chosen.refusal_seconds)
            found += refuse_all(subject, tally, seconds, REFUSALS[: chosen.refusals])
        if "engine-options" in wanted:
            progress(tally, "engine-options")
            seconds = max(chosen.seconds_in_all - (monotonic() - begun), chosen.longer * chosen.refusal_seconds)
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


def blocked_by(failure: NonConformance, checks: Iterable[Check]) -> list[CheckResult]:
    """Return the results of a run whose first steps failed: one failure, and all other checks blocked."""
    others = [CheckResult(check, blocked=True) for check in checks if check.id != failure.check]
    return [CheckResult(check_of(failure.check), 1, failures=[failure]), *others]


@dataclass(frozen=True)
class Part:
    """A kind of histories of a run.

    Attributes:
        what: its name.
        histories: the histories.
        seconds: no history except the first begins after this time, unless a check has seen too little.
        short: returns the ids of the checks that have seen too little until now.
    """

    what: str
    histories: Iterable[History]
    seconds: float
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
    """Yield each kind of histories of what an adapter can do.

    A single check gets all of the seconds.

    Args:
        checks: the checks asked for.
        budget: limits of the work.
        seed: number of the first history.
        capabilities: what the adapter can do.
        tally: what was seen, as it grows; while it is below a quota there are more histories.
        excused: situations that cannot occur.
        alone: whether this process executes all steps, and not in turns with Spark.
    """
    excused = {*excused, *uncertain(capabilities), *(BY_TURNS if alone else ())}

    def short(of: list[Check]) -> Callable[[], Collection[str]]:
        possible = [check for check in of if check.possible(capabilities)]
        return lambda: [check.id for check in possible if _missing(check, tally, excused)]

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
    alone = checks[0] if len(checks) == 1 else None
    longer = budget.longer
    if any(c.emphasis and not c.engines for c in checks):
        enough = short([c for c in checks if c.emphasis and not (c.engines or c.programs)])
        generated = _histories(seed, alone.emphasis if alone else GENERAL, can)
        found = drawn(generated, can, budget.histories, enough, longer)
        yield Part("histories", found, budget.seconds, enough)
    if (about := [c for c in checks if c.programs]) and Capability.ROW_CHANGES in can:
        enough = short(about)
        found = drawn(_programs(seed, can), can, budget.programs, enough, longer)
        seconds = budget.seconds if alone else budget.program_seconds
        yield Part("programs of statements", found, seconds, enough)
    if about := [c for c in checks if c.engines and c.possible(can)]:
        enough = short(about)
        emphasis = alone.emphasis if alone else ENGINE_GENERAL
        found = _engine_histories(seed, budget.engine_histories, emphasis, can, enough, longer)
        yield Part("histories of merge engines", found, budget.seconds if alone else budget.engine_seconds, enough)


def fault_histories(
    budget: Budget, seed: int, can: Collection[Capability], tally: Tally, excused: Collection[str] = ()
) -> Part:
    """Return histories of what an adapter can do in which something goes wrong at each write; as generated_of."""
    excused = {*excused, *uncertain(can)}
    check = check_of("faults")

    def short() -> list[str]:
        return [check.id] if _missing(check, tally, excused) else []

    generated = drawn((faulted(n, can) for n in count(seed)), can, budget.fault_histories, short, budget.longer)
    return Part("faults", generated, budget.fault_seconds, short)


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
    """Yield histories of merge engines; every third comes a second time, with the same rows in other commits (L2).

    The second time is later, so that a short run sees all kinds of tables first.
    """
    again: list[History] = []
    generated = (sample(engine_histories(engine_rota(n, can), emphasis), n) for n in count(seed))
    for number, history in enumerate(drawn(generated, can, most, short, longer), seed):
        again += [resplit(history, number)] if number % _RESPLIT == 0 else []
        yield history
        if len(again) > _RESPLIT:
            yield again.pop(0)
    yield from again


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
    if short and seconds <= budget.longer * part.seconds:
        return False
    tally.late.update(short)
    return True


def run_races(
    subject: TrinitySubject, budget: Budget, seed: int, tally: Tally, expected: Collection[str] = ()
) -> list[NonConformance]:
    """Play races until the budget is used up, or one fails; return its failure, made small unless it is expected."""
    begun, check = monotonic(), check_of(RACES_CHECK)
    drawn_races = islice(races(seed, subject.capabilities), budget.longer * budget.races)
    part = Part("writers", (), budget.race_seconds, lambda: [check.id] if _missing(check, tally, ()) else [])
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


def with_gaps(results: list[CheckResult], gaps: Collection[Gap], today: date) -> list[CheckResult]:
    """Return results of which those with a known gap are no failures, and those with a stale one are."""
    by_check = {gap.check: gap for gap in gaps}
    failures = stale(gaps, [r.check.id for r in results if r.status == "passed"], today)
    wrong = {failure.check: failure for failure in failures}
    return [
        replace(r, failures=[*r.failures, wrong[r.check.id]])
        if r.check.id in wrong
        else replace(r, gap=by_check.get(r.check.id))
        for r in results
    ]


def results_of(
    checks: Iterable[Check],
    tally: Tally,
    found: Iterable[NonConformance],
    excused: Collection[str] = (),
    capabilities: Collection[Capability] = EVERYTHING,
    *,
    alone: bool = False,
) -> list[CheckResult]:
    """Return the results of the checks asked for, and of any other check that failed."""
    excused = {*excused, *uncertain(capabilities)}
    failed = [check_of(i) for i in dict.fromkeys(f.check for f in found) if i not in {c.id for c in checks}]
    results = []
    for check in (*checks, *failed):
        missing = _missing(check, tally, excused)
        failures = [f for f in found if f.check == check.id]
        lacking = not check.possible(capabilities)
        seen, late = tally.observations[check.id], check.id in tally.late
        results.append(CheckResult(check, seen, missing, failures, lacking, alone, late=late))
    return results


def _missing(check: Check, tally: Tally, excused: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the situations of which a check has seen too few: name -> (seen, wanted)."""
    seen = tally.coverage.counts
    return {n: (seen[n], wanted) for n, wanted in check.quotas.items() if seen[n] < wanted and n not in excused}
