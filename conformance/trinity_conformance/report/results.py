"""The result of a run as a JSON value, from which every form of a report is made."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from trinity_conformance.playing.differences import NonConformance, again
from trinity_conformance.playing.words import story
from trinity_conformance.suite.budgets import BUDGETS, SEEDS_OF_A_ROUND
from trinity_conformance.suite.results import CheckResult, Report

_FORMAT: Final = 5
_PACKAGES: Final = ("trinity-merge", "pyarrow", "pyspark", "hypothesis")


@dataclass(frozen=True)
class Finding:
    """A difference that a check found.

    Attributes:
        message: the expected and the actual result.
        history: id of the history, or of the case written by hand; empty for neither.
        steps: the history, or the case, in words.
        trace: the content of its trace file; None for neither.
        again: the command that plays it again; empty for neither.
    """

    message: str
    history: str = ""
    steps: str = ""
    trace: Mapping[str, Any] | None = None
    again: str = ""

    @classmethod
    def of(cls, failure: NonConformance, connector: str) -> Finding:
        """Return a failure of an adapter as a value."""
        trace = failure.trace
        if trace is None:
            return cls(failure.message)
        return cls(failure.message, trace.id, story(trace), json.loads(trace.to_json()), again(trace.id, connector))


@dataclass(frozen=True)
class Outcome:
    """The result of one check.

    Attributes:
        id, title, rules: the check's own.
        status: ``passed``, ``failed``, ``known gap``, ``blocked``, ``inconclusive``, ``not supported``,
            ``not played`` or ``left out``.
        observations: comparisons made.
        missing: situations below their quota: name -> (seen, wanted).
        findings: the differences.
        gap: the known gap behind the findings; empty for none.
        unplayed: why it was not played, or not to its end; empty where it was.
        ended: how many histories, programs or races were played when its time was over; 0 when it was not.
    """

    id: str
    title: str
    rules: tuple[str, ...]
    status: str
    observations: int = 0
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    gap: str = ""
    unplayed: str = ""
    ended: int = 0

    @property
    def note(self) -> str:
        """A note to the status: the known gap, the situations that were not seen often enough, or the proven law."""
        if self.gap or self.unplayed:
            return self.gap or self.unplayed
        seen = "; ".join(f"saw {n} only {a} of {b} times" for n, (a, b) in self.missing.items())
        what = seen if seen and self.status in ("inconclusive", "left out") else self.title
        return f"{what} (out of time after {self.ended} played)" if self.ended else what

    @classmethod
    def of(cls, result: CheckResult, connector: str) -> Outcome:
        """Return a check's result on an adapter as a value."""
        check, findings = result.check, tuple(Finding.of(failure, connector) for failure in result.failures)
        missing = dict(result.missing)
        gap = f"{result.gap.reason} ({result.gap.issue}, until {result.gap.expires})" if result.gap else ""
        unplayed = result.unplayed or ("interrupted before it was over" if result.interrupted else "")
        if result.stopped and result.status == "inconclusive":
            unplayed = unplayed or f"stopped by findings after {result.stopped} played: mend these, and run again"
        status, seen = result.status, result.observations
        return cls(check.id, check.title, check.rules, status, seen, missing, findings, gap, unplayed, result.ended)


