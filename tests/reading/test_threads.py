"""Reads in threads (of an inner module): closing one before its end waits for nothing."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from trinity.engine.reading.local.selection import in_threads

pytestmark = pytest.mark.inner


def test_a_read_that_is_left_does_not_wait_for_its_threads() -> None:
    """The garbage collector may close it where a wait would never end: while a thread is starting."""
    go_on = threading.Event()

    def part(number: int) -> list[int]:
        if number:
            assert go_on.wait(60)
        return [number]

    rows = in_threads([partial(part, number) for number in range(20)])
    assert next(rows) == 0
    leaving = threading.Thread(target=rows.close)  # type: ignore[attr-defined]
    leaving.start()
    leaving.join(30)
    left = not leaving.is_alive()
    go_on.set()
    leaving.join()
    assert left


def test_a_read_that_fails_ends_its_threads_first() -> None:
    def part(number: int) -> list[int]:
        if number == 0:
            raise ValueError(number)
        return [number]

    before = set(threading.enumerate())  # threads of earlier tests may end meanwhile
    with pytest.raises(ValueError, match="0"):
        list(in_threads([partial(part, number) for number in range(3)]))
    assert not set(threading.enumerate()) - before
