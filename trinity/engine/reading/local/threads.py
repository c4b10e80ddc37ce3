"""Parts of a read in threads, few of them ahead of what is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import pyarrow as pa

from trinity.storage import results_ahead

__all__ = ["ROWS_AT_ONCE", "in_threads"]

ROWS_AT_ONCE: Final = 1 << 20
"""Rows of a file that a thread holds at once: as many as a row group has."""

_T = TypeVar("_T")


def in_threads(parts: Iterable[Callable[[], list[_T]]]) -> Iterator[_T]:
    """Yield what some parts return, in their order. Raises what they raise."""
    threads = pa.cpu_count()
    for found in results_ahead(parts, threads, threads):
        yield from found