@dataclass(frozen=True)
class Results:
    """The result of a run.

    Attributes:
        connector: name of the adapter, and ``origin``: its class and distribution.
        budget, seed: those of the run.
        rounds: how often the budget was begun, each time from a seed of its own.
        spark: whether there was a Spark.
        date: the day of the run, as YYYY-MM-DD, in UTC.
        seconds: duration without the start of Spark.
        histories, rows, keys: histories played, row versions written, keys compared.
        checks: one outcome per check.
        situations: how often each occurred.
        unsupported: the features that the adapter refused, and how often.
        left_to_spark: why this process left steps to Spark, and how often.
        lacks: capabilities that the adapter does not declare.
        undeclared: capabilities that work, although the adapter does not declare them.
        versions: package -> version.
        interrupted: whether it ended before it had played what its budget has.
    """

    connector: str
    origin: str
    budget: str
    seed: int
    rounds: int
    spark: bool
    date: str
    seconds: float
    histories: int
    rows: int
    keys: int
    checks: tuple[Outcome, ...]
    situations: Mapping[str, int]
    unsupported: Mapping[str, int]
    left_to_spark: Mapping[str, int]
    lacks: Sequence[str]
    undeclared: Sequence[str]
    versions: Mapping[str, str]
    interrupted: bool = False

    @classmethod
    def of(cls, report: Report, origin: str = "", *, spark: bool = True) -> Results:
        """Return a report as a value."""
        tally = report.tally
        return cls(
            report.connector,
            origin,
            report.budget,
            report.seed,
            report.rounds,
            spark,
            datetime.now(UTC).date().isoformat(),
            round(report.seconds, 1),
            tally.histories,
            tally.rows,
            tally.keys,
            tuple(Outcome.of(result, report.connector) for result in report.results),
            dict(sorted(tally.coverage.counts.items())),
            dict(tally.unsupported),
            dict(tally.left),
            list(report.lacks),
            list(report.undeclared),
            {"python": platform.python_version(), **_versions()},
            report.interrupted,
        )

    @property
    def findings(self) -> list[tuple[Outcome, Finding]]:
        """Every finding that is no known gap, with its outcome."""
        return [(outcome, finding) for outcome in self.checks if not outcome.gap for finding in outcome.findings]

    def with_status(self, *statuses: str) -> list[str]:
        """Return the ids of the checks with one of these statuses."""
        return [outcome.id for outcome in self.checks if outcome.status in statuses]

    @property
    def verdict(self) -> str:
        """``conforms``, ``does not conform``, ``interrupted``, or ``inconclusive``."""
        if self.with_status("failed", "blocked"):
            return "does not conform"
        if self.interrupted:
            return "interrupted"
        return "inconclusive" if self.is_sample or self.with_status("inconclusive") else "conforms"

    @property
    def is_sample(self) -> bool:
        """True where the budget is too small to say that an adapter conforms."""
        return self.budget in BUDGETS and not BUDGETS[self.budget].decides

    @property
    def head(self) -> str:
        """One line: the run and its verdict."""
        how = "" if self.spark else " without Spark"
        return f"{self.connector} {self.verdict}: {self.budget}{how}, seed {self.seed}, {self.date}"

    @property
    def work(self) -> str:
        """The amount of work, in one line."""
        done = f"{self.histories} histories, {self.rows} row versions, {self.keys} keys compared"
        last = self.seed + SEEDS_OF_A_ROUND * (self.rounds - 1)
        rounds = f"{self.rounds} rounds, of seeds {self.seed} to {last} by {SEEDS_OF_A_ROUND}: "
        found = f", {len(self.findings)} findings"
        return f"{rounds if self.rounds > 1 else ''}{done}{found}, {self.seconds:.1f} s"

    def to_json(self) -> str:
        """Return the results as JSON."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Return the results that :meth:`to_json` wrote.

        Raises:
            ValueError: other text, or a report of another format.
        """
        try:
            data = json.loads(text)
            if (made := data.pop("format")) != _FORMAT:
                raise ValueError(f"it has format {made!r}; this program reads {_FORMAT}")
            return cls(**{**data, "checks": tuple(map(_outcome, data["checks"]))})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it lacks or adds something: {error!r}") from error


def load(path: Path) -> Results:
    """Return the results that a file keeps.

    Raises:
        ValueError: no such file, or it does not contain results.
    """
    try:
        return Results.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"'{path}' is not the JSON of a run (`run --report {path.stem}.json`): {error}") from error


def _outcome(data: Mapping[str, Any]) -> Outcome:
    missing = {name: (seen, wanted) for name, (seen, wanted) in data["missing"].items()}
    findings = tuple(Finding(**finding) for finding in data["findings"])
    return Outcome(**{**data, "rules": tuple(data["rules"]), "missing": missing, "findings": findings})


def _versions() -> Mapping[str, str]:
    """Return the versions of the packages that are installed; an author's environment may lack pyspark."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
