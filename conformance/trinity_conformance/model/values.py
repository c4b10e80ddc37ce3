"""Values of every primitive type: small pools full of traps, and the meaning of equal and larger (K2, K3).

A value lives in a history as JSON (:data:`Json`), in the model as a Python value. Equality, as the suite compares rows:

====================  =====================================================================================
NULL                  equals NULL only
NaN                   all NaNs are equal; larger than every number
-0.0                  equals 0.0
other floats          exactly equal (nothing in an upsert may change a bit)
decimal               by value: 1.50 equals 1.5
timestamp             the same instant, whatever zone it is shown in; microseconds
timestamp_ntz, date   the same reading on the clock
string, varchar       by code points, which is the order of their UTF-8 bytes
char(n)               after padding to n
binary                by unsigned bytes
array, map, struct    by their parts; arrays and maps in their order
====================  =====================================================================================

An array is a list of elements, a map a list of [key, value], a struct a list of field values in JSON; in the model they
are what Arrow makes of them: a list, a list of pairs, a dict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from trinity.spi import parse_type

Json: TypeAlias = "bool | int | float | str | tuple[Json, ...] | None"
Value: TypeAlias = Any
"""None, bool, int, float, str, bytes, Decimal, date, datetime, list or dict."""

_EPOCH: Final = datetime(1970, 1, 1)

_INTEGERS: Final[Mapping[str, tuple[Json, ...]]] = {
    "tinyint": (0, 1, -1, 127, -128),
    "smallint": (0, 1, -1, 32767, -32768),
    "int": (0, 1, -1, 7, 2**31 - 1, -(2**31)),
    "bigint": (0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
}
_FLOATS: Final[tuple[Json, ...]] = ("0.0", "1.5", "-0.0", "-2.25", "NaN", "Infinity", "-Infinity")
_TIMES: Final[tuple[Json, ...]] = (
    "2024-03-31T01:30:00",
    "2024-03-31T01:30:00.000001",
    "1969-12-31T23:59:59.999999",
    "1970-01-01T00:00:00",
    "1901-12-13T20:45:52",
    "2262-04-12T00:00:00",
)

POOLS: Final[Mapping[str, tuple[Json, ...]]] = {
    "boolean": (False, True),
    **_INTEGERS,
    "float": _FLOATS,
    "double": (*_FLOATS, "0.1"),
    "decimal(10,2)": ("0.00", "1.50", "-1.50", "10.00", "2.00", "99999999.99"),
    "decimal(38,10)": ("0.0000000000", "0.0000000001", "-9007199254740993.0000000000", "9007199254740993.0000000001"),
    "string": ("a", "", "B", "b", "aa", "10", "9", "ä", "日本", "\uff5e", "\U0001f600", "it's"),
    "varchar(5)": ("a", "", "B", "äöüßé", "9", "10"),
    "char(3)": ("a", "a ", "b", "abc", "B"),
    "binary": ("", "00", "7f", "80", "ff", "8000"),
    "date": ("2024-02-29", "1970-01-01", "1969-12-31", "1582-10-04", "9999-12-31"),
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
}
"""Type text -> a few encoded values, the plainest first. Few, so that collisions are the rule."""


def default_of(type_text: str) -> Json:
    """Return the value that histories give a new column of a type as its DEFAULT."""
    return POOLS[type_text][-1]


def _family(type_text: str) -> str:
    return re.split(r"[(<]", type_text, maxsplit=1)[0]


_DECODERS: Final[Mapping[str, Callable[[Any], Value]]] = {
    "float": float,
    "double": float,
    "decimal": Decimal,
    "binary": bytes.fromhex,
    "date": date.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "timestamp_ntz": datetime.fromisoformat,
}


def decode(type_text: str, encoded: Json) -> Value:
    """Return the Python value of an encoded one."""
    if isinstance(encoded, (list, tuple)):
        return _decode_nested(type_text, encoded)
    decoder = _DECODERS.get(_family(type_text))
    return encoded if encoded is None or decoder is None else decoder(encoded)


def _decode_nested(type_text: str, encoded: Sequence[Any]) -> Value:
    kind = parse_type(type_text)
    parts = [str(child) for child in kind.children]
    if kind.name == "array":
        return [decode(parts[0], v) for v in encoded]
    if kind.name == "map":
        return [(decode(parts[0], k), decode(parts[1], v)) for k, v in encoded]
    return {f: decode(t, v) for f, t, v in zip(kind.fields, parts, encoded, strict=True)}


def _nested_parts(type_text: str, value: Any, form: Callable[[str, Any], Any]) -> tuple[Any, ...]:
    """Return the forms of the parts of an array, a map or a struct, in their order."""
    kind = parse_type(type_text)
    parts = [str(child) for child in kind.children]
    if kind.name == "array":
        return tuple(form(parts[0], v) for v in value)
    if kind.name == "map":
        return tuple((form(parts[0], k), form(parts[1], v)) for k, v in value)
    return tuple(form(t, value[f]) for f, t in zip(kind.fields, parts, strict=True))


def encode(type_text: str, value: Value) -> Json:
    """Return the JSON form of a Python value; ``decode`` of it equals the value."""
    family = _family(type_text)
    if value is None:
        return None
    if isinstance(value, (list, dict)):
        return _nested_parts(type_text, value, encode)
    if family in ("float", "double"):
        return "NaN" if math.isnan(value) else repr(float(value)).replace("inf", "Infinity")
    if family == "binary":
        return bytes(value).hex()
    if family in ("timestamp", "timestamp_ntz"):
        return _clock(value).isoformat()
    return value if isinstance(value, (bool, int)) else str(value)


def equal_form(type_text: str, value: Value) -> Value:
    """Return a hashable form: two values of the type are equal exactly when their forms are (K2)."""
    family = _family(type_text)
    if value is None:
        return None
    if isinstance(value, (list, dict)):
        return _nested_parts(type_text, value, equal_form)
    if family in ("float", "double"):
        return "NaN" if math.isnan(value) else value + 0.0
    if family == "char":
        return value.ljust(int(type_text[5:-1]))
    if family == "binary":
        return bytes(value)
    return _micros(value) if isinstance(value, datetime) else value


def order_form(type_text: str, value: Value) -> tuple[Any, ...]:
    """Return a sortable form: NULL first, then by value, NaN last (K3)."""
    if value is None:
        return (0,)
    form = equal_form(type_text, value)
    return (2,) if form == "NaN" and _family(type_text) in ("float", "double") else (1, form)


def sql_literal(type_text: str, encoded: Json) -> str:
    """Return the Spark SQL text of an encoded value."""
    family = _family(type_text)
    if encoded is None:
        return "NULL"
    if family in ("string", "varchar", "char"):
        return "'" + str(encoded).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if family == "binary":
        return f"X'{encoded}'"
    if family in ("float", "double"):
        return f"CAST('{encoded}' AS {family.upper()})"
    if family == "decimal":
        return f"CAST('{encoded}' AS {type_text.upper()})"
    if family == "date":
        return f"DATE '{encoded}'"
    if family == "timestamp":
        return f"TIMESTAMP '{str(encoded).replace('T', ' ')}+00:00'"
    if family == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{str(encoded).replace('T', ' ')}'"
    return str(encoded).upper() if isinstance(encoded, bool) else str(encoded)


def _clock(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value


def _micros(value: datetime) -> int:
    return (_clock(value) - _EPOCH) // timedelta(microseconds=1)
