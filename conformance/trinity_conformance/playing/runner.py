"""Plays a history on a subject and on the model, step by step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from trinity.errors import TrinityError
from trinity_conformance.model.programs import Effect
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.faulted import FAULTS_CHECK, Faulted
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.subject import LeftToSpark, Subject, Unsupported
from trinity_conformance.playing.traces import (
    Alter,
    Compact,
    Delete,
    History,
    Log,
    Other,
    Query,
    Read,
    ReadPast,
    Reopen,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)


def play(subject: Subject, history: History, tally: Tally | None = None, every_step: bool = False) -> None:
    """Play one history.

    Args:
        subject: the table under test.
        history: what happens to it.
        tally: counts work and situations.
        every_step: read after every step, not only where the history says so: this finds the step of a failure.

    Raises:
        NonConformance: the subject read or raised something else than the rules say.
        Unsupported: the adapter declared that it does not support tables of this shape.
    """
    run = _Run(subject, history, tally or Tally())
    try:
        run.play_all(every_step)
    except NonConformance as failure:
        failure.history, failure.step = history, run.number
        if run.went_wrong:
            failure.check = FAULTS_CHECK
        raise


def failure_of(subject: Subject, history: History, *, every_step: bool = True) -> NonConformance | None:
    """Play a history; return its failure, None where it passes or the subject cannot play it."""
    try:
        play(subject, history, every_step=every_step)
    except NonConformance as failure:
        return failure
    except (Unsupported, LeftToSpark):
        return None
    return None


class _Run(Faulted):
    """The steps of one history."""

    def play_all(self, every_step: bool) -> None:
        self.tally.coverage.start()
        self.guarded("create", lambda: self.subject.create(self.history.shape))
        for number, step in enumerate(self.history.steps):
            self.number = number
            self.unless_left(partial(self.turn, step))
            if every_step and self.since_read:
                self.unless_left(self.read)
        self.number = len(self.history.steps)
        if self.since_read or not self.history.steps:
            self.unless_left(self.read)
        if any(isinstance(s, ReadPast) for s in self.history.steps):
            self.tally.coverage.saw("history")
            self.tally.observations["time-travel"] += 1
            self.past.check()
        self.unless_left(self.changes)
        self.tally.coverage.folded(self.model)
        self.tally.histories += 1
        self.tally.rows += self.history.rows

    def unless_left(self, action: Callable[[], object]) -> None:
        """Run an action, but skip one that needs Spark where there is none; it has changed nothing."""
        with suppress(LeftToSpark):
            action()

    def turn(self, step: Step) -> None:
        """Take a step by its executor."""
        self.subject.executed_by(step.executor)
        left = self.subject.left.total()
        if step.fault is not None:
            self.faulted(step, step.fault)
        else:
            self.step(step)
        if isinstance(step, (Upsert, Delete, RowChangeStep, Compact, Resolve, Alter)):
            by = step.executor if self.subject.left.total() == left else "spark"
            self.tally.coverage.executed(by, step.op)

    def step(self, step: Step) -> None:
        if isinstance(step, Upsert):
            self.upsert(step)
        elif isinstance(step, Delete):
            self.delete(step)
        elif isinstance(step, RowChangeStep):
            self.change(step, self.model.effect(step.statement))
        elif isinstance(step, Alter):
            self.alter(step)
        elif isinstance(step, Resolve):
            self.resolve(step)
        elif isinstance(step, (Compact, Vacuum, Reopen)):
            self.maintenance(step)
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
        """Take a step of another engine; the model applies its changes to the stored rows."""
        inner, self.writer = step.step, self.subject.another(step.how)
        self.tally.coverage.saw(f"other {inner.op}")
        if isinstance(inner, RowChangeStep):
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
            coverage.saw(step.path)
            coverage.arriving(self.model, rows, self.compacted_at is not None)
        retract = not self.deduplicates and any(map(self.model.is_retract, rows))
        self.since_read.append(
            "retry" if retry else "retract" if retract else "split" if len(step.splits) > 1 else "upsert"
        )
        outcome = self.guarded("upsert", lambda: self.writer.upsert(step))
        coverage.saw(*(["several-files"] if outcome.files > 1 and not self.history.shape.partition_by else []))
        done = self.upserted(step, outcome.version)
        if outcome.skipped == done:
            reported, expected = ("skipped", "new") if outcome.skipped else ("not skipped", "recorded before")
            raise NonConformance(
                "idempotence", f"upsert with txn={step.txn} was {reported}, although it is {expected} (L4)"
            )

    def delete(self, step: Delete) -> None:
        keys = step.keys
        if step.condition is not None and self.model.overflows([step.condition.column]):
            return
        outcome = self.guarded("delete", lambda: self.subject.delete(keys, step.condition))
        if self.deleted(step, outcome.version):
            self.tally.coverage.saw("delete-by-condition" if step.condition else "delete-by-key")
        self.since_read.append("delete")

    def change(self, step: RowChangeStep, effect: Effect) -> None:
        """Check a statement: its counts or its error, then the rows as a new session sees them (M1-M9)."""
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

    def refuses(self, step: RowChangeStep, effect: Effect) -> bool:
        """Run a statement on both sides; return True when the subject refused it, as it may."""
        try:
            counts = self.writer.change(step.statement)
        except TrinityError as error:
            if error.code in effect.codes:
                return True
            wanted = " or ".join(sorted(effect.codes)) or str(effect.counts)
            text = f"{error.code} instead of {wanted}: {error.message}"
            raise NonConformance(self.check("row-change"), text) from error
        except LeftToSpark:
            raise
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
        """Alter the table, unless the format refuses the change as not supported."""
        try:
            self.guarded("alter", lambda: self.writer.alter(step.kind, step.columns))
        except Unsupported as reason:
            self.tally.unsupported[str(reason)] += 1
            return
        self.altered(step)
        self.tally.coverage.saw(f"alter {step.kind}")
        self.since_read.append("alter")

    def resolve(self, step: Resolve) -> None:
        """Resolve the table, unless the adapter cannot delete rows by position."""
        try:
            self.guarded("resolve", self.writer.resolve)
        except Unsupported as reason:
            self.tally.unsupported[str(reason)] += 1
            return
        self.resolved()
        self.since_read.append(step.op)

    def maintenance(self, step: Step) -> None:
        if isinstance(step, Compact):
            self.guarded("compact", lambda: self.writer.compact(step.full))
            self.compacted(step)
        elif isinstance(step, Vacuum):
            self.guarded("vacuum", self.writer.vacuum)
            self.vacuumed()
        else:
            self.guarded("reopen", self.subject.reopen)
            if self.subject.durable:
                self.tally.coverage.saw("reopen")
        self.since_read.append(step.op)
