"""DECIMAL values as unscaled integers, with which Python computes exactly."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import DataType

Units: TypeAlias = Any
"""A NumPy array of Python's whole numbers."""
_WORD: Final = (1 << 64) - 1
MOST_DIGITS: Final = 38
LEAST_SCALE: Final = 6
"""Least scale of a quotient, and of a result whose precision is cut."""


def adjusted(precision: int, scale: int) -> DataType:
    """Return the type of a result. For a precision above 38 Spark reduces the scale, down to six digits."""
    if precision > MOST_DIGITS:
        whole = precision - scale
        precision, scale = MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, LEAST_SCALE))
    return DataType("decimal", (precision, scale))


def units_of(values: pa.Array) -> Units:
    """Return DECIMAL values, none of them NULL, as unscaled integers."""
    words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset : 2 * (values.offset + len(values))]
    low, high = words[::2].view(np.uint64).astype(object), words[1::2].astype(object)
    return high * (1 << 64) + low


def decimals_of(units: Units, kind: DataType) -> pa.Array:
    """Return unscaled integers as DECIMAL values.

    Raises:
        TrinityError: NUMERIC_VALUE_OUT_OF_RANGE when one has too many digits.
    """
    limit = 10 ** kind.arguments[0]
    large = np.abs(units) >= limit
    if large.any():
        number = units[large.argmax()]
        raise TrinityError(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            f"A result does not fit into {kind}: it has {len(str(abs(number)))} digits. CAST to a wider type.",
        )
    words = np.empty((len(units), 2), np.uint64)
    words[:, 0] = units & _WORD
    words[:, 1] = (units >> 64) & _WORD
    return pa.Array.from_buffers(kind.to_arrow(), len(units), [None, pa.py_buffer(words)])


def halves_away(units: Units, divisor: Units | int) -> Units:
    """Divide, and round half up (away from zero)."""
    quotient = (2 * np.abs(units) + abs(divisor)) // (2 * abs(divisor))
    return np.where((units < 0) != (divisor < 0), -quotient, quotient)


def halves_to_even(units: Units, divisor: int) -> Units:
    """Divide, and round to the nearest whole number, halves to the even one."""
    quotient, twice = units // divisor, 2 * (units % divisor)
    return quotient + ((twice > divisor) | ((twice == divisor) & (quotient % 2 == 1))).astype(object)


def scaled(units: Units, places: int) -> Units:
    """Return unscaled numbers of a larger or smaller scale, rounded half up (away from zero)."""
    return units * 10**places if places >= 0 else halves_away(units, 10**-places)
