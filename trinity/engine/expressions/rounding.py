"""ROUND, BROUND, FLOOR and CEIL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from trinity.engine.expressions.coercion import widened
from trinity.engine.expressions.decimals import MOST_DIGITS, Units, decimals_of, halves_away, halves_to_even, units_of
from trinity.engine.expressions.node import Compiled, Refused
from trinity.engine.expressions.rows import of_rows
from trinity.errors import TrinityError
from trinity.spi import INTEGERS, DataType

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
_BIGINT: Final = DataType("bigint")
_EXACT: Final = Context(prec=800)
_MOST_PLACES: Final = 15
_CERTAIN: Final = 2.0**40
"""Bound below which a multiplied DOUBLE is exact to a thousandth."""


def rounded(value: Compiled, places: Compiled | None, *, to_even: bool = False) -> Compiled:
    """Return ROUND; BROUND if ``to_even``. Raises Refused for types but numbers, and a scale that is no literal."""
    number = _places(places)
    kind = value.type
    if kind.is_integer:
        return value if number >= 0 else of_rows(kind, _whole(kind, -number, to_even), value, may_fail=True)
    if kind.name == "decimal":
        return _decimal(value, number, to_even)
    if not kind.is_floating or not 0 <= number <= _MOST_PLACES:
        raise Refused(f"only Spark rounds {kind} to {number} places")
    return of_rows(kind, lambda found: _floats(found, number, to_even), value)


def _places(places: Compiled | None) -> int:
    if places is None:
        return 0
    if not places.constant or places.type.name not in INTEGERS[:3] or places.is_null:
        raise Refused("only Spark rounds to a number of places that is no literal")
    return int(places.value)


def _whole(kind: DataType, digits: int, to_even: bool) -> Callable[[pa.Array], pa.Array]:
    unit = 10 ** min(digits, MOST_DIGITS)

    def kernel(found: pa.Array) -> pa.Array:
        numbers = found.to_numpy(zero_copy_only=False).astype(object)
        try:
            return pa.array((halves_to_even if to_even else halves_away)(numbers, unit) * unit, kind.to_arrow())
        except (OverflowError, pa.ArrowInvalid) as error:
            raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A rounded number does not fit into {kind}.") from error

    return kernel


def _decimal(value: Compiled, places: int, to_even: bool) -> Compiled:
    precision, scale = value.type.arguments
    whole, kept = precision - scale + 1, max(min(scale, places), 0)
    digits = whole + kept if places >= 0 else max(whole, -places + 1)
    if places < -MOST_DIGITS:
        raise Refused(f"only Spark rounds to {places} places")
    kind = DataType("decimal", (min(digits, MOST_DIGITS), kept))

    def kernel(found: pa.Array) -> pa.Array:
        units = units_of(found)
        if places < scale:
            units = (halves_to_even if to_even else halves_away)(units, 10 ** (scale - places))
            units = units * 10 ** max(-places, 0)
        return decimals_of(units, kind)

    return of_rows(kind, kernel, value, may_fail=True)


def _floats(found: pa.Array, places: int, to_even: bool) -> pa.Array:
    given = found.to_numpy(zero_copy_only=False)
    numbers = given.astype(np.float64)
    plain = np.isfinite(numbers)
    units = units_of_floats(numbers[plain], places, to_even=to_even)
    numbers[plain] = [int(unit) / 10**places for unit in units]
    return pa.array(numbers.astype(given.dtype))


def units_of_floats(numbers: Floats, places: int, *, to_even: bool = False) -> Units:
    """Round finite numbers to decimal places, by their shortest decimal form; return multiples of the last place."""
    with np.errstate(all="ignore"):
        shifted = np.abs(numbers) * 10.0**places
        whole = np.floor(shifted)
        rest = shifted - whole
        certain = (shifted < _CERTAIN) & (np.abs(rest - 0.5) > 0.001)
        found = np.where(certain, np.copysign(whole + (rest > 0.5), numbers), 0.0).astype(np.int64).astype(object)
    rounding = ROUND_HALF_EVEN if to_even else ROUND_HALF_UP
    for index in np.flatnonzero(~certain):
        written = Decimal(repr(float(numbers[index])))
        found[index] = int(written.scaleb(places, _EXACT).to_integral_value(rounding, _EXACT))
    return found


def whole_floor(value: Compiled, places: Compiled | None, timezone: Callable[[], str]) -> Compiled:
    """Return FLOOR. Raises Refused for FLOOR with a scale."""
    return _whole_number(value, places, timezone, np.floor, lambda units, divisor: units // divisor)


def whole_ceiling(value: Compiled, places: Compiled | None, timezone: Callable[[], str]) -> Compiled:
    """Return CEIL. Raises Refused for CEIL with a scale."""
    return _whole_number(value, places, timezone, np.ceil, lambda units, divisor: -(-units // divisor))


def _whole_number(
    value: Compiled,
    places: Compiled | None,
    timezone: Callable[[], str],
    of_floats: Callable[[Floats], Floats],
    of_units: Callable[[Units, int], Units],
) -> Compiled:
    if places is not None:
        raise Refused("only Spark finds the next number of some places")
    if value.type.is_integer:
        return widened(value, _BIGINT, timezone)
    if value.type.is_floating:
        return of_rows(_BIGINT, lambda found: saturated(of_floats(found.to_numpy(zero_copy_only=False))), value)
    if value.type.name != "decimal":
        raise Refused(f"only Spark makes a whole number of {value.type}")
    precision, scale = value.type.arguments
    if scale == 0:
        return value
    kind = DataType("decimal", (min(precision - scale + 1, MOST_DIGITS), 0))
    return of_rows(kind, lambda found: decimals_of(of_units(units_of(found), 10**scale), kind), value, may_fail=True)


def saturated(numbers: Floats) -> pa.Array:
    """Convert whole numbers to BIGINT as Java does: beyond its range to the nearest one, NaN to 0."""
    limit = 2.0**63
    inside = (numbers >= -limit) & (numbers < limit)
    found = np.where(inside, numbers, 0.0).astype(np.int64)
    found[numbers >= limit], found[numbers < -limit] = 2**63 - 1, -(2**63)
    return pa.array(found)
