"""The findings of each check of a run, and the situations that it must see more often to pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from trinity.spi import EVERYTHING, Capability
from trinity_conformance.playing import traces
from trinity_conformance.playing.coverage import BY_TURNS, uncertain
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.suite.checks import Check, check_of
from trinity_conformance.suite.gaps import Gap, stale


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
        blocked: True when the first steps failed, so it was not run.
        ended: how many histories, programs or races were played when its time was over; 0 when it was not.
        stopped: how many were played when findings of histories shared with other checks stopped it; 0 when none did.
        gap: the known gap behind these failures.
        unplayed: why it cannot be played on the adapter; empty where it can.
        interrupted: True when the run was interrupted before the check was played to its end.
    """

    check: Check
    observations: int = 0
    missing: dict[str, tuple[int, int]] = field(default_factory=dict)
    failures: list[NonConformance] = field(default_factory=list)
    lacking: bool = False
    alone: bool = False
    blocked: bool = False
    ended: int = 0
    stopped: int = 0
    gap: Gap | None = None
    unplayed: str = ""
    interrupted: bool = False

    @property
    def status(self) -> str:
        """``failed``, ``known gap``, ``not supported``, ``not played``, ``inconclusive`` or ``passed``.

        An inconclusive check saw too little. Without Spark it is ``left out``: the rest of it was left to Spark, unless
        its time was over, or findings stopped it, before other situations than those of Spark were seen. A check that
        waits for the first steps to work is ``blocked``.
        """
        if self.failures:
            return "known gap" if self.gap is not None else "failed"
        if self.blocked:
            return "blocked"
        if self.lacking:
            return "not supported"
        if self.unplayed:
            return "not played"
        if self.interrupted:
            return "inconclusive"
        if self.missing or not self.observations:
            for_spark = bool(self.missing) and self.missing.keys() <= BY_TURNS
            return "left out" if self.alone and (for_spark or not (self.ended or self.stopped)) else "inconclusive"
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
        lacks: capabilities that the adapter does not declare.
        undeclared: capabilities that work, although the adapter does not declare them.
        rounds: how often the budget was begun, each time from a seed of its own.
        interrupted: True when it ended before it had played what its budget has; a soak has no such end.
    """

    connector: str
    budget: str
    seed: int
    results: list[CheckResult]
    tally: Tally
    seconds: float = 0.0
    lacks: Sequence[str] = ()
    undeclared: Sequence[str] = ()
    rounds: int = 1
    interrupted: bool = False

    @property
    def failures(self) -> list[NonConformance]:
        """All failures that are no known gaps, by check."""
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
        missing = unmet(check, tally, excused)
        failures = [f for f in found if f.check == check.id]
        lacking = not check.possible(capabilities)
        seen, ended, stopped = (
            tally.observations[check.id],
            tally.ended.get(check.id, 0),
            tally.stopped.get(check.id, 0),
        )
        results.append(CheckResult(check, seen, missing, failures, lacking, alone, ended=ended, stopped=stopped))
    return results


def unmet(check: Check, tally: Tally, excused: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the situations that a check has not seen often enough: name -> (seen, wanted)."""
    seen = tally.coverage.counts
    return {n: (seen[n], wanted) for n, wanted in check.quotas.items() if seen[n] < wanted and n not in excused}


def blocked_by(failure: NonConformance, checks: Iterable[Check]) -> list[CheckResult]:
    """Return the results of a run whose first steps failed: one failure, and all other checks blocked."""
    others = [CheckResult(check, blocked=True) for check in checks if check.id != failure.check]
    return [CheckResult(check_of(failure.check), 1, failures=[failure]), *others]


def with_gaps(results: list[CheckResult], gaps: Collection[Gap], today: date) -> list[CheckResult]:
    """Return the results in which known gaps are no failures, and stale gaps are failures."""
    by_check = {gap.check: gap for gap in gaps}
    failures = stale(gaps, [r.check.id for r in results if r.status == "passed"], today)
    wrong = {failure.check: failure for failure in failures}
    return [
        replace(r, failures=[*r.failures, wrong[r.check.id]])
        if r.check.id in wrong
        else replace(r, gap=by_check.get(r.check.id))
        for r in results
    ]
