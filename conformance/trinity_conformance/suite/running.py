"""Runs checks on an adapter within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from traceback import walk_tb
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trinity.spi import ENTRY_POINT_GROUP, EVERYTHING, Capability, Format
from trinity_conformance.generate.races import races
from trinity_conformance.playing.again import BY_HAND
from trinity_conformance.playing.capabilities import PROBES, verify
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.first_steps import first_steps
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.race_play import Races
from trinity_conformance.playing.race_run import RACES_CHECK
from trinity_conformance.playing.runner import failure_of, play
from trinity_conformance.playing.subject import LeftToSpark, Subject, TrinitySubject, Unsupported
from trinity_conformance.shrink.histories import shrink
from trinity_conformance.shrink.races import shrink_race
from trinity_conformance.suite.budgets import BUDGETS, SEEDS_OF_A_ROUND, Budget
from trinity_conformance.suite.checks import CHECKS, Check, check_of, checks_as_of
from trinity_conformance.suite.gaps import Gap
from trinity_conformance.suite.parts import Part, fault_histories, generated_of
from trinity_conformance.suite.results import Report, blocked_by, results_of, unmet, with_gaps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress: TypeAlias = Callable[[Tally, str], None]
"""A callback with the work so far, and the present kind of histories or id of a check."""


def _silent(tally: Tally, what: str) -> None:
    """Ignore the progress."""


OnFinding: TypeAlias = Callable[[NonConformance], None]


def _wait_for_report(failure: NonConformance) -> None:
    """Ignore a finding: the report has it, too."""


_OF_SPARK: Final = frozenset({"spark", "several-files", "refusal of a DataFrame"})
"""Situations that occur only with Spark."""
_OURS: Final = frozenset({"trinity", "trinity_conformance"})
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
    on_finding: OnFinding = _wait_for_report,
    clock: Callable[[], float] = monotonic,
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
        on_finding: called with each failure as it comes, but for those of known gaps.
        clock: returns the time in seconds.

    Raises:
        TrinityError: the adapter cannot be opened.
    """
    if folder is None:
        with TemporaryDirectory(prefix="trinity-conformance-") as made:
            return run_check(
                connector, spark, check, budget, seed, Path(made), progress, options, as_of, gaps, on_finding, clock
            )
    begun = clock()
    chosen = BUDGETS[budget] if isinstance(budget, str) else budget
    checks = [check_of(check)] if check else list(CHECKS) if as_of is None else checks_as_of(as_of)
    tally = Tally()
    name = connector if isinstance(connector, str) else f"{connector.__module__}:{connector.__qualname__}"
    try:
        subject = first_steps(connector, spark, folder, options, tally)
    except NonConformance as failure:
        on_finding(failure)
        return Report(name, chosen.name, seed, blocked_by(failure, checks), tally, clock() - begun)
    excused = {
        *([] if subject.durable else ["reopen"]),
        *([] if subject.others_see else ["read by a fresh process", "action within another process's"]),
        *(_OF_SPARK if spark is None else []),
    }
    expected = {gap.check for gap in gaps}
    declares = subject.capabilities
    run = _Run(subject, checks, chosen, seed, tally, excused, expected, progress, on_finding, clock, begun)
    try:
        run.play_all()
    finally:
        tally.left.update(subject.left)
        subject.close()
    results = results_of(checks, tally, run.found, excused, subject.capabilities, alone=spark is None)
    if not subject.others_see:
        results = [replace(r, unplayed=_UNSEEN) if r.check.races else r for r in results]
    if run.interrupted:
        results = [replace(r, interrupted=r.check.id not in run.ended) for r in results]
    results = with_gaps(results, gaps, date.today())
    lacks, more = (sorted(c.value for c in found) for found in (EVERYTHING - declares, run.undeclared))
    return Report(name, chosen.name, seed, results, tally, clock() - begun, lacks, more, run.rounds, run.interrupted)


class _TimeIsOver(Exception):
    """The minutes of a budget have passed."""


