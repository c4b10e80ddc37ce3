"""A watch over storage: what sees every operation of this process's stores, and may have one go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from trinity.storage.entries import Objects

__all__ = ["Watch", "as_watched", "commit_point", "watched_by"]

T = TypeVar("T")
Watch: TypeAlias = Callable[[Objects], Objects]
"""Takes the objects of a store, and returns those that are used instead."""
CommitWatch: TypeAlias = Callable[[str, Callable[[], Any]], Any]
"""Takes a commit in words and what does it, does it, and returns what that returned."""

_watches: list[tuple[Watch, CommitWatch]] = []


@contextmanager
def watched_by(watch: Watch, commits: CommitWatch) -> Iterator[None]:
    """Have the operations of all stores of this process, and commits elsewhere, go through a watch within the block."""
    _watches.append((watch, commits))
    try:
        yield
    finally:
        _watches.remove((watch, commits))


def as_watched(objects: Objects) -> Objects:
    """Return the objects as the present watches have them."""
    for watch, _ in _watches:
        objects = watch(objects)
    return objects


def commit_point(what: str, commit: Callable[[], T]) -> T:
    """Do a commit that is no operation of a store, as a database's is, so that a test can end the process around it.

    Args:
        what: the commit, in words.
        commit: does it, by one call.
    """
    for _, watch in _watches:
        commit = partial(watch, what, commit)
    return commit()
