"""A watch over storage: what sees every operation of this process's stores, and may have one go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from trinity.storage.entries import Objects

__all__ = ["Watch", "as_watched", "watched_by"]

Watch: TypeAlias = Callable[[Objects], Objects]
"""Takes the objects of a store, and returns those that are used instead."""

_watches: list[Watch] = []


@contextmanager
def watched_by(watch: Watch) -> Iterator[None]:
    """Have all operations of all stores of this process go through a watch, within the block."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def as_watched(objects: Objects) -> Objects:
    """Return the objects as the present watches have them."""
    for watch in _watches:
        objects = watch(objects)
    return objects