@dataclass
class _Run:
    """One run, as it is played.

    Attributes:
        found: the failures so far.
        undeclared: capabilities that work, although the adapter does not declare them.
        rounds: how many rounds have begun.
        ended: ids of the checks that were played to their end.
        interrupted: whether it was interrupted before its end.
    """

    subject: TrinitySubject
    checks: list[Check]
    budget: Budget
    seed: int
    tally: Tally
    excused: Collection[str]
    expected: Collection[str]
    progress: Progress
    on_finding: OnFinding
    clock: Callable[[], float]
    begun: float
    found: list[NonConformance] = field(default_factory=list)
    undeclared: Collection[Capability] = ()
    rounds: int = 0
    ended: set[str] = field(default_factory=lambda: {"first-steps"})
    interrupted: bool = False

    def play_all(self) -> None:
        """Play the budget, until it is interrupted; a budget with minutes is repeated until they have passed."""
        try:
            self.first_round()
            while self.budget.minutes and not self.is_over() and any(check.is_drawn for check in self.checks):
                self.subject.drop_tables()
                self.drawn()
        except _TimeIsOver:
            pass
        except KeyboardInterrupt:
            self.interrupted = not self.budget.minutes

    def is_over(self) -> bool:
        return self.clock() - self.begun >= 60 * self.budget.minutes

    def first_round(self) -> None:
        """Play the drawn histories and the cases written by hand."""
        if self.wants("capabilities"):
            self.tell("capabilities")
            with self.guarded("capabilities"):
                verified = verify(self.subject, self.tally, PROBES)
                self.undeclared, self.subject.capabilities = verified.undeclared, verified.usable
                self.keep(verified.findings)
            self.ended.add("capabilities")
        self.drawn()
        self.ended |= {check.id for check in self.checks} - BY_HAND.keys()
        for check, (cases, play_cases) in BY_HAND.items():
            if self.wants(check):
                self.tell(check)
                with self.guarded(check):
                    self.keep(play_cases(self.subject, self.tally, self.chosen(check, cases)))
            self.ended.add(check)

    @contextmanager
    def guarded(self, check: str) -> Iterator[None]:
        """Turn an error of the adapter between the cases of a check into a finding of the check."""
        try:
            yield
        except Exception as error:
            if not _raised_in(error, type(self.subject.session.connector("c").metadata).__module__):
                raise
            text = f"{type(error).__name__}: {str(error)[:1500]}"
            self.keep([NonConformance(check, f"a call of the adapter raised {text}")])

    def drawn(self) -> None:
        """Play a round: histories of each kind, and races of writers."""
        seed = self.seed + SEEDS_OF_A_ROUND * self.rounds
        self.rounds += 1
        budget = self.budget.for_one_check() if len(self.checks) == 1 else self.budget
        can, alone = self.subject.capabilities, self.subject.spark is None
        for part in generated_of(self.checks, budget, seed, can, self.tally, self.excused, alone=alone):
            self.histories(budget, part)
        if self.wants("faults"):
            with self.subject.alone():
                self.histories(budget, fault_histories(budget, seed, can, self.tally, self.excused))
        if self.wants(RACES_CHECK) and self.subject.others_see:
            with self.subject.alone():
                self.keep(_run_races(self.subject, budget, seed, self.tally, self.tell, self.expected, self.clock))

    def histories(self, budget: Budget, part: Part) -> None:
        self.keep(run_histories(self.subject, budget, part, self.tally, self.tell, self.expected, self.clock))

    def wants(self, check_id: str) -> bool:
        """Return whether a check is asked for, and the adapter can pass it."""
        return any(check.id == check_id and check.possible(self.subject.capabilities) for check in self.checks)

    def chosen(self, check: str, cases: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the cases of a check that the budget allows."""
        if check in ("commits", "concurrency"):
            return cases if len(self.checks) == 1 or self.budget.concurrency else {}
        most = self.budget.refusals if check in ("bad-input", "engine-options") else None
        return dict(islice(cases.items(), most))

    def tell(self, what: str) -> None:
        """Report what is played now; end a later round when the minutes of the budget have passed."""
        self.progress(self.tally, what)
        if self.rounds > 1 and self.is_over():
            raise _TimeIsOver

    def keep(self, failures: Iterable[NonConformance]) -> None:
        """Keep failures as they occur, and pass on the unexpected ones."""
        for failure in failures:
            self.found.append(failure)
            if failure.check not in self.expected:
                self.on_finding(failure)


def _raised_in(error: Exception, module: str) -> bool:
    """Return whether an error passed through an adapter's package, and is none of the suite itself."""
    package, _, _ = module.partition(".")
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return package not in _OURS and any(name.partition(".")[0] == package for name in frames)


def run_histories(
    subject: Subject,
    budget: Budget,
    part: Part,
    tally: Tally,
    tell: Callable[[str], None] = lambda what: None,
    expected: Collection[str] = (),
    clock: Callable[[], float] = monotonic,
) -> Iterator[NonConformance]:
    """Play generated histories until the budget is used up.

    Yield the failures as they occur; shrink the unexpected ones.
    """
    begun, new = clock(), 0
    tell(part.what)
    for number, history in enumerate(part.histories):
        if new >= budget.failures:
            tally.stopped.update(dict.fromkeys(part.checks, number))
            break
        if _over(number, clock() - begun, budget, part, tally):
            break
        try:
            play(subject, history, tally)
        except Unsupported as reason:
            tally.unsupported[str(reason)] += 1
        except LeftToSpark:
            pass
        except NonConformance as failure:
            known = failure.check in expected
            new += not known
            yield failure if known else shrink(failure, partial(failure_of, subject), budget.shrink)
        tell(part.what)


def _over(played: int, seconds: float, budget: Budget, part: Part, tally: Tally) -> bool:
    """Return whether a part's time is over; if so, note how many were played."""
    if played < part.share.least or seconds <= part.share.seconds:
        return False
    if part.short() and seconds <= budget.patience * part.share.seconds:
        return False
    tally.ended.update(dict.fromkeys(part.checks, played))
    return True


def _run_races(
    subject: TrinitySubject,
    budget: Budget,
    seed: int,
    tally: Tally,
    tell: Callable[[str], None] = lambda what: None,
    expected: Collection[str] = (),
    clock: Callable[[], float] = monotonic,
) -> Iterator[NonConformance]:
    """Play races until the budget is used up, or one fails; yield its failure, made small unless it is expected."""
    begun, check, share = clock(), check_of(RACES_CHECK), budget.shares["races"]
    drawn_races = islice(races(seed, subject.capabilities), budget.longer * share.most)
    part = Part("writers", (), share, [check.id], lambda: [check.id] if unmet(check, tally, ()) else [])
    tell(part.what)
    with Races(subject) as played:
        for number, race in enumerate(drawn_races):
            if (number >= share.most and not part.short()) or _over(number, clock() - begun, budget, part, tally):
                break
            if (failure := played.failure_of(race, tally)) is not None:
                trial = partial(played.failure_of, tally=tally)
                yield failure if failure.check in expected else shrink_race(failure, trial, budget.shrink)
                break
            tell(part.what)
