"""The work of a public call: since when it runs, who executes it, and how often it tried to commit."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial

__all__ = ["Work", "current_work", "work"]


@dataclass
class Work:
    """The work of one public call, or of one micro-batch.

    Attributes:
        began: when it began, by :func:`time.perf_counter`.
        moment: when it began, by the calendar: what CURRENT_TIMESTAMP is in all of it.
        executor: ``spark`` once Spark has taken a part in it; else ``local``.
        attempts: attempts at a commit, since the last one that took effect.
    """

    began: float = field(default_factory=time.perf_counter)
    moment: dt.datetime = field(default_factory=partial(dt.datetime.now, dt.UTC))
    executor: str = "local"
    attempts: int = 0


_current: ContextVar[Work | None] = ContextVar("trinity work", default=None)


@contextmanager
def work() -> Iterator[Work]:
    """Begin a piece of work, which lasts as long as the block."""
    begun = Work()
    token = _current.set(begun)
    try:
        yield begun
    finally:
        _current.reset(token)


def current_work() -> Work:
    """Return the innermost work under way; a new one where there is none."""
    return _current.get() or Work()
