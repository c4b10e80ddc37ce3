"""The clock that all of Trinity uses, so that tests can move it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Clock:
    """The offset of this process's clock from the computer's, in nanoseconds."""

    ahead_ns = 0


def now() -> dt.datetime:
    """Return the present moment, in UTC."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(microseconds=_Clock.ahead_ns // 1000)


def now_ns() -> int:
    """Return the present moment in nanoseconds since 1970."""
    return time.time_ns() + _Clock.ahead_ns


def now_ms() -> int:
    """Return the present moment in milliseconds since 1970."""
    return now_ns() // 10**6


def monotonic_s() -> float:
    """Return the seconds of a clock for deadlines: it does not jump when the computer's clock is set."""
    return time.monotonic() + _Clock.ahead_ns / 1e9


@contextmanager
def clock_ahead(by: dt.timedelta) -> Iterator[None]:
    """Move the clock of this process, for tests: forward, or back by a negative duration."""
    before = _Clock.ahead_ns
    _Clock.ahead_ns = before + by // dt.timedelta(microseconds=1) * 1000
    try:
        yield
    finally:
        _Clock.ahead_ns = before
