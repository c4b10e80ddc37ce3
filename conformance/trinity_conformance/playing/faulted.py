"""Steps in which something goes wrong: afterwards the table is as before the step, or as after it (L6).

What the adapter reports has to be true: success only for a step that took effect, an error only for one that did not.
COMMIT_STATE_UNKNOWN leaves it open, and so does the end of the process, which reports nothing. A retry makes the table
as after the step; an upsert is retried with its transaction, and must not count twice (L4).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from trinity.errors import TrinityError
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.effects import Effects
from trinity_conformance.playing.faults import Crashed, Injection
from trinity_conformance.playing.subject import LeftToSpark, Outcome, Unsupported
from trinity_conformance.playing.traces import (
    Compact,
    Delete,
    Fault,
    Query,
    Read,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)

FAULTS_CHECK: Final = "faults"
_UNKNOWN: Final = "COMMIT_STATE_UNKNOWN"
_REPORTED: Final = ("FILESYSTEM_ERROR", "PERMISSION_DENIED", _UNKNOWN)
"""Codes by which a fault of the storage may be reported."""
_CRASHED: Final = "the process ended"


class Faulted(Effects):
    """The steps of one history in which something goes wrong.

    Attributes:
        went_wrong: True once something did.
    """

    went_wrong = False

    @abstractmethod
    def step(self, step: Step) -> None:
        """Take a step in which nothing goes wrong."""

    def faulted(self, step: Step, fault: Fault) -> None:
        """Take a step in which something may go wrong."""
        plain = replace(step, fault=None)
        if (act := self._act(step)) is None:
            self.step(plain)
            return
        before = self.newest()
        with self.subject.inject(fault) as injection:
            reported, done = self._report_of(step, act, injection)
        if injection.operation:
            self.went_wrong = True
            self.tally.coverage.saw("fault", f"fault {fault.kind}", *(["fault at the commit"] * injection.at_point))
        if isinstance(step, (Read, Query)):
            self._compare_read(step, reported, done, injection)
            self.step(plain)
            return
        if reported == _CRASHED:
            self.guarded("reopen", self.subject.reopen)
        now = self.newest()
        stands = reported == "" or now != before
        if stands:
            self._stands(plain, done.version if isinstance(done, Outcome) else now)
        self._compare(injection, reported, stands=stands, may_stand=isinstance(step, Vacuum))
        if reported and (not stands or _may_be_repeated(step)):
            self.step(plain)
            self.expect(FAULTS_CHECK, self.model.merged(), self._read(), f"{injection.operation}; after a retry")

    def _act(self, step: Step) -> Callable[[], Any] | None:
        """Return the call that a step makes; None for a step that no fault can affect."""
        subject = self.subject
        match step:
            case Upsert():
                return lambda: subject.upsert(step)
            case Delete():
                return lambda: subject.delete(step.keys, step.condition)
            case RowChangeStep() if self._changes(step):
                return lambda: subject.change(step.statement)
            case Compact():
                return lambda: subject.compact(step.full)
            case Resolve():
                return subject.resolve
            case Vacuum():
                return subject.vacuum
            case Read():
                return subject.read
            case Query():
                return lambda: subject.read(condition=step.condition, columns=step.columns)
        return None

    def _changes(self, step: RowChangeStep) -> bool:
        """Return whether a statement is neither refused nor about no rows."""
        effect = self.model.effect(step.statement)
        return not effect.refused and effect.counts.affected > 0

    def _report_of(self, step: Step, act: Callable[[], Any], injection: Injection) -> tuple[str, Any]:
        """Return the reported error code, empty for success, and the result."""
        try:
            return "", act()
        except Crashed:
            return _CRASHED, None
        except (Unsupported, LeftToSpark):
            raise
        except Exception as error:
            if not injection.operation:
                raise NonConformance(self.blame(step.op), f"a legal {step.op} raised {_text(error)}") from error
            if not isinstance(error, TrinityError) or error.code not in _REPORTED:
                reported = f"{injection.operation}; reported as {_text(error)}, where {' or '.join(_REPORTED)} is right"
                raise NonConformance(FAULTS_CHECK, reported) from error
            return error.code, None

    def _compare_read(self, step: Read | Query, reported: str, found: Any, injection: Injection) -> None:
        """Compare the rows of a read that succeeded despite the fault."""
        if reported:
            return
        wanted = self.model.query(step.condition) if isinstance(step, Query) else self.model.merged()
        columns = step.columns if isinstance(step, Query) else None
        self.expect(FAULTS_CHECK, wanted, found, f"{injection.operation}; what the read returned", columns)

    def _stands(self, step: Step, version: Any) -> None:
        """Note a step that took effect."""
        match step:
            case Upsert():
                self.upserted(step, version)
            case Delete():
                self.deleted(step, version)
            case RowChangeStep():
                self.model.apply(self.model.effect(step.statement))
            case Compact():
                self.compacted(step)
            case Resolve():
                self.resolved()
            case Vacuum():
                self.vacuumed()

    def _compare(self, injection: Injection, reported: str, *, stands: bool, may_stand: bool) -> None:
        """Compare the table with the model, in the session and in a new one."""
        place = "after" if stands else "before"
        what = f"{injection.operation or 'no fault'}; reported: {reported or 'success'}; the table {place} it"
        self.expect(FAULTS_CHECK, self.model.merged(), self._read(), what)
        if reported == _CRASHED:
            elsewhere = self.guarded("read", self.subject.read_elsewhere)
            if elsewhere is not None:
                self.tally.coverage.saw("read by a fresh process")
                self.expect(FAULTS_CHECK, self.model.merged(), elsewhere, f"{what}, in a fresh process")
        if reported != _CRASHED and self.subject.durable:
            self.guarded("reopen", self.subject.reopen)
            self.expect(FAULTS_CHECK, self.model.merged(), self._read(), f"{what}, in a new session")
        if stands and reported not in ("", _CRASHED, _UNKNOWN) and not may_stand:
            raise NonConformance(
                FAULTS_CHECK, f"{injection.operation}; reported as {reported}, although it is committed"
            )

    def _read(self) -> Any:
        return self.guarded("read", self.subject.read)


def _may_be_repeated(step: Step) -> bool:
    """Return whether a step that took effect may be taken again."""
    return step.txn is not None if isinstance(step, Upsert) else not isinstance(step, RowChangeStep)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:600]}"
