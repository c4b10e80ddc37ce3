"""The processes of races: each runs one action at a time, as far as its permit allows, and then pauses.

A process stops at an operation and not between lines of code, so the same turns lead to the same order of its
operations and those of others. A process that neither stops nor ends within some time is taken for one that waits for
another one, as for a lock: the others go on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener, wait
from signal import SIGKILL
from typing import Any, Final, TypeVar

import trinity
from trinity.errors import TrinityError
from trinity.storage.store import watched_by
from trinity_conformance.playing.elsewhere import call_elsewhere
from trinity_conformance.playing.operations import CHANGING, READING, Operations
from trinity_conformance.playing.race_actions import RACE_ACTIONS

T = TypeVar("T")
_CHANGES: Final = "commit"


@dataclass(frozen=True)
class Permit:
    """The number of operations, or of changing operations, that a process may do; None for all."""

    count: int | None = None
    writes: bool = False


@dataclass
class RaceProcess:
    """A process of races, controlled from another one.

    Attributes:
        pid: its number.
        pipe: the connection to it.
        running: True while it runs and has sent nothing.
        patience_s: after this many seconds of silence it is assumed to wait for another process.
    """

    pid: int
    pipe: Connection
    running: bool = False
    patience_s: float = 5.0

    def begin(self, action: str, table: str, mark: int, permit: Permit) -> None:
        """Let the process begin an action."""
        self.pipe.send((action, table, mark, permit))
        self.running = True

    def go_on(self, permit: Permit) -> None:
        """Let the process go on with its action."""
        self.pipe.send(permit)
        self.running = True

    def heard(self) -> tuple[str, Any, Permit]:
        """Return the process's message: ``stopped``, ``done`` or ``failed``, with details, and the rest of its permit.

        Raises:
            EOFError: it has ended.
        """
        self.running = False
        found: tuple[str, Any, Permit] = self.pipe.recv()
        return found

    def end(self) -> None:
        """End the process, whatever it does."""
        with suppress(OSError):
            os.kill(self.pid, SIGKILL)
        self.pipe.close()


def started(settings: Mapping[str, Any]) -> RaceProcess:
    """Return a process that has just begun, with a session of its own of the catalog ``c``."""
    with Listener(family="AF_UNIX") as listener:
        call_elsewhere(_take_part, dict(settings), listener.address)
        pipe = listener.accept()
    return RaceProcess(pipe.recv(), pipe)


def ready(running: list[RaceProcess], seconds: float) -> list[RaceProcess]:
    """Return the processes that have sent a message within some time."""
    pipes = wait([process.pipe for process in running], seconds)
    return [process for process in running if process.pipe in pipes]


# -- within the process -----------------------------------------------------------------------------------


def _take_part(settings: Mapping[str, Any], address: str) -> None:
    """Fork a process that runs actions of races until its connection is closed."""
    if os.fork():
        return
    try:
        _be_steered(settings, Client(address))
    finally:
        os._exit(0)


def _be_steered(settings: Mapping[str, Any], pipe: Connection) -> None:
    pipe.send(os.getpid())
    steered = _Steered(pipe)
    with (
        trinity.connect(catalogs={"c": settings}, catalog="c", engine="local") as session,
        watched_by(lambda objects: Operations(objects, steered), steered.commit),
    ):
        while True:
            action, table, mark, steered.permit = pipe.recv()
            pipe.send((*_outcome(session, action, table, mark), steered.permit))


def _outcome(session: trinity.Session, action: str, table: str, mark: int) -> tuple[str, Any]:
    try:
        return "done", RACE_ACTIONS[action].run(session, table, mark)
    except TrinityError as error:
        return "failed", (error.code, error.message)
    except EOFError:
        raise
    except Exception as error:
        return "failed", (type(error).__name__, str(error))


@dataclass
class _Steered:
    """A runner that does the operations of a process as far as its permit allows, and then waits for another permit."""

    pipe: Connection
    permit: Permit = field(default_factory=Permit)
    over: bool = False
    _mutex: Any = field(default_factory=threading.RLock)

    def do(
        self,
        verb: str,
        what: str,
        kinds: frozenset[str],
        act: Callable[[], T],
        torn: Callable[[], object] | None = None,
    ) -> T:
        with self._mutex:
            writes = kinds != READING
            while self.permit.count is not None and (writes or not self.permit.writes):
                if self.permit.count:
                    self.permit = Permit(self.permit.count - 1, self.permit.writes)
                    break
                self.pipe.send(("stopped", f"{verb} {what}", self.permit))
                self.permit = self.pipe.recv()
        return act()

    def commit(self, what: str, act: Callable[[], T]) -> T:
        """Do a commit that is no operation of a store."""
        return self.do(_CHANGES, what, CHANGING, act)
