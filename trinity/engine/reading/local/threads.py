"""Parts of a read in threads, few of them ahead of what is taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import pyarrow as pa

__all__ = ["ROWS_AT_ONCE", "in_threads"]

ROWS_AT_ONCE: Final = 1 << 20
"""Rows of a file that a thread holds at once: as many as a row group has."""

_T = TypeVar("_T")


def in_threads(parts: Iterable[Callable[[], list[_T]]]) -> Iterator[_T]:
    """Yield what some parts return, in their order. Raises what they raise.

    A reader that is left before its end does not wait for the threads: the garbage collector may end it within a thread
    that is starting, and holds a lock that the wait needs.
    """
    threads = pa.cpu_count()
    ahead = deque[Future[list[_T]]]()
    pool, wait = ThreadPoolExecutor(threads), True
    try:
        for part in parts:
            ahead.append(pool.submit(part))
            if len(ahead) > threads:
                yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()
    except GeneratorExit:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)
