"""The reload-check-commit loop in which every adapter commits (L7); times and checkpoints of its commits."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from trinity.calls import current_work
from trinity.errors import TrinityError
from trinity.storage.local_lock import folder_lock

__all__ = [
    "COMMIT_TIMEOUT_S",
    "CommitRaced",
    "checkpoint_step",
    "commit_loop",
    "next_timestamp_ms",
    "statement_turn",
]

COMMIT_TIMEOUT_S: Final = 600.0
"""Default of ``commit.retry.timeout``: how long a commit is retried, seconds."""

_T = TypeVar("_T")


class CommitRaced(Exception):
    """Another writer committed between reload and commit; reload and try again."""


class _FifoLock:
    """A lock that serves its waiters in order, so that no writer of a process starves."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._is_taken = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        turn = threading.Event()
        with self._mutex:
            if self._is_taken:
                self._waiting.append(turn)
            else:
                self._is_taken = True
                turn.set()
        turn.wait()
        try:
            yield
        finally:
            with self._mutex:
                if self._waiting:
                    self._waiting.popleft().set()
                else:
                    self._is_taken = False


_locks: defaultdict[str, _FifoLock] = defaultdict(_FifoLock)
_locks_mutex = threading.Lock()


def commit_loop(
    location: str, attempt: Callable[[], _T], timeout_s: float = COMMIT_TIMEOUT_S, *, alone: bool = False
) -> _T:
    """Run ``attempt`` until it does not raise :class:`CommitRaced`.

    ``attempt`` reloads the table, checks it, and commits. Writers of this process take turns. Writers of other
    processes are kept apart by a growing, random pause. Nobody removes the table's folder during an attempt.

    Args:
        location: the table's folder.
        attempt: one attempt.
        timeout_s: how long to start new attempts, seconds.
        alone: True for an attempt that removes the folder: no other process is then within an attempt.

    Raises:
        TrinityError: TRANSACTION_CONFLICT after ``timeout_s`` seconds; and errors of ``attempt``.
    """
    with _locks_mutex:
        lock = _locks[location]
    deadline = time.monotonic() + timeout_s
    work = current_work()
    pause = 0.005
    with lock.taken():
        while True:
            try:
                work.attempts += 1
                with folder_lock(location, alone=alone):
                    return attempt()
            except CommitRaced as raced:
                if time.monotonic() > deadline:
                    raise TrinityError(
                        "TRANSACTION_CONFLICT",
                        f"Other writers kept committing to '{location}' for {timeout_s:g} s; try again later, "
                        f"or raise 'commit.retry.timeout'. Last conflict: {raced}.",
                    ) from raced
                time.sleep(random.uniform(0, pause))
                pause = min(pause * 2, 1.0)


@contextmanager
def statement_turn(location: str) -> Iterator[None]:
    """Wait for a turn among this process's statements that run again on one table; turns are in order.

    A statement reads before it commits, so without turns it would lose to faster writers again and again.
    """
    with _locks_mutex:
        lock = _locks[f"{location} statement"]
    with lock.taken():
        yield


def next_timestamp_ms(previous_ms: int) -> int:
    """Return a commit time: now, but at least one millisecond after the previous commit (L10)."""
    return max(int(time.time() * 1000), previous_ms + 1)


def checkpoint_step(interval: int, files: int) -> int:
    """Return the versions from one checkpoint to the next: the interval, doubled as files double from 40 intervals on.

    A checkpoint lists all files. So each commit pays for less than 40 of them, however many the table has, and a reader
    opens at most one commit for every 20 files.
    """
    return interval << max(0, (files // (20 * interval)).bit_length() - 1)
