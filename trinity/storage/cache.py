"""A cache of values that never change, such as versions and manifests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Cache(Generic[_K, _V]):
    """A cache of the most recently used values. It is thread-safe; if two threads make the same value, one is kept.

    Args:
        size: maximum total weight; by default the maximum number of values.
        weigh: returns the weight of a value.
    """

    def __init__(self, size: int, weigh: Callable[[_V], int] = lambda _: 1) -> None:
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self._kept: OrderedDict[_K, _V] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        """Return the value of a key; make and keep it if it is missing. Raises errors of ``make``."""
        with self._mutex:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make()
        self.put(key, value)
        return value

    def put(self, key: _K, value: _V) -> None:
        """Keep a value for a key, as the most recently used one."""
        with self._mutex:
            self._forget(key)
            self._kept[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._size:
                self._forget(next(iter(self._kept)))

    def peek(self, key: _K) -> _V | None:
        """Return the value of a key, None if it is missing; this does not count as a use."""
        with self._mutex:
            return self._kept.get(key)

    def drop(self, stale: Callable[[_K], bool]) -> None:
        """Drop the values of the keys for which ``stale`` is true."""
        with self._mutex:
            for key in [key for key in self._kept if stale(key)]:
                self._forget(key)

    def _forget(self, key: _K) -> None:
        if key in self._kept:
            self._weight -= self._weigh(self._kept.pop(key))
