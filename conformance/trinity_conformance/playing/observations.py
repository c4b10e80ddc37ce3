"""Reads of a history's table, and their comparison with the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from trinity.errors import TrinityError
from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.shapes import DEDUPLICATE
from trinity_conformance.model.tables import Key, Row
from trinity_conformance.playing.coverage import Coverage
from trinity_conformance.playing.differences import NonConformance, compare, compare_arrivals
from trinity_conformance.playing.feed import Played, check_feed
from trinity_conformance.playing.past import Past
from trinity_conformance.playing.subject import LeftToSpark, Subject, Unsupported, Writer
from trinity_conformance.playing.traces import History, Other, Query, ReadPast

_MAINTENANCE = frozenset({"compact", "resolve", "vacuum", "reopen"})
_OF_ENGINES = {
    "read-equality": "merge-engines",
    **dict.fromkeys(("delete", "row-change", "refused-change"), "engine-change"),
}
"""Check of deduplicate and plain tables -> the check of tables of the other merge engines."""
_SHOWN_BY_A_READ = {
    **dict.fromkeys(_MAINTENANCE, "maintenance-invisible"),
    "retry": "idempotence",
    "delete": "delete",
    "split": "split",
    "alter": "schema-change",
    "retract": "retracts",
}
"""A step that was played -> the check that a correct read after it supports, besides read-equality."""


@dataclass
class Tally:
    """Counts of a run so far.

    Attributes:
        histories: histories played to their end.
        rows: row versions written.
        keys: keys compared, summed over all reads.
        observations: comparisons made, by check id.
        coverage: situations seen.
        unsupported: messages of tables that the adapter declared it does not support.
        left: the reasons for which this process left steps to Spark.
        ended: id of a check whose time was over -> how many histories, programs or races had been played for it.
        stopped: id of a check that findings stopped, perhaps those of another check -> how many had been played for it.
    """

    histories: int = 0
    rows: int = 0
    keys: int = 0
    observations: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    unsupported: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    ended: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, int] = field(default_factory=dict)


class Observations:
    """One history as it is played: its state so far, and its comparisons.

    Attributes:
        writer: the engine of the present step: the subject, or another one.
        number: place of that step in the history.
        since_read: the steps since the last correct read.
        compacted_at, altered_at: number of the model's commits at the last compaction, and the last change of columns.
        cuts: (number of the model's commits, whether it was a full one) for each compaction.
        by_others: whether another engine writes, too.

    Raises, from all methods that read:
        NonConformance: the subject's rows or errors are not those of the rules.
    """

    def __init__(self, subject: Subject, history: History, tally: Tally) -> None:
        self.subject = subject
        self.writer: Writer = subject
        self.history = history
        self.model = model_of(history.shape)
        self.tally = tally
        self.number = -1
        self.since_read: list[str] = []
        self.past = Past(subject)
        self.compacted_at: int | None = None
        self.cuts: list[tuple[int, bool]] = []
        self.altered_at = -1
        self.deduplicates = history.shape.engine == DEDUPLICATE
        self.by_others = any(isinstance(step, Other) for step in history.steps)

    def guarded(self, op: str, action: Callable[[], Any]) -> Any:
        """Run a legal action: whatever it raises is a failure."""
        try:
            return action()
        except (NonConformance, Unsupported, LeftToSpark, KeyboardInterrupt):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:1500]}"
            raise NonConformance(self.blame(op), f"a legal {op} raised {text}") from error

    def check(self, name: str) -> str:
        """Return the check for tables of this merge engine."""
        return name if self.deduplicates else _OF_ENGINES.get(name, name)

    def blame(self, op: str) -> str:
        """Return the check that an observation belongs to, by the steps since the last correct read."""
        return self.check(self.blame_by_events(op))

    def blame_by_events(self, op: str) -> str:
        """Return what :meth:`blame` returns for a deduplicate table."""
        if op in ("query", "read-past", "log", "changes"):
            return {"query": "pushdown", "read-past": "time-travel", "log": "arrival-order", "changes": "changes"}[op]
        kinds = {*self.since_read, *([op] if op in _MAINTENANCE or op == "delete" else [])}
        if kinds and kinds <= _MAINTENANCE:
            return "maintenance-invisible"
        return _SHOWN_BY_A_READ.get(kinds.pop(), "read-equality") if len(kinds) == 1 else "read-equality"

    def newest(self) -> Any:
        """Return the newest version."""
        return self.guarded("history", self.subject.history)[-1][0]

    def read(self) -> None:
        """Compare the merged rows of the newest version."""
        check = self.blame("read")
        names = self.readable()
        found = self.guarded("read", lambda: self.subject.read(columns=names))
        self.expect(check, self.model.merged(), found, "merged read", names)
        shown = {"read-equality", *(_SHOWN_BY_A_READ[op] for op in self.since_read if op in _SHOWN_BY_A_READ)}
        shown |= {"executors"} if self.tally.coverage.took_turns else set()
        self.tally.observations.update(shown - {check})
        self.since_read.clear()

    def expect(
        self, check: str, wanted: Mapping[Key, Row], found: list[Row], what: str, columns: Sequence[str] | None = None
    ) -> None:
        """Compare rows that were read with the model's, for a check."""
        self.tally.observations[check] += 1
        self.tally.keys += len(wanted)
        difference = compare(self.model, wanted, found, columns)
        if difference is not None:
            raise NonConformance(check, f"{what}: {difference[0]}", difference[1])

    def readable(self) -> list[str] | None:
        """Return the columns that can be read, None for all; check that a read of the others fails by name (A4)."""
        overflows = self.model.overflows()
        if not overflows:
            return None
        self.tally.coverage.saw("out-of-range")
        self.tally.observations["out-of-range"] += 1
        try:
            found = self.subject.read()
        except TrinityError as error:
            if error.code != "NUMERIC_VALUE_OUT_OF_RANGE" or not _names(error.message, overflows):
                text = f"{error} names no key and column of {overflows} that is out of range"
                raise NonConformance("out-of-range", text, overflows) from error
        else:
            text = f"a read of {overflows} gave {found} instead of NUMERIC_VALUE_OUT_OF_RANGE"
            raise NonConformance("out-of-range", text, overflows)
        bad = {name for names in overflows.values() for name in names}
        return [name for name in self.history.shape.names if name not in bad]

    def query(self, step: Query) -> None:
        """Compare some columns of the rows that satisfy a condition."""
        if self.model.overflows([step.condition.column, *step.columns]):
            return
        found = self.guarded("query", lambda: self.subject.read(condition=step.condition, columns=step.columns))
        self.tally.coverage.saw("query")
        text = f"SELECT {', '.join(step.columns)} WHERE {step.condition.sql(self.history.shape)}"
        self.expect("pushdown", self.model.query(step.condition), found, text, step.columns)
        if not self.by_others and (wrong := self.guarded("query", self.subject.wrong_statistics)) is not None:
            raise NonConformance("pushdown", wrong)

    def read_past(self, step: ReadPast) -> None:
        """Compare the rows of an older version."""
        if not self.past.versions:
            return
        version, commits = self.past.before(step.back)
        if self.model.overflows(commits=commits):
            return
        timestamp = None
        if step.by == "timestamp":
            timestamp = self.past.time_of(version)
            if timestamp is None:
                return
        found = self.past.rows(version, timestamp)
        if found is None:
            return
        self.tally.coverage.saw(f"past-{step.by}")
        if self.compacted_at is not None and commits <= self.compacted_at:
            self.tally.coverage.saw("past-before-compaction")
        self.expect("time-travel", self.model.merged(commits), found, f"version {version} by {step.by}")

    def changes(self) -> None:
        """Compare the feed of a keyed table that no other engine wrote to."""
        if not self.history.shape.key or self.by_others:
            return
        played = Played(self.model, self.past, self.cuts, self.altered_at)
        try:
            saw = check_feed(played, lambda after: self.guarded("changes", lambda: self.subject.changes(after)))
        except Unsupported as reason:
            self.tally.unsupported[str(reason)] += 1
            return
        self.tally.observations["changes"] += bool(saw)
        self.tally.coverage.saw(*saw)

    def log(self) -> None:
        """Compare the stored row versions in arrival order."""
        rows = self.guarded("log", self.subject.log)
        self.tally.coverage.saw("log")
        self.tally.observations["arrival-order"] += 1
        found = [[r.row for r in group] for _, group in groupby(rows, key=lambda r: r.commit)]
        difference = compare_arrivals(self.model, found)
        if difference is not None:
            raise NonConformance("arrival-order", difference)


def _names(message: str, overflows: Mapping[Key, set[str]]) -> bool:
    """Return whether a message names a column out of range, and its key, where keys have one spelling."""
    return any(
        any(name in message for name in names)
        and all(str(part) in message for part in key if isinstance(part, (int, str)))
        for key, names in overflows.items()
    )
