"""Exact sums of integers and decimals by key (A4): 32-bit digits are summed apart, which cannot overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_numpy

_DIGIT: Final = 32
_BASE: Final = 1 << _DIGIT
_EXACT_ROWS: Final = 1 << 20
"""How many rows are summed at once: so many numbers of 32 bits add up to less than 2 ** 53.

Below that numpy's sums by key, which are DOUBLE, are exact.
"""


def digits_of(values: pa.Array) -> list[np.ndarray]:
    """Return the digits, to the base 2 ** 32, of integers or decimals without NULLs.

    The lowest digit comes first; the last one has the sign. Integers have two digits, decimals four. If all integers
    fit into one digit, there is only one.
    """
    if pa.types.is_decimal(values.type):
        start = values.offset
        words = np.frombuffer(values.buffers()[1], "<u4").reshape(-1, 4)[start : start + len(values)]
        return [*(words[:, n].astype(np.int64) for n in range(3)), words[:, 3].view("<i4").astype(np.int64)]
    found = as_numpy(values.cast(pa.int64()))
    if max(int(found.max(initial=0)), ~int(found.min(initial=0))) < _BASE >> 1:
        return [found]
    return [found & (_BASE - 1), found >> _DIGIT]


def sums_of_digits(
    digits: Sequence[np.ndarray], keys: np.ndarray, count: int, negative: np.ndarray | None
) -> list[np.ndarray]:
    """Return the digits of each key's sum, with carries: all digits but the last are from 0 up to below the base.

    Args:
        digits: digits of the values.
        keys: number of each value's key.
        count: how many keys there are.
        negative: True for values that are subtracted; None for none.
    """
    found = [_sums(digit if negative is None else np.where(negative, -digit, digit), keys, count) for digit in digits]
    for n in range(len(found) - 1):
        found[n + 1] += found[n] >> _DIGIT
        found[n] &= _BASE - 1
    return found


def _sums(values: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros(count, np.int64)
    for first in range(0, len(values), _EXACT_ROWS):
        part = slice(first, first + _EXACT_ROWS)
        total += np.bincount(keys[part], values[part], minlength=count).astype(np.int64)
    return total


def whole(digits: Sequence[np.ndarray], key: int) -> int:
    """Return the sum of one key as a Python integer."""
    return sum(int(digit[key]) << (_DIGIT * n) for n, digit in enumerate(digits))


def totals(digits: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return (sums as BIGINT, mask of the sums that do not fit)."""
    if len(digits) == 1:
        return digits[0], np.zeros(len(digits[0]), bool)
    low, high = digits
    beyond = (high < -(_BASE >> 1)) | (high >= _BASE >> 1)
    return (high << _DIGIT) | low, beyond


def decimals(digits: Sequence[np.ndarray], scale: int) -> tuple[pa.Array, np.ndarray]:
    """Return (sums as DECIMAL(38, scale), mask of the sums that do not fit into 128 bits)."""
    beyond = (digits[3] < -(_BASE >> 1)) | (digits[3] >= _BASE >> 1)
    words = np.stack([digit.astype(np.uint64).astype("<u4") for digit in digits], axis=1)
    buffer = pa.py_buffer(np.ascontiguousarray(words).tobytes())
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(digits[0]), [None, buffer]), beyond
