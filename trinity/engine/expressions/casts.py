"""CAST between types for which Spark's result is certain; a number that does not fit is an error, as in ANSI mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.coercion import widened
from trinity.engine.expressions.decimals import Units, decimals_of, scaled, units_of
from trinity.engine.expressions.node import BOOLEAN, STRING, VOID, Compiled, Refused
from trinity.engine.expressions.rounding import saturated, units_of_floats
from trinity.engine.expressions.rows import of_rows
from trinity.engine.expressions.text_times import times_of_texts
from trinity.engine.expressions.text_values import READERS, clocks_as_texts, dates_as_texts, decimals_as_texts
from trinity.engine.writing.clocks import clocks_of
from trinity.errors import TrinityError
from trinity.spi import DATETIMES, DataType
from trinity.zones import normal_zone

_Timezone = Callable[[], str]
_Kernel = Callable[[pa.Array], pa.Array]
_DATE: Final = DataType("date")
_CERTAIN_DIGITS: Final = 15
"""Most digits of a DECIMAL that Spark casts to an integer without rounding it first."""


def cast(value: Compiled, kind: DataType, timezone: _Timezone) -> Compiled:
    """Return a value cast to a type. Raises Refused for casts that only Spark evaluates."""
    source = value.type
    if kind.limited or source.nested:
        raise Refused(f"only Spark casts {source} to {kind}")
    if kind == STRING:
        return as_text(value, timezone)
    if source in (kind, VOID) or (source.is_datetime and kind.name in DATETIMES[DATETIMES.index(source.name) :]):
        return widened(value, kind, timezone)
    exact = source.is_integer or source.name == "float"
    if (kind.is_floating and exact) or (source.name, kind.name) == ("decimal", "double"):
        return widened(value, kind, timezone)
    kernel = _kernel(source, kind, timezone)
    if kernel is None:
        raise Refused(f"only Spark casts {source} to {kind}")
    return of_rows(kind, kernel, value, may_fail=True)


def _kernel(source: DataType, kind: DataType, timezone: _Timezone) -> _Kernel | None:
    if source.is_text and kind.is_datetime and kind != _DATE:
        zone = normal_zone(timezone())
        return lambda found: times_of_texts(found.cast(pa.string()), kind, zone)
    if source.is_text:
        read = READERS.get(kind.name)
        return None if read is None else lambda found: read(found.cast(pa.string()), kind)
    if source.is_datetime and kind == _DATE:
        return _to_date(source, timezone)
    if source.is_timestamp and kind.name == "timestamp_ntz":
        zone = normal_zone(timezone())
        return lambda found: clocks_of(found, zone)
    if kind.is_integer:
        return _to_whole(source, kind)
    if kind.name == "decimal":
        return _to_decimal(source, kind)
    if source.name == "double" and kind.name == "float":
        return _to_float
    return None


def _to_float(found: pa.Array) -> pa.Array:
    with np.errstate(over="ignore"):
        return pa.array(found.to_numpy(zero_copy_only=False).astype(np.float32))


def _to_whole(source: DataType, kind: DataType) -> _Kernel | None:
    if source == BOOLEAN:
        return lambda found: found.cast(kind.to_arrow())
    if source.is_integer:
        return lambda found: _whole_to_whole(found, kind)
    if source.is_floating:
        return lambda found: _float_to_whole(found, kind)
    if source.name == "decimal" and source.arguments[0] <= _CERTAIN_DIGITS:
        return lambda found: _decimal_to_whole(found, source, kind)
    return None


def _to_decimal(source: DataType, kind: DataType) -> _Kernel | None:
    places = kind.arguments[1]
    if source.is_integer:
        return lambda found: decimals_of(_objects(found) * 10**places, kind)
    if source.name == "decimal":
        return lambda found: decimals_of(scaled(units_of(found), places - source.arguments[1]), kind)
    if source.is_floating:
        return lambda found: _float_to_decimal(found, kind)
    return None


def _objects(found: pa.Array) -> Units:
    return found.to_numpy(zero_copy_only=False).astype(object)


def as_text(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a value as a text. Raises Refused for types whose texts only Spark writes."""
    name = value.type.name
    if value.type.is_text:
        return Compiled.over(STRING, value.run, value)
    if value.type == VOID:
        return widened(value, STRING, timezone)
    if value.type.is_integer or name == "boolean":
        return of_rows(STRING, lambda found: found.cast(pa.string()), value)
    if name == "decimal":
        return of_rows(STRING, lambda found: decimals_as_texts(found, value.type), value)
    if name == "date":
        return of_rows(STRING, dates_as_texts, value)
    if name == "timestamp_ntz":
        return of_rows(STRING, clocks_as_texts, value)
    if name == "timestamp":
        zone = normal_zone(timezone())
        return of_rows(STRING, lambda found: clocks_as_texts(clocks_of(found, zone)), value)
    raise Refused(f"only Spark writes values of type {value.type} as text")


def _whole_to_whole(found: pa.Array, kind: DataType) -> pa.Array:
    try:
        return found.cast(kind.to_arrow())
    except pa.ArrowInvalid as error:
        raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A number does not fit into {kind}: {error}.") from error


def _float_to_whole(found: pa.Array, kind: DataType) -> pa.Array:
    numbers = np.trunc(found.to_numpy(zero_copy_only=False).astype(np.float64))
    limit = 2.0 ** (kind.to_arrow().bit_width - 1)
    fits = (numbers >= -limit) & ((numbers <= limit) if kind.name == "bigint" else (numbers < limit))
    if not fits.all():
        number = numbers[~fits][0]
        raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"The number {number} does not fit into {kind}.")
    return saturated(numbers).cast(kind.to_arrow())


def _decimal_to_whole(found: pa.Array, source: DataType, kind: DataType) -> pa.Array:
    units = units_of(found)
    whole = np.abs(units) // 10 ** source.arguments[1]
    return _whole_to_whole(pa.array(np.where(units < 0, -whole, whole), pa.int64()), kind)


def _float_to_decimal(found: pa.Array, kind: DataType) -> pa.Array:
    """Convert numbers by their shortest decimal form; NaN and infinity become NULL, as in Spark."""
    numbers = found.to_numpy(zero_copy_only=False).astype(np.float64)
    finite = np.isfinite(numbers)
    exact = decimals_of(units_of_floats(np.where(finite, numbers, 0.0), kind.arguments[1]), kind)
    return pc.if_else(pa.array(finite), exact, pa.scalar(None, exact.type))


def _to_date(source: DataType, timezone: _Timezone) -> _Kernel:
    if source.name == "timestamp_ntz":
        return _day
    zone = normal_zone(timezone())
    return lambda found: _day(clocks_of(found, zone))


def _day(found: pa.Array) -> pa.Array:
    return found.cast(pa.date32(), safe=False)
