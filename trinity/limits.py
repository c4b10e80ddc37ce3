"""Limits: sizes, counts, shares and durations beyond which Trinity proceeds in another way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Limit(Generic[_T]):
    """A limit of the whole process, which a test can lower.

    The module that observes a limit defines it, and reads its value at each use.
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    @contextmanager
    def set_to(self, value: _T) -> Iterator[None]:
        """Set the value inside a ``with`` block or a decorated test function."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before
