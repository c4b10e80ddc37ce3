"""Parameters of many rows as Arrow data, with the types of :mod:`trinity.syntax.parameters`."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.messages import shown_value
from trinity.syntax.parameters import literal, text_of, to_python
from trinity.zones import zone_of

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "double"),
    (Decimal, "decimal"),
    ((str, UUID), "text"),
    ((bytes, bytearray, memoryview), "binary"),
    (dt.datetime, "timestamp"),
    (dt.date, "date"),
    (dt.time, "time"),
)
_EXACT: Final = {
    "boolean": bool, "integer": int, "double": float, "decimal": Decimal, "text": str, "binary": bytes,
    "timestamp": dt.datetime, "date": dt.date, "time": dt.time,
}  # fmt: skip
"""Kind -> the class that Arrow converts directly."""
_TYPES: Final = {
    "boolean": pa.bool_(), "double": pa.float64(), "text": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "time": pa.time64("us"), "void": pa.null(),
}  # fmt: skip
_PROMOTED: Final = (
    ({"integer", "decimal"}, "decimal"),
    ({"integer", "decimal", "double"}, "double"),
    ({"date", "timestamp"}, "timestamp"),
)
"""Kinds with a common type in VALUES, and that type's kind."""

_DIGITS: Final = 38
"""Digits of Spark's widest DECIMAL."""


def array_of(values: Sequence[Any], parameter: int, timezone: str, wanted: pa.DataType | None = None) -> pa.Array:
    """Return the values of one parameter as an array.

    Args:
        values: the values; None for NULL.
        parameter: number of the parameter, for messages.
        timezone: the zone of datetimes without zone, if other values have one.
        wanted: a DECIMAL type to use if it holds all values; without it Arrow searches one, which is slower.

    Raises:
        TrinityError: TYPE_MISMATCH for a value that has no counterpart in SQL, for values of several types that have
            no common one, or lose digits in it.
    """
    types = set(map(type, values)) - {type(None)}
    if any(found.__module__.partition(".")[0] in ("numpy", "pandas") for found in types):
        values = list(map(to_python, values))
        types = set(map(type, values)) - {type(None)}
    if types and all(issubclass(found, (list, tuple)) for found in types):
        return _lists(values, parameter, timezone)
    kind = _common({_kind(found, values) for found in types}, parameter)
    try:
        if kind == "timestamp":
            return _timestamps(values, timezone)
        if types == {_EXACT.get(kind)}:
            return _array(values, kind, wanted)
        return _array(_to_one_class(values, kind, parameter), kind, wanted)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        message = f"Parameter {parameter}: a value has no counterpart in SQL: {shown_value(error)}."
        raise TrinityError("TYPE_MISMATCH", message) from error


def _lists(values: Sequence[Any], parameter: int, timezone: str) -> pa.Array:
    """Return an array of lists, whose items have one type."""
    items = array_of([item for value in values if value is not None for item in value], parameter, timezone)
    ends = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    none = pa.array([value is None for value in values])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, mask=none)


def _kind(found: type, values: Sequence[Any]) -> str:
    kind = next((name for types, name in _KINDS if issubclass(found, types)), None)
    if kind in (None, "time"):  # a time with a zone has no counterpart either
        for value in values:
            if type(value) is found:
                literal(value)  # raises
    return kind or "void"


def _common(kinds: set[str], parameter: int) -> str:
    if len(kinds) <= 1:
        return next(iter(kinds), "void")
    found = next((to for several, to in _PROMOTED if kinds <= several), None)
    if found is None:
        raise TrinityError(
            "TYPE_MISMATCH",
            f"Parameter {parameter} is {' here and '.join(sorted(kinds))} there; give it values of one type.",
        )
    return found


def _array(values: Sequence[Any], kind: str, wanted: pa.DataType | None) -> pa.Array:
    """Return an array of values that all have the kind's own class."""
    if kind == "integer":
        try:
            return pa.array(values, pa.int64())
        except OverflowError:
            return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(_DIGITS, 0))
    if kind == "decimal":
        return _decimals(values, wanted)
    return pa.array(values, _TYPES[kind])


def _to_one_class(values: Sequence[Any], kind: str, parameter: int) -> list[Any]:
    """Convert values of several or derived classes to the kind's own class."""
    convert: dict[str, Callable[[Any], Any]] = {
        "integer": int,
        "double": lambda v: _double(v, parameter),
        "decimal": Decimal,
        "text": text_of,
        "binary": bytes,
    }
    change = convert.get(kind, lambda v: v)
    return [None if v is None else change(v) for v in values]


def _double(value: float | Decimal, parameter: int) -> float:
    """Convert a value to a float; refuse one that loses digits, which an INSERT of it alone would keep."""
    found = float(value)
    if type(value) is not float and math.isfinite(found):
        exact = int(found) == value if isinstance(value, int) else Decimal(repr(found)) == value
        if not exact:
            raise TrinityError(
                "TYPE_MISMATCH",
                f"Parameter {parameter}: {shown_value(value)} loses digits beside values of type float; give it values "
                "of one type.",
            )
    return found


def _decimals(values: Sequence[Decimal | None], wanted: pa.DataType | None) -> pa.Array:
    """Return an array of the wanted DECIMAL if it holds all values; else of the narrowest one that does."""
    if wanted is not None and pa.types.is_decimal128(wanted):
        with contextlib.suppress(pa.ArrowInvalid, TypeError):
            return pa.array(values, wanted)
    given = [v for v in values if v is not None]
    if not all(map(Decimal.is_finite, given)):
        literal(next(v for v in given if not v.is_finite()))  # raises
    found = pa.array(values)
    if found.type.precision > _DIGITS:
        raise TrinityError(
            "TYPE_MISMATCH",
            f"The numbers of one parameter need {found.type.precision} digits, and DECIMAL has {_DIGITS}.",
        )
    return (
        found
        if pa.types.is_decimal128(found.type)
        else found.cast(pa.decimal128(found.type.precision, found.type.scale))
    )


def _timestamps(values: Sequence[dt.date | None], timezone: str) -> pa.Array:
    """Return TIMESTAMP_NTZ when no value has a zone, else instants; a date is its midnight."""
    moments = [v if v is None or isinstance(v, dt.datetime) else dt.datetime(v.year, v.month, v.day) for v in values]
    if all(m is None or m.tzinfo is None for m in moments):
        return pa.array(moments, pa.timestamp("us"))
    zone = zone_of(timezone)
    return pa.array([None if m is None else _instant(m, zone) for m in moments], pa.timestamp("us", "UTC"))


def _instant(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    if moment.tzinfo is None:  # as in Spark: an ambiguous time is the earlier one; a time in a gap moves forward
        moment = moment.replace(tzinfo=zone, fold=0)
    return moment.astimezone(dt.UTC)
