"""Make an operation of storage, a call of the adapter's metadata, or a task of its sinks fail.

A process that ends is played in this one: the operation raises :class:`Crashed`, which nothing catches, and no
operation after it has any effect, so nothing is tidied up. Errors, lost answers and repeated requests are what a store
may give by the contract of :class:`~trinity.storage.ObjectStore`: a put is whole or not at all, and one of unknown
outcome is COMMIT_STATE_UNKNOWN.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from trinity.storage.errors import OutcomeUnknown
from trinity.storage.store import watched_by
from trinity_conformance.playing.operations import STOPS, Operations
from trinity_conformance.playing.traces import Fault

if TYPE_CHECKING:
    from trinity.spi import Connector

T = TypeVar("T")

_COMMITS: Final = (
    "finish_insert", "finish_merge", "finish_rewrite", "finish_resolve", "finish_replace", "truncate", "vacuum",
)  # fmt: skip
"""The calls that commit."""
_POINTS: Final = frozenset(("put", "replace", "move"))
"""The operations of a store by which a commit may take effect."""
_ELSEWHERE: Final = "commit"
"""The operation by which a commit takes effect elsewhere, as in a database."""


class Crashed(BaseException):
    """The process has ended, as far as the adapter can tell."""


@dataclass
class Injection:
    """A fault that is injected into one of the operations of a step.

    Attributes:
        fault: what goes wrong; None for nothing.
        operation: the operation that went wrong, in words; empty as long as none did.
        seen: (operation, kinds of faults that it can have) of all operations, in their order.
        at_point: True when it was an operation by which a commit may take effect.
    """

    fault: Fault | None = None
    operation: str = ""
    seen: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    at_point: bool = False
    _points: set[str] = field(default_factory=set)
    """The operations by which a commit may have taken effect, of all calls that commit."""
    _within: int = 0
    _dead: bool = False
    _mutex: Any = field(default_factory=threading.RLock)
    """A reentrant lock, as garbage collection may close a stream, which is counted, at any time."""

    def do(
        self,
        verb: str,
        what: str,
        kinds: frozenset[str],
        act: Callable[[], T],
        torn: Callable[[], object] | None = None,
    ) -> T:
        """Do an operation, or have it go wrong. Arguments as for ``OperationRunner.do``."""
        kind = self._turn(verb, what, kinds | ({"torn"} if torn else set()))
        if kind == "crash before":
            self._die()
        if kind == "torn" and torn is not None:
            torn()
            self._die()
        if kind == "unknown":
            raise OutcomeUnknown("no answer came, and nobody can be asked")
        if kind == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        done = act()
        if kind == "crash after":
            self._die()
        if kind == "twice":
            return act()
        if kind == "error after":
            if "unknown" in kinds:
                raise OutcomeUnknown("no answer came, and nobody can be asked")
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return done

    def commit(self, what: str, act: Callable[[], T]) -> T:
        """Do a commit that is no operation of a store; the process may end before or after it."""
        return self.do(_ELSEWHERE, what, STOPS, act)

    def repeats(self, task: str) -> bool:
        """Return whether a task of the sinks is run twice."""
        return self._turn("run", task, frozenset(("twice",))) == "twice"

    @property
    def in_storage(self) -> bool:
        """True when commits took effect by operations of a store.

        If a commit takes effect elsewhere, objects put within the same call are only what it points to, such as
        Iceberg's metadata.
        """
        return bool(self._points) and _ELSEWHERE not in self._points

    @property
    def over(self) -> bool:
        """True once the process has ended: closing files afterwards has no effect."""
        return self._dead

    @contextmanager
    def within_commit(self) -> Iterator[None]:
        """Note that a call that commits is under way."""
        self._within += 1
        try:
            yield
        finally:
            self._within -= 1

    def _turn(self, verb: str, what: str, kinds: frozenset[str]) -> str:
        """Return what happens to the next operation; empty for nothing."""
        with self._mutex:
            if self._dead:
                raise Crashed("the process has ended")
            within = self._within > 0
            point = within and (verb in _POINTS or verb == _ELSEWHERE)
            self._points.update([verb] * point)
            fault = self.fault
            number = sum(fault is not None and fault.kind in could for _, could in self.seen)
            self.seen.append((f"{verb} {what}", kinds))
            if fault is None or fault.kind not in kinds or fault.at != number:
                return ""
            self.operation, self.at_point = f"{fault.kind}: {verb} {what}", point
            return fault.kind

    def _die(self) -> NoReturn:
        self._dead = True
        raise Crashed("the process has ended")


@contextmanager
def inject(connector: Connector, fault: Fault | None) -> Iterator[Injection]:
    """Number the operations of an adapter within the block, and have one go wrong."""
    found = Injection(fault)
    with ExitStack() as stack:
        stack.enter_context(watched_by(lambda objects: Operations(objects, found), found.commit))
        for call in _COMMITS:
            stack.enter_context(_instead(connector.metadata, call, lambda method, name: _call(found, method, name)))
        for task in ("create_page_sink", "create_merge_sink", "create_delete_sink"):
            stack.enter_context(_instead(connector.sinks, task, lambda make, name: _task(found, make)))
        yield found


@contextmanager
def _instead(of: object, name: str, wrapped: Callable[[Callable[..., Any], str], Callable[..., Any]]) -> Iterator[None]:
    """Replace a method of an object within the block."""
    setattr(of, name, wrapped(getattr(of, name), name))
    try:
        yield
    finally:
        delattr(of, name)


def _call(injection: Injection, method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        named = arguments[2] if name in ("finish_insert", "finish_merge") and len(arguments) > 2 else None
        recorded = options.get("txn", named) is not None
        kinds = STOPS | {"twice"} if recorded else STOPS

        def commit() -> Any:
            with injection.within_commit():
                return method(*arguments, **options)

        if not recorded:
            return injection.do("call", name, kinds, commit)
        answers: list[Any] = []
        injection.do("call", name, kinds, lambda: answers.append(commit()))
        return answers[0]

    return call


def _task(injection: Injection, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of sinks that may make a sink twice, as for a task that ran again and whose first files stay."""

    def made(*arguments: Any) -> Any:
        if not injection.repeats("a task of the sinks"):
            return make(*arguments)
        return _Twice(make(*arguments), make(*arguments))

    return made


class _Twice:
    """A sink whose task runs twice: each call goes to both runs, and returns the result of the second."""

    def __init__(self, *runs: Any) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: [getattr(run, name)(*arguments) for run in self._runs][-1]
