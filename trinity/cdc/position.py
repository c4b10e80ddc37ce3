"""The place in its source that a table has reached, as the number of a ``txn`` (L4).

Older releases recorded the version alone. A number from 2**62 on holds the version and the first digits of the hash of
its commit. So it is larger than all of the older ones, as recorded numbers must rise.
"""

from __future__ import annotations

from typing import Final

from trinity.engine.feed.reached import Reached

__all__ = ["number_of", "reached_by"]

_BOUND: Final = 1 << 62
_VERSIONS: Final = 1 << 42
"""Versions below have room for the digits: these may be times in milliseconds, as of a folder of files."""
_DIGITS: Final = 5
_BITS: Final = 4 * _DIGITS
"""Bits of the digits. Of a million commits that took over the version of another one, one is not noticed."""


def number_of(reached: Reached) -> int:
    """Return the number of a place; a version that leaves no room for the digits is its own number."""
    if reached.version >= _VERSIONS or len(reached.commit) < _DIGITS:
        return reached.version
    return _BOUND | reached.version << _BITS | int(reached.commit[:_DIGITS], 16)


def reached_by(number: int) -> Reached:
    """Return the place that a recorded number stands for."""
    if number < _BOUND:
        return Reached(number)
    return Reached((number ^ _BOUND) >> _BITS, f"{number & (1 << _BITS) - 1:0{_DIGITS}x}")
