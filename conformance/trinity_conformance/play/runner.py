"""Plays a history on a subject and on the model, and compares what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from trinity.errors import TrinityError
from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.programs import Effect
from trinity_conformance.model.shapes import DEDUPLICATE
from trinity_conformance.model.tables import Key, Row
from trinity_conformance.play.coverage import Coverage
from trinity_conformance.play.differences import NonConformance, compare, compare_arrivals
from trinity_conformance.play.feed import check_feed
from trinity_conformance.play.past import Past
from trinity_conformance.play.subject import Subject, Unsupported, Writer
from trinity_conformance.play.traces import (
    Alter,
    Change,
    Compact,
    Delete,
    History,
    Log,
    Other,
    Query,
    Read,
    ReadPast,
    Reopen,
    Step,
    Upsert,
    Vacuum,
)

__all__ = ["Tally", "play"]

_CARE = frozenset({"compact", "vacuum", "reopen"})
_OF_ENGINES = {
    "read-equality": "merge-engines",
    **dict.fromkeys(("delete", "row-change", "refused-change"), "engine-change"),
}
"""Checks of deduplicate and plain tables -> those of tables of the other merge engines."""
_SHOWN_BY_A_READ = {
    **dict.fromkeys(_CARE, "care-invisible"),
    "retry": "idempotence",
    "delete": "delete",
    "split": "split",
    "alter": "schema-change",
    "retract": "retracts",
}
"""A step that was played -> the check that a good read afterwards speaks for, beside read-equality."""


@dataclass
class Tally:
    """Counts of a run so far.

    Attributes:
        histories: histories played to their end.
        rows: row versions written.
        keys: keys compared, summed over all reads.
        observations: comparisons made, by check id.
        coverage: situations met.
        unsupported: messages of tables that the adapter declared it does not support.
    """

    histories: int = 0
    rows: int = 0
    keys: int = 0
    observations: Counter[str] = field(default_factory=Counter)
    coverage: Coverage = field(default_factory=Coverage)
    unsupported: Counter[str] = field(default_factory=Counter)


def play(subject: Subject, history: History, tally: Tally | None = None, every_step: bool = False) -> None:
    """Plays one history.

    Args:
        subject: the table under test.
        history: what happens to it.
        tally: where work and situations are counted.
        every_step: read after every step, not only where the history says so: finds the step that a failure belongs to.

    Raises:
        NonConformance: the subject read or raised something else than the rules say.
        Unsupported: the adapter declared that it has no tables of this shape.
    """
    run = _Run(subject, history, tally or Tally())
    try:
        run.whole(every_step)
    except NonConformance as failure:
        failure.history, failure.step = history, run.number
        raise


class _Run:
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
        self.altered_at = -1
        self.deduplicates = history.shape.engine == DEDUPLICATE

    def whole(self, every_step: bool) -> None:
        self.tally.coverage.start()
        self.guarded("create", lambda: self.subject.create(self.history.shape))
        for number, step in enumerate(self.history.steps):
            self.number = number
            self.step(step)
            if every_step and self.since_read:
                self.read()
        self.number = len(self.history.steps)
        if self.since_read or not self.history.steps:
            self.read()
        if any(isinstance(s, ReadPast) for s in self.history.steps):
            self.tally.coverage.saw("history")
            self.tally.observations["time-travel"] += 1
            self.past.check()
        self.changes()
        self.tally.coverage.folded(self.model)
        self.tally.histories += 1
        self.tally.rows += self.history.rows

    def guarded(self, op: str, action: Callable[[], Any]) -> Any:
        """Runs what is legal: whatever it raises is a finding."""
        try:
            return action()
        except (Unsupported, KeyboardInterrupt):
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:1500]}"
            raise NonConformance(self.blame(op), f"a legal {op} raised {text}") from error

    def check(self, name: str) -> str:
        """The check for tables of this merge engine."""
        return name if self.deduplicates else _OF_ENGINES.get(name, name)

    def blame(self, op: str) -> str:
        """The check that an observation belongs to, by what happened since the last good read."""
        return self.check(self.blame_by_events(op))

    def blame_by_events(self, op: str) -> str:
        """The same, as for a deduplicate table."""
        if op in ("query", "read-past", "log", "changes"):
            return {"query": "pushdown", "read-past": "time-travel", "log": "arrival-order", "changes": "changes"}[op]
        kinds = {*self.since_read, *([op] if op in _CARE or op == "delete" else [])}
        if kinds and kinds <= _CARE:
            return "care-invisible"
        return _SHOWN_BY_A_READ.get(kinds.pop(), "read-equality") if len(kinds) == 1 else "read-equality"

    # -- steps ------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        if isinstance(step, Upsert):
            self.upsert(step)
        elif isinstance(step, Delete):
            self.delete(step)
        elif isinstance(step, Change):
            self.change(step, self.model.effect(step.statement))
        elif isinstance(step, Alter):
            self.alter(step)
        elif isinstance(step, (Compact, Vacuum, Reopen)):
            self.care(step)
        elif isinstance(step, Read):
            self.read()
        elif isinstance(step, Query):
            self.query(step)
        elif isinstance(step, ReadPast):
            self.read_past(step)
        elif isinstance(step, Log) and self.compacted_at is None:
            self.log()
        elif isinstance(step, Other):
            self.other(step)

    def other(self, step: Other) -> None:
        """A step of another engine: of its changes the model knows that they are made to stored rows."""
        inner, self.writer = step.step, self.subject.another(step.how)
        self.tally.coverage.saw(f"other {inner.op}")
        if isinstance(inner, Change):
            self.change(inner, self.model.effect_in_place(inner.statement))
        else:
            self.past.by_other = self.past.by_other or isinstance(inner, Vacuum)
            self.step(inner)
        self.writer = self.subject

    def upsert(self, step: Upsert) -> None:
        coverage = self.tally.coverage
        rows = [self.history.shape.decode_row(r, step.names) for r in step.rows]
        retry = step.txn is not None and self.model.is_recorded(step.txn)
        if retry:
            coverage.saw("retry", *(["retry-after-compaction"] if self.compacted_at is not None else []))
        else:
            several = sum(map(bool, step.splits)) > 1
            coverage.saw(step.path, *(["several-splits"] if several else []))
            coverage.arriving(self.model, rows, self.compacted_at is not None)
        retract = not self.deduplicates and any(map(self.model.is_retract, rows))
        self.since_read.append(
            "retry" if retry else "retract" if retract else "split" if len(step.splits) > 1 else "upsert"
        )
        outcome = self.guarded("upsert", lambda: self.writer.upsert(step))
        done = self.model.upsert(step.rows, step.txn, step.names)
        if outcome.skipped == done:
            said, meant = ("skipped", "new") if outcome.skipped else ("not skipped", "recorded before")
            raise NonConformance("idempotence", f"upsert with txn={step.txn} was {said}, although it is {meant} (L4)")
        if done:
            self.past.versions.append((outcome.version, len(self.model.commits)))

    def delete(self, step: Delete) -> None:
        keys = step.keys
        if step.condition is not None and self.model.overflows([step.condition.column]):
            return
        outcome = self.guarded("delete", lambda: self.subject.delete(keys, step.condition))
        if step.condition is not None:
            hit = self.model.delete_where(step.condition)
        else:
            hit = self.model.delete_keys([self.model.key_form(k) for k in keys or ()])
        if hit:
            self.tally.coverage.saw("delete-by-condition" if step.condition else "delete-by-key")
            self.past.versions.append((outcome.version, len(self.model.commits)))
        self.since_read.append("delete")

    def change(self, step: Change, effect: Effect) -> None:
        """A statement: its counts or its error, then the rows as a new session sees them (M1-M9)."""
        if self.model.overflows():
            return
        still = effect.refused or not effect.counts.affected
        before = self.guarded("history", self.subject.history) if still else []
        check = self.check("refused-change" if self.refuses(step, effect) else "row-change")
        self.tally.coverage.saw(*effect.saw)
        self.guarded("reopen", self.subject.reopen)
        names = self.readable()
        found = self.guarded("read", lambda: self.subject.read(columns=names))
        self.expect(check, self.model.merged(), found, "the table after the statement", names)
        if still and (after := self.guarded("history", self.subject.history)) != before:
            raise NonConformance(check, f"no row was changed, yet history() went from {before} to {after} (M5)")
        self.since_read.clear()

    def refuses(self, step: Change, effect: Effect) -> bool:
        """Runs a statement on both sides; True when the subject refused it, as it may."""
        try:
            counts = self.writer.change(step.statement)
        except TrinityError as error:
            if error.code in effect.codes:
                return True
            wanted = " or ".join(sorted(effect.codes)) or str(effect.counts)
            text = f"{error.code} instead of {wanted}: {error.message}"
            raise NonConformance(self.check("row-change"), text) from error
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:1500]}"
            raise NonConformance(self.check("row-change"), f"a statement raised {text}") from error
        if effect.refused:
            why = "; ".join(f"{f.rule}: {f.why}" for f in effect.faults)
            text = f"{counts} instead of {sorted(effect.codes)} ({why})"
            raise NonConformance(self.check("refused-change"), text)
        if counts != effect.counts:
            raise NonConformance(self.check("row-change"), f"{counts} instead of {effect.counts} (M5)")
        self.model.apply(effect)
        return False

    def alter(self, step: Alter) -> None:
        """A format that cannot make the change says so, and is not asked for it."""
        try:
            self.guarded("alter", lambda: self.writer.alter(step.kind, step.columns))
        except Unsupported as reason:
            self.tally.unsupported[str(reason)] += 1
            return
        self.model.alter(step.kind, step.columns)
        self.altered_at = len(self.model.commits)
        self.tally.coverage.saw(f"alter {step.kind}")
        self.since_read.append("alter")

    def care(self, step: Step) -> None:
        if isinstance(step, Compact):
            self.guarded("compact", lambda: self.writer.compact(step.full))
            self.model.compact(step.full)
            self.compacted_at = len(self.model.commits)
            self.tally.coverage.compacted(self.model)
        elif isinstance(step, Vacuum):
            self.guarded("vacuum", self.writer.vacuum)
            self.past.vacuumed = True
            self.tally.coverage.saw("vacuum")
        else:
            self.guarded("reopen", self.subject.reopen)
            if self.subject.durable:
                self.tally.coverage.saw("reopen")
        self.since_read.append(step.op)

    # -- observations -----------------------------------------------------------------------------------

    def read(self) -> None:
        check = self.blame("read")
        names = self.readable()
        found = self.guarded("read", lambda: self.subject.read(columns=names))
        self.expect(check, self.model.merged(), found, "merged read", names)
        shown = {"read-equality", *(_SHOWN_BY_A_READ[op] for op in self.since_read if op in _SHOWN_BY_A_READ)}
        self.tally.observations.update(shown - {check})
        self.since_read.clear()

    def expect(
        self, check: str, wanted: Mapping[Key, Row], found: list[Row], what: str, columns: Sequence[str] | None = None
    ) -> None:
        self.tally.observations[check] += 1
        self.tally.keys += len(wanted)
        difference = compare(self.model, wanted, found, columns)
        if difference is not None:
            raise NonConformance(check, f"{what}: {difference[0]}", difference[1])

    def readable(self) -> list[str] | None:
        """The columns that can be read, None for all; of the others the read must fail by name (A4)."""
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
        if self.model.overflows([step.condition.column, *step.columns]):
            return
        found = self.guarded("query", lambda: self.subject.read(condition=step.condition, columns=step.columns))
        self.tally.coverage.saw("query")
        text = f"SELECT {', '.join(step.columns)} WHERE {step.condition.sql(self.history.shape)}"
        self.expect("pushdown", self.model.query(step.condition), found, text, step.columns)

    def read_past(self, step: ReadPast) -> None:
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
        """The feed since the oldest version whose rows have the columns of now."""
        if not self.history.shape.key or any(isinstance(s, Other) for s in self.history.steps):
            return
        listed = {version for version, _ in self.past.listed()}
        known = [(v, n) for v, n in self.past.versions if n > self.altered_at and v in listed]
        start = known[0][1] if known else 0
        if len(known) < 2 or any(self.model.overflows(commits=n) for n in range(start, len(self.model.commits) + 1)):
            return
        try:
            feed = self.guarded("changes", lambda: self.subject.changes(known[0][0]))
        except Unsupported as reason:
            self.tally.unsupported[str(reason)] += 1
            return
        check_feed(self.model, known, feed)
        self.tally.observations["changes"] += 1
        over = self.compacted_at is not None and self.compacted_at >= start
        self.tally.coverage.saw("changes", *(["changes-over-compaction"] if over else []))

    def log(self) -> None:
        rows = self.guarded("log", self.subject.log)
        self.tally.coverage.saw("log")
        self.tally.observations["arrival-order"] += 1
        found = [[r.row for r in group] for _, group in groupby(rows, key=lambda r: r.commit)]
        difference = compare_arrivals(self.model, found)
        if difference is not None:
            raise NonConformance("arrival-order", difference)


def _names(message: str, overflows: Mapping[Key, set[str]]) -> bool:
    """True when a message names a column that is out of range, and its key, as far as keys have one spelling."""
    return any(
        any(name in message for name in names)
        and all(str(part) in message for part in key if isinstance(part, (int, str)))
        for key, names in overflows.items()
    )
