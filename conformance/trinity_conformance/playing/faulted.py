"""Steps in which something goes wrong: afterwards the table is as before the step, or as after it (L6).

What the adapter tells has to be so: success only for a step that stands, an error only for one that does not, but for
COMMIT_STATE_UNKNOWN, and for the end of the process, which tells nothing. A retry makes the table as after the step; an
upsert is retried with its transaction, and must not count twice (L4).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from trinity.errors import TrinityError
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.effects import Effects
from trinity_conformance.playing.faults import Crashed, Meeting
from trinity_conformance.playing.subject import LeftToSpark, Outcome, Unsupported
from trinity_conformance.playing.traces import (
    Change,
    Compact,
    Delete,
    Fault,
    Query,
    Read,
    Resolve,
    Step,
    Upsert,
    Vacuum,
)

__all__ = ["FAULTS_CHECK", "Faulted"]

FAULTS_CHECK: Final = "faults"
_UNKNOWN: Final = "COMMIT_STATE_UNKNOWN"
_TOLD: Final = ("FILESYSTEM_ERROR", "PERMISSION_DENIED", _UNKNOWN)
"""Codes by which a fault of the storage may be told."""
_CRASHED: Final = "the process ended"


class Faulted(Effects):
    """The steps of one history in which something goes wrong.

    Attributes:
        met: True once something did.
    """

    met = False

    @abstractmethod
    def step(self, step: Step) -> None:
        """Take a step in which nothing goes wrong."""

    def faulted(self, step: Step, fault: Fault) -> None:
        """Take a step in which something may go wrong."""
        plain = replace(step, fault=None)
        if (act := self._act(step)) is None:
            self.step(plain)
            return
        before = self._newest()
        with self.subject.meeting(fault) as meeting:
            told, done = self._told(step, act, meeting)
        if meeting.met:
            self.met = True
            self.tally.coverage.saw("fault", f"fault {fault.kind}", *(["fault at the commit"] * meeting.at_point))
        if isinstance(step, (Read, Query)):
            self._compare_read(step, told, done, meeting)
            self.step(plain)
            return
        if told == _CRASHED:
            self.guarded("reopen", self.subject.reopen)
        now = self._newest()
        stands = told == "" or now != before
        if stands:
            self._stands(plain, done.version if isinstance(done, Outcome) else now)
        self._compare(meeting, told, stands=stands, may_stand=isinstance(step, Vacuum))
        if told and (not stands or _may_be_repeated(step)):
            self.step(plain)
            self.expect(FAULTS_CHECK, self.model.merged(), self._read(), f"{meeting.met}; after a retry")

    def _act(self, step: Step) -> Callable[[], Any] | None:
        """Return what a step asks of the subject; None for a step that nothing can happen to."""
        subject = self.subject
        match step:
            case Upsert():
                return lambda: subject.upsert(step)
            case Delete():
                return lambda: subject.delete(step.keys, step.condition)
            case Change() if self._changes(step):
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

    def _changes(self, step: Change) -> bool:
        """Return whether a statement is neither refused nor about no rows."""
        effect = self.model.effect(step.statement)
        return not effect.refused and effect.counts.affected > 0

    def _told(self, step: Step, act: Callable[[], Any], meeting: Meeting) -> tuple[str, Any]:
        """Return the code that was told, empty for success, and what was returned."""
        try:
            return "", act()
        except Crashed:
            return _CRASHED, None
        except (Unsupported, LeftToSpark):
            raise
        except Exception as error:
            if not meeting.met:
                raise NonConformance(self.blame(step.op), f"a legal {step.op} raised {_text(error)}") from error
            if not isinstance(error, TrinityError) or error.code not in _TOLD:
                told = f"{meeting.met}; told as {_text(error)}, where {' or '.join(_TOLD)} is so"
                raise NonConformance(FAULTS_CHECK, told) from error
            return error.code, None

    def _compare_read(self, step: Read | Query, told: str, found: Any, meeting: Meeting) -> None:
        """Compare what a read returned although something went wrong."""
        if told:
            return
        wanted = self.model.query(step.condition) if isinstance(step, Query) else self.model.merged()
        columns = step.columns if isinstance(step, Query) else None
        self.expect(FAULTS_CHECK, wanted, found, f"{meeting.met}; what the read returned", columns)

    def _stands(self, step: Step, version: Any) -> None:
        """Note a step that took effect."""
        match step:
            case Upsert():
                self.upserted(step, version)
            case Delete():
                self.deleted(step, version)
            case Change():
                self.model.apply(self.model.effect(step.statement))
            case Compact():
                self.compacted(step)
            case Resolve():
                self.resolved()
            case Vacuum():
                self.vacuumed()

    def _compare(self, meeting: Meeting, told: str, *, stands: bool, may_stand: bool) -> None:
        """Compare the table with the model, in the session and in a new one."""
        what = f"{meeting.met or 'no fault'}; told: {told or 'success'}; the table {'after' if stands else 'before'} it"
        self.expect(FAULTS_CHECK, self.model.merged(), self._read(), what)
        if told == _CRASHED:
            elsewhere = self.guarded("read", self.subject.read_elsewhere)
            if elsewhere is not None:
                self.tally.coverage.saw("read by a fresh process")
                self.expect(FAULTS_CHECK, self.model.merged(), elsewhere, f"{what}, in a fresh process")
        if told != _CRASHED and self.subject.durable:
            self.guarded("reopen", self.subject.reopen)
            self.expect(FAULTS_CHECK, self.model.merged(), self._read(), f"{what}, in a new session")
        if stands and told not in ("", _CRASHED, _UNKNOWN) and not may_stand:
            raise NonConformance(FAULTS_CHECK, f"{meeting.met}; told as {told}, although it is committed")

    def _read(self) -> Any:
        return self.guarded("read", self.subject.read)

    def _newest(self) -> Any:
        return self.guarded("history", self.subject.history)[-1][0]


def _may_be_repeated(step: Step) -> bool:
    """Return whether a step that took effect may be taken again."""
    return step.txn is not None if isinstance(step, Upsert) else not isinstance(step, Change)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:600]}"
