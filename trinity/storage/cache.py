"""A cache of values that never change, such as versions and manifests."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Cache"]

_K = TypeVar("_K")
_V = TypeVar("_V")


class Cache(Generic[_K, _V]):
    """The values used last; safe for threads, which may make one value twice and keep either.

    Args:
        size: how many; or how much of them, as they are weighed.
        weigh: how much one value counts.
    """

    def __init__(self, size: int, weigh: Callable[[_V], int] = lambda _: 1) -> None:
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self._held: OrderedDict[_K, _V] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        """The value of a key, made where it is not held. What ``make`` raises passes through, nothing being kept."""
        with self._mutex:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        value = make()
        self.put(key, value)
        return value

    def put(self, key: _K, value: _V) -> None:
        """Holds a value, in the place of the one that the key had, and as the one used last."""
        with self._mutex:
            self._forget(key)
            self._held[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._size:
                self._forget(next(iter(self._held)))

    def peek(self, key: _K) -> _V | None:
        """The value of a key, or None; does not count as used."""
        with self._mutex:
            return self._held.get(key)

    def drop(self, stale: Callable[[_K], bool]) -> None:
        """Forgets the values of some keys."""
        with self._mutex:
            for key in [key for key in self._held if stale(key)]:
                self._forget(key)

    def _forget(self, key: _K) -> None:
        if key in self._held:
            self._weight -= self._weigh(self._held.pop(key))
