"""The common type in which Spark compares or combines values of two types, and casts to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.literals import constant, value_of_text
from trinity.engine.expressions.node import DOUBLE, STRING, VOID, Compiled, Datum, Refused
from trinity.engine.writing.casts import cast_array
from trinity.engine.writing.clocks import starts_of_days
from trinity.errors import TrinityError
from trinity.spi import DATETIMES, INTEGERS, DataType
from trinity.zones import normal_zone

DIGITS: Final = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))
"""Digits of the DECIMAL that Spark makes of a whole number."""


def common_type(one: DataType, other: DataType) -> DataType:
    """Return the type to which Spark widens both. Raises Refused where there is none, or where it loses digits."""
    if one.is_text and other.is_text:
        return STRING
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    if one.is_integer and other.is_integer:
        return max(one, other, key=lambda kind: INTEGERS.index(kind.name))
    if one.is_number and other.is_number:
        return DOUBLE if one.is_floating or other.is_floating else _wider_decimal(one, other)
    if one.is_datetime and other.is_datetime:
        return max(one, other, key=lambda kind: DATETIMES.index(kind.name))
    raise Refused(f"only Spark compares {one} with {other}")


def _wider_decimal(one: DataType, other: DataType) -> DataType:
    (p1, s1), (p2, s2) = (k.arguments if k.name == "decimal" else (DIGITS[k.name], 0) for k in (one, other))
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    if precision > 38:
        raise Refused(f"{one} and {other} have more than 38 digits together")
    return DataType("decimal", (precision, scale))


def together(values: Sequence[Compiled], timezone: Callable[[], str]) -> list[Compiled]:
    """Cast expressions to one type: string literals take the type of the others, as in Spark.

    Raises:
        Refused: where there is no such type, or a value would lose digits.
    """
    texts = [v for v in values if v.type == STRING and v.constant]
    others = [v.type for v in values if v not in texts]
    kind = STRING if texts and not others else VOID
    for other in others:
        kind = common_type(kind, other)
    if texts and kind.is_integer:
        kind = DataType("bigint")
    if texts and kind.name in ("decimal", "float"):
        kind = DOUBLE
    if kind == VOID and texts:
        kind = STRING
    return [widened(v, kind, timezone) for v in values]


def widened(value: Compiled, kind: DataType, timezone: Callable[[], str]) -> Compiled:
    """Cast an expression to a type that :func:`common_type` returned for it."""
    if value.type == STRING and value.constant and not kind.is_text:
        text = value.value
        return constant(kind, None) if text is None else value_of_text(text, kind, timezone)
    if value.type == kind or (kind == STRING and value.type.is_text):
        return value
    if value.constant and not value.may_fail and value.type.is_integer and kind.is_integer:
        return constant(kind, value.value)
    target = pa.null() if kind == VOID else kind.to_arrow()
    zone = normal_zone(timezone()) if value.type.is_datetime and kind.is_datetime else "UTC"

    def cast(found: pa.Array) -> pa.Array:
        if pa.types.is_integer(found.type) and pa.types.is_floating(target):
            return found.cast(target, safe=False)  # as in Spark, the nearest number
        if pa.types.is_date(found.type):
            found = cast_array(found, pa.timestamp("us"), f"type {kind}", "UTC")
        of_days = value.type.name == "date" and kind.name == "timestamp"
        moved = starts_of_days(found, zone).cast(target) if of_days else cast_array(found, target, f"type {kind}", zone)
        if kind.name == "timestamp":
            _refuse_wrapped(found, moved)
        return moved

    def run(rows: pa.RecordBatch) -> Datum:
        found = value.run(rows)
        return cast(found) if isinstance(found, pa.Array) else cast(pa.repeat(found, 1))[0]

    # a cast to a timestamp may fail, since DATE has days beyond the range of TIMESTAMP
    return Compiled.over(kind, run, value, may_fail=kind.is_timestamp)


def _refuse_wrapped(clocks: pa.Array, instants: pa.Array) -> None:
    """Raise an error for local times near either end of TIMESTAMP whose instants overflowed, and so changed sign."""
    one, other = clocks.cast(pa.int64()), instants.cast(pa.int64())
    late = pc.and_(pc.greater(one, _FAR), pc.less(other, 0))
    early = pc.and_(pc.less(one, -_FAR), pc.greater(other, 0))
    if pc.any(pc.or_(late, early)).as_py():
        raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", "A time is before the first TIMESTAMP, or after the last one.")


_FAR: Final = 1 << 62
