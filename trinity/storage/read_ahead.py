"""What threads have ready while that before it is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, repeat, takewhile
from typing import Final, TypeVar

__all__ = ["read_ahead", "results_ahead"]

_MOST_AHEAD: Final = 4

_T = TypeVar("_T")


def read_ahead(items: Iterable[_T]) -> Iterator[_T]:
    """Yield some items, of which a thread has the next few ready. Raises what they raise."""
    source = iter(items)
    for found in takewhile(bool, results_ahead(repeat(lambda: list(islice(source, 1))), 1, _MOST_AHEAD)):
        yield from found


def results_ahead(parts: Iterable[Callable[[], _T]], threads: int, ahead: int) -> Iterator[_T]:
    """Yield what some parts return, in their order; threads have the next few ready. Raises what they raise.

    Who leaves before the end does not wait for the threads: the garbage collector may leave within a thread that is
    starting, and holds a lock that the wait needs.
    """
    waiting = deque[Future[_T]]()
    pool, wait = ThreadPoolExecutor(threads), True
    try:
        for part in parts:
            waiting.append(pool.submit(part))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except GeneratorExit:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)
