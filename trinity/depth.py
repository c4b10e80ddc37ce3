"""Limit of nesting in text: some hundred levels of parentheses, CASE or subqueries, and lists of any length.

Python's own limit ends at some fifty: sqlglot takes up to 25 calls for a level. They are calls of Python, which since
3.11 take nothing of the system's stack.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trinity.errors import TrinityError

__all__ = ["room", "too_deep"]

_FRAMES: Final = 25_000 if sys.version_info >= (3, 11) else 10_000
"""Calls within calls: of a thousand levels, and of four hundred."""

_changing = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def room() -> Iterator[None]:
    """Lets Python call as deeply as nested text needs it, in all threads, until the last one leaves.

    Raises:
        TrinityError: NOT_SUPPORTED for what is nested even more deeply.
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
    """The refusal of what is nested more deeply than Trinity, or Spark, can follow."""
    return TrinityError(
        "NOT_SUPPORTED",
        "The statement or expression is nested too deeply; compute parts of it in columns of a view or a WITH query.",
    )
