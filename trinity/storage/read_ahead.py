"""Pages that a thread reads while those before them are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

__all__ = ["read_ahead"]

_MOST_AHEAD: Final = 4

_T = TypeVar("_T")


def read_ahead(items: Iterable[_T]) -> Iterator[_T]:
    """Yield some items, of which a thread has the next few ready. Raises what they raise.

    Who leaves before the end does not wait for the thread: the garbage collector may leave within the start of one.
    """
    source = iter(items)

    def one() -> list[_T]:
        return list(islice(source, 1))

    pool, wait = ThreadPoolExecutor(1), True
    try:
        ahead = deque(pool.submit(one) for _ in range(_MOST_AHEAD))
        while found := ahead.popleft().result():
            ahead.append(pool.submit(one))
            yield from found
    except GeneratorExit:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)
