"""Plays a history on a subject and on the model, and compares what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

from trinity.errors import TrinityError
from trinity_conformance.coverage import Coverage
from trinity_conformance.differences import NonConformance, compare
from trinity_conformance.dml_model import DmlModel, Effect
from trinity_conformance.model import Key, Row, Version
from trinity_conformance.subject import Subject, Unsupported
from trinity_conformance.traces import (
    Change,
    Compact,
    Delete,
    History,
    Log,
    Query,
    Read,
    ReadPast,
    Reopen,
    Step,
    Upsert,
    Vacuum,
)
from trinity_conformance.values import equal_form, order_form

__all__ = ["Tally", "play"]

_CARE = frozenset({"compact", "vacuum", "reopen"})
_SHOWN_BY_A_READ = {
    **dict.fromkeys(_CARE, "care-invisible"),
    "retry": "idempotence",
    "delete": "delete",
    "split": "split",
}
"""What happened -> the check that a good read afterwards speaks for, beside read-equality."""


@dataclass
class Tally:
    """What a run has done so far.

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
        self.history = history
        self.model = DmlModel(history.shape)
        self.tally = tally
        self.number = -1
        self.since_read: list[str] = []
        self.versions: list[tuple[Any, int]] = []
        self.compacted_at: int | None = None
        self.vacuumed = False

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
            self.past_versions()
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

    def blame(self, op: str) -> str:
        """The check that an observation belongs to, by what happened since the last good read."""
        if op in ("query", "read-past", "log"):
            return {"query": "pushdown", "read-past": "time-travel", "log": "arrival-order"}[op]
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
            self.change(step)
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

    def upsert(self, step: Upsert) -> None:
        coverage = self.tally.coverage
        retry = step.txn is not None and self.model.is_recorded(step.txn)
        if retry:
            coverage.saw("retry", *(["retry-after-compaction"] if self.compacted_at is not None else []))
        else:
            several = sum(map(bool, step.splits)) > 1
            coverage.saw(step.path, *(["several-splits"] if several else []))
            coverage.arriving(self.model, [self.history.shape.decode_row(r) for r in step.rows])
        self.since_read.append("retry" if retry else "split" if len(step.splits) > 1 else "upsert")
        outcome = self.guarded("upsert", lambda: self.subject.upsert(step))
        done = self.model.upsert(step.rows, step.txn)
        if outcome.skipped == done:
            said, meant = ("skipped", "new") if outcome.skipped else ("not skipped", "recorded before")
            raise NonConformance("idempotence", f"upsert with txn={step.txn} was {said}, although it is {meant} (L4)")
        if done:
            self.versions.append((outcome.version, len(self.model.commits)))

    def delete(self, step: Delete) -> None:
        keys = step.keys
        outcome = self.guarded("delete", lambda: self.subject.delete(keys, step.condition))
        if step.condition is not None:
            hit = self.model.delete_where(step.condition)
        else:
            hit = self.model.delete_keys([self.key_form(k) for k in keys or ()])
        if hit:
            self.tally.coverage.saw("delete-by-condition" if step.condition else "delete-by-key")
            self.versions.append((outcome.version, len(self.model.commits)))
        self.since_read.append("delete")

    def change(self, step: Change) -> None:
        """A statement: its counts or its error, then the rows as a new session sees them (M1-M9)."""
        effect = self.model.effect(step.statement)
        still = effect.refused or not effect.counts.affected
        before = self.guarded("history", self.subject.history) if still else []
        check = "refused-change" if self.refuses(step, effect) else "row-change"
        self.tally.coverage.saw(*effect.saw)
        self.guarded("reopen", self.subject.reopen)
        found = self.guarded("read", self.subject.read)
        self.expect(check, self.model.merged(), found, "the table after the statement")
        if still and (after := self.guarded("history", self.subject.history)) != before:
            raise NonConformance(check, f"no row was changed, yet history() went from {before} to {after} (M5)")
        self.since_read.clear()

    def refuses(self, step: Change, effect: Effect) -> bool:
        """Runs a statement on both sides; True when the subject refused it, as it may."""
        try:
            counts = self.subject.change(step.statement)
        except TrinityError as error:
            if error.code in effect.codes:
                return True
            wanted = " or ".join(sorted(effect.codes)) or str(effect.counts)
            raise NonConformance("row-change", f"{error.code} instead of {wanted}: {error.message}") from error
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:1500]}"
            raise NonConformance("row-change", f"a statement raised {text}") from error
        if effect.refused:
            why = "; ".join(f"{f.rule}: {f.why}" for f in effect.faults)
            raise NonConformance("refused-change", f"{counts} instead of {sorted(effect.codes)} ({why})")
        if counts != effect.counts:
            raise NonConformance("row-change", f"{counts} instead of {effect.counts} (M5)")
        self.model.apply(effect)
        return False

    def key_form(self, key: Sequence[Any]) -> Key:
        shape = self.history.shape
        names = [c.name for c in shape.columns if c.name in shape.key]
        row = shape.decode_row(tuple(dict(zip(names, key, strict=True)).get(n) for n in shape.names))
        return self.model.key_of(row)

    def care(self, step: Step) -> None:
        if isinstance(step, Compact):
            self.guarded("compact", lambda: self.subject.compact(step.full))
            self.model.compact(step.full)
            self.compacted_at = len(self.model.commits)
            self.tally.coverage.compacted(self.model)
        elif isinstance(step, Vacuum):
            self.guarded("vacuum", self.subject.vacuum)
            self.vacuumed = True
            self.tally.coverage.saw("vacuum")
        else:
            self.guarded("reopen", self.subject.reopen)
            if self.subject.durable:
                self.tally.coverage.saw("reopen")
        self.since_read.append(step.op)

    # -- observations -----------------------------------------------------------------------------------

    def read(self) -> None:
        check = self.blame("read")
        found = self.guarded("read", self.subject.read)
        self.expect(check, self.model.merged(), found, "merged read")
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

    def query(self, step: Query) -> None:
        found = self.guarded("query", lambda: self.subject.read(condition=step.condition, columns=step.columns))
        self.tally.coverage.saw("query")
        text = f"SELECT {', '.join(step.columns)} WHERE {step.condition.sql(self.history.shape)}"
        self.expect("pushdown", self.model.query(step.condition), found, text, step.columns)

    def read_past(self, step: ReadPast) -> None:
        if not self.versions:
            return
        version, commits = self.versions[max(0, len(self.versions) - 1 - step.back)]
        timestamp = None
        if step.by == "timestamp":
            timestamp = dict(self.guarded("read-past", self.subject.history)).get(version)
            if timestamp is None:
                self.gone(version)
                return
        found = self.past_rows(version, timestamp)
        if found is None:
            return
        self.tally.coverage.saw(f"past-{step.by}")
        if self.compacted_at is not None and commits <= self.compacted_at:
            self.tally.coverage.saw("past-before-compaction")
        self.expect("time-travel", self.model.merged(commits), found, f"version {version} by {step.by}")

    def past_rows(self, version: Any, timestamp: datetime | None) -> list[Row] | None:
        """The rows of an earlier version; None when vacuum removed it, as it may (L10)."""
        try:
            return self.subject.read(version=version if timestamp is None else None, timestamp=timestamp)
        except TrinityError as error:
            if not self.vacuumed or error.code != "INVALID_ARGUMENTS":
                raise NonConformance("time-travel", f"reading version {version} raised {error}") from error
            self.names_oldest(error)
            return None

    def gone(self, version: Any) -> None:
        if not self.vacuumed:
            raise NonConformance("time-travel", f"history() does not list version {version}, and nothing was vacuumed")

    def names_oldest(self, error: TrinityError) -> None:
        oldest = self.guarded("read-past", self.subject.history)[0][0]
        if str(oldest) not in error.message:
            raise NonConformance(
                "time-travel",
                f"a vacuumed version is refused without naming the oldest readable one, {oldest}: {error}",
            )

    def past_versions(self) -> None:
        """Versions and times strictly increase, and no commit is missing (L10)."""
        listed = self.guarded("read-past", self.subject.history)
        self.tally.coverage.saw("history")
        self.tally.observations["time-travel"] += 1
        if any(not (a[0] < b[0] and a[1] < b[1]) for a, b in pairwise(listed)):
            raise NonConformance("time-travel", f"history() does not increase strictly: {listed}")
        for version in {version for version, _ in self.versions} - {version for version, _ in listed}:
            self.gone(version)

    def log(self) -> None:
        rows = self.guarded("log", self.subject.log)
        self.tally.coverage.saw("log")
        self.tally.observations["arrival-order"] += 1
        found = [[r.row for r in group] for _, group in groupby(rows, key=lambda r: r.commit)]
        wanted = [commit for commit in self.model.commits if commit]
        if [len(c) for c in found] != [len(c) for c in wanted]:
            counts = f"{[len(c) for c in found]} rows, not {[len(c) for c in wanted]}"
            raise NonConformance("arrival-order", f"log() has commits of {counts}")
        for number, (got, commit) in enumerate(zip(found, wanted, strict=True)):
            if not self.same_commit(got, commit):
                text = f"commit {number} of log() differs:\n  wanted {[v.row for v in commit]}\n  found  {got}"
                raise NonConformance("arrival-order", text)

    def same_commit(self, got: list[Row], commit: list[Version]) -> bool:
        """Row by row; of a delete only which keys it names, as the mark is the adapter's own."""
        if any(v.deleted for v in commit):
            return Counter(map(self.model.key_of, got)) == Counter(self.model.key_of(v.row) for v in commit)
        columns = [(c.name, c.type) for c in self.history.shape.columns]
        # between partitions there is no order in a commit, and none is needed: a key lies within one (K5)
        got = sorted(got, key=self.partition_of)
        wanted = sorted((v.row for v in commit), key=self.partition_of)
        return all(
            equal_form(t, g[n]) == equal_form(t, w[n]) for g, w in zip(got, wanted, strict=True) for n, t in columns
        )

    def partition_of(self, row: Row) -> tuple[Any, ...]:
        """Where a row lies; the same for all rows of a table without partitions."""
        shape = self.history.shape
        return tuple(order_form(c.type, row[c.name]) for c in shape.columns if c.name in shape.partition_by)
