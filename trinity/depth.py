"""Limit of nesting in SQL: several hundred levels of parentheses, CASE or subqueries, and lists of any length.

Python's default limit allows about fifty levels, since sqlglot needs up to 25 calls for a level. These are calls of
Python functions, which use no system stack.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trinity.errors import TrinityError

_FRAMES: Final = 25_000
"""The recursion limit: enough for a thousand levels."""

_changing = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for nested text, in all threads, until the last block ends.

    Raises:
        TrinityError: NOT_SUPPORTED for text that is nested even more deeply.
    """
    global _inside, _before
    with _changing:
        if not _inside:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _FRAMES))
        _inside += 1
    try:
        yield
    except RecursionError:
        raise too_deep() from None  # its traceback has thousands of lines
    finally:
        with _changing:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)


def too_deep() -> TrinityError:
    """Return the error for text that is nested more deeply than Trinity, or Spark, can follow."""
    return TrinityError(
        "NOT_SUPPORTED",
        "The statement or expression is nested too deeply; compute parts of it in columns of a view or a WITH query.",
    )
