"""Retries while an outcome is not known."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from trinity.storage import store_kind

__all__ = ["asking_again"]


def asking_again() -> Iterator[float]:
    """Yield the seconds since the start: first at once, then after growing pauses, for about a minute."""
    began, pause = time.monotonic(), store_kind.FIRST_PAUSE.total_seconds()
    while (spent := time.monotonic() - began) < store_kind.UNSURE.total_seconds():
        yield spent
        time.sleep(random.uniform(pause / 2, pause))
        pause = min(pause * 2, store_kind.LONGEST_PAUSE.total_seconds())
