"""Parts of a read in threads, few of them ahead of what is taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

__all__ = ["in_threads"]

_T = TypeVar("_T")


def in_threads(parts: Iterable[Callable[[], list[_T]]]) -> Iterator[_T]:
    """Yield what some parts return, in their order. Raises what they raise."""
    threads = pa.cpu_count()
    ahead = deque[Future[list[_T]]]()
    pool = ThreadPoolExecutor(threads)
    try:
        for part in parts:
            ahead.append(pool.submit(part))
            if len(ahead) > threads:
                yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
