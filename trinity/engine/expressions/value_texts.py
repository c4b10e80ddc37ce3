"""Values written as texts, as CAST to STRING writes them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.days import days_since_1970, parts
from trinity.engine.expressions.decimals import units_of
from trinity.spi import DataType

__all__ = ["clocks_as_texts", "dates_as_texts", "decimals_as_texts"]

_DAY: Final = 86_400_000_000
_PLAIN_SCALE: Final = 6
"""Digits behind the point up to which Arrow writes no exponent."""
_FIRST_PLAIN: Final = -719_528
_LAST_PLAIN: Final = 2_932_896
"""Days of the years 0 and 9999, whose years have four digits."""


def decimals_as_texts(found: pa.Array, kind: DataType) -> pa.Array:
    """Write DECIMAL values with all their digits."""
    scale = kind.arguments[1]
    if scale <= _PLAIN_SCALE:
        return found.cast(pa.string())
    digits = [f"{'-' * (unit < 0)}{abs(unit):0{scale + 1}d}" for unit in units_of(found)]
    return pa.array([f"{text[:-scale]}.{text[-scale:]}" for text in digits], pa.string())


def dates_as_texts(found: pa.Array) -> pa.Array:
    """Write dates: years of more than four digits have a sign."""
    days = days_since_1970(found)
    far = (days < _FIRST_PLAIN) | (days > _LAST_PLAIN)
    texts = found.cast(pa.string())
    if not far.any():
        return texts
    written = [
        f"{'-' if year < 0 else '+' * (year > 9999)}{abs(year):04d}-{month:02d}-{day:02d}"
        for year, month, day in zip(*(part.tolist() for part in parts(days[far])), strict=True)
    ]
    return pc.replace_with_mask(texts, pa.array(far), pa.array(written, pa.string()))


def clocks_as_texts(found: pa.Array) -> pa.Array:
    """Write timestamps without zone: of a second its last zeros are left out."""
    micros = found.cast(pa.int64()).to_numpy(zero_copy_only=False)
    dates = dates_as_texts(pa.array((micros // _DAY).astype(np.int32)).cast(pa.date32()))
    times = pa.array(micros % _DAY).cast(pa.time64("us")).cast(pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(pc.binary_join_element_wise(dates, times, " "), "0"), ".")
