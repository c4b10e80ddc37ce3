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
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
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
            self._held[key] = value
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def peek(self, key: _K) -> _V | None:
        """The value of a key, or None; does not count as used."""
        with self._mutex:
            return self._held.get(key)

    def drop(self, stale: Callable[[_K], bool]) -> None:
        """Forgets the values of some keys."""
        with self._mutex:
            for key in [key for key in self._held if stale(key)]:
                del self._held[key]
