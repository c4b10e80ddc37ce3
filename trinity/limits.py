"""Limits: sizes, numbers, shares and durations from which on something is done in another way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Limit(Generic[_T]):
    """A limit that is the same for the whole process, so that a test can have a small one.

    It is defined in the module that keeps to it, which asks for the value each time.
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    @contextmanager
    def set_to(self, value: _T) -> Iterator[None]:
        """Have another value, for tests: as a ``with`` block, or as the decorator of a test function."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before
