"""CAST where the value in the other type is certain; a number that does not fit is an error, as in ANSI mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.coercion import widened
from trinity.engine.expressions.families import BOOLEAN, FLOATS, STRING, TEXTS, TIMES, VOID, WHOLE
from trinity.engine.expressions.node import Compiled, Datum, Refused, as_array
from trinity.engine.writing.clocks import clocks_of
from trinity.errors import TrinityError
from trinity.spi import DataType
from trinity.zones import normal_zone

__all__ = ["as_text", "cast"]

_Timezone = Callable[[], str]
_Kernel = Callable[[pa.Array], pa.Array]
_DATE: Final = DataType("date")


def cast(value: Compiled, kind: DataType, timezone: _Timezone) -> Compiled:
    """Return a value in another type. Raises Refused for types between which only Spark casts."""
    source = value.type
    if kind.limited or source.nested:
        raise Refused(f"only Spark casts {source} to {kind}")
    if kind == STRING:
        return as_text(value, timezone)
    if source in (kind, VOID) or (source.name in WHOLE and kind.name == "double"):
        return widened(value, kind, timezone)
    if source.name in WHOLE and kind.name in WHOLE:
        return _by(value, kind, lambda found: _whole_to_whole(found, kind))
    if source.name == "date" and kind.name in TIMES:
        return widened(value, kind, timezone)
    if source.name in TIMES and kind == _DATE:
        return _by(value, kind, _to_date(source, timezone))
    if source.name in TEXTS and kind.name in WHOLE:
        return _by(value, kind, lambda found: _text_to_whole(found, kind))
    if source.name == "float" and kind.name in FLOATS:
        return widened(value, kind, timezone)
    if source == BOOLEAN and kind.name in WHOLE:
        return _by(value, kind, lambda found: found.cast(kind.to_arrow()))
    raise Refused(f"only Spark casts {source} to {kind}")


def as_text(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return a value as a text. Raises Refused for types whose texts only Spark writes."""
    name = value.type.name
    if name in TEXTS:
        return Compiled(STRING, value.run, value.fields, may_fail=value.may_fail)
    if value.type == VOID:
        return widened(value, STRING, timezone)
    if name in (*WHOLE, "boolean"):
        return _by(value, STRING, lambda found: found.cast(pa.string()))
    if name == "date":
        return _by(value, STRING, _date_to_text)
    raise Refused(f"only Spark writes values of type {value.type} as text")


def _by(value: Compiled, kind: DataType, kernel: _Kernel) -> Compiled:
    def run(rows: pa.RecordBatch) -> Datum:
        return kernel(as_array(value.run(rows), len(rows)))

    return Compiled(kind, run, value.fields, may_fail=True)


def _date_to_text(found: pa.Array) -> pa.Array:
    late = pc.greater(pc.year(found), 9999)
    text = found.cast(pa.string())
    return pc.if_else(late, pc.binary_join_element_wise("+", text, ""), text)


def _whole_to_whole(found: pa.Array, kind: DataType) -> pa.Array:
    try:
        return found.cast(kind.to_arrow())
    except pa.ArrowInvalid as error:
        raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A number does not fit into {kind}: {error}.") from error


def _text_to_whole(found: pa.Array, kind: DataType) -> pa.Array:
    # Spark trims white space and control characters, and takes digits with a sign
    digits = pc.replace_substring_regex(found, r"^[\x00-\x20]*([+-]?[0-9]+)[\x00-\x20]*$", r"\1")
    digits = pc.replace_substring_regex(digits, r"^\+", "")
    try:
        return digits.cast(kind.to_arrow())
    except pa.ArrowInvalid as error:
        raise TrinityError("TYPE_MISMATCH", f"A text is no number of type {kind}: {error}.") from error


def _to_date(source: DataType, timezone: _Timezone) -> _Kernel:
    if source.name == "timestamp_ntz":
        return _day
    zone = normal_zone(timezone())
    return lambda found: _day(clocks_of(found, zone))


def _day(found: pa.Array) -> pa.Array:
    return found.cast(pa.date32(), safe=False)
