"""The values in a change message, by Python's JSON reader and exact fractions: the model of ``trinity.cdc``."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import re
import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from trinity.spi import DataType, parse_type

COLUMNS: Final = {
    "k": "int", "ti": "tinyint", "i": "int", "b": "bigint", "m": "decimal(9,2)", "n": "decimal(38,10)",
    "w": "decimal(38,38)", "f": "float", "d": "double", "s": "string", "o": "boolean", "da": "date",
    "ts": "timestamp", "tn": "timestamp_ntz", "by": "binary", "am": "array<decimal(9,2)>",
    "st": "struct<x:int,y:string,z:array<double>>", "mp": "map<string,bigint>",
}  # fmt: skip
INTEGERS: Final = {"tinyint": 7, "int": 31, "bigint": 63}
_NUMBER: Final = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?")
_MICRO: Final = dt.timedelta(microseconds=1)


class Number(str):
    """A number as it is written in JSON."""


class Refusal(Exception):
    """The refusal of a message by an error code; ``dropped`` where ``invalid="drop"`` skips the message instead."""

    def __init__(self, code: str, dropped: bool = False) -> None:
        super().__init__(code)
        self.code, self.dropped = code, dropped


def rows_of(tool: str, text: str) -> list[tuple[Any, ...]]:
    """Return the rows of a message. Raises :class:`Refusal`."""
    rows = _TOOLS[tool](_object(text))
    return [tuple(_value(kind, row.get(name), tool) for name, kind in COLUMNS.items()) for row in rows]


# -- the message --------------------------------------------------------------------------------------------


def _object(text: str) -> dict[str, Any]:
    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in given}) < len(given):
            raise ValueError("a key twice")
        return dict(given)

    def constant(name: str) -> Any:
        raise ValueError(name)

    try:
        found = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=constant, object_pairs_hook=pairs)
    except ValueError as error:
        raise Refusal("BAD_DATA", dropped=True) from error
    if not isinstance(found, dict):
        raise Refusal("BAD_DATA", dropped=True)
    return found


def _own(of: Mapping[str, Any], *names: str) -> None:
    """Check that these fields of an object, which the tool itself writes, are objects or NULL."""
    if any(of.get(name) is not None and not isinstance(of[name], dict) for name in names):
        raise Refusal("BAD_DATA", dropped=True)


def _position(given: Any) -> None:
    if not _is_scalar(given) or _integer(given, 63) is None:
        raise Refusal("BAD_DATA")


def _debezium(message: dict[str, Any]) -> list[dict[str, Any]]:
    _own(message, "before", "after", "source", "payload")
    payload = message.get("payload")
    if payload is not None:
        _own(payload, "before", "after", "source")
    event = payload if message.get("op") is None and payload is not None else message
    if event.get("op") is None and "payload" in message and payload is None:
        return []
    if not isinstance(event.get("op"), str) or event["op"] not in ("c", "r", "u"):
        raise Refusal("BAD_DATA", dropped=True)
    if event.get("after") is None:
        raise Refusal("BAD_DATA")
    _position((event.get("source") or {}).get("lsn"))
    after: dict[str, Any] = event["after"]
    return [after]


def _maxwell(message: dict[str, Any]) -> list[dict[str, Any]]:
    _own(message, "data", "old")
    if message.get("type") != "insert":
        raise Refusal("BAD_DATA", dropped=True)
    if message.get("data") is None:
        raise Refusal("BAD_DATA")
    _position(message.get("ts"))
    data: dict[str, Any] = message["data"]
    return [data]


def _canal(message: dict[str, Any]) -> list[dict[str, Any]]:
    data, ddl = message.get("data"), message.get("isDdl")
    if data is not None and not (isinstance(data, list) and all(r is None or isinstance(r, dict) for r in data)):
        raise Refusal("BAD_DATA", dropped=True)
    if ddl is not None and not isinstance(ddl, bool):
        raise Refusal("BAD_DATA", dropped=True)
    if ddl:
        return []
    if message.get("type") != "INSERT":
        raise Refusal("BAD_DATA", dropped=True)
    if data is None or None in data:
        raise Refusal("BAD_DATA")
    if data:
        _position(message.get("es"))
    return [*data]


_TOOLS: Final = {"debezium": _debezium, "maxwell": _maxwell, "canal": _canal}


# -- values ---------------------------------------------------------------------------------------------------


def _value(text: str, given: Any, tool: str) -> Any:
    """Return a value as the tests' SQL shows it."""
    if given is None:
        return None
    kind = parse_type(text)
    if kind.name == "string":
        return _shown(given)
    if kind.name in ("array", "map", "struct"):
        return _container(kind, given, tool)
    found = _scalar(kind, given, tool) if _is_scalar(given) else None
    if found is None:
        raise Refusal("TYPE_MISMATCH")
    return found


def _container(kind: DataType, given: Any, tool: str) -> Any:
    if kind.name == "array" and isinstance(given, list):
        return [_value(str(kind.children[0]), item, tool) for item in given]
    if kind.name == "map" and isinstance(given, dict):
        return {name: _value(str(kind.children[1]), item, tool) for name, item in given.items()}
    if kind.name == "struct" and isinstance(given, dict):
        fields = zip(kind.fields, kind.children, strict=True)
        return tuple(_value(str(child), given.get(name), tool) for name, child in fields)
    raise Refusal("TYPE_MISMATCH")


def _is_scalar(given: Any) -> bool:
    return isinstance(given, str | bool)


def _shown(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str):
        return str(given)
    return _json(given)


def _json(given: Any) -> str:
    if isinstance(given, dict):
        return "{" + ",".join(f"{_quoted(n)}:{_json(v)}" for n, v in given.items()) + "}"
    if isinstance(given, list):
        return "[" + ",".join(map(_json, given)) + "]"
    if isinstance(given, str) and not isinstance(given, Number):
        return _quoted(given)
    return str(given) if isinstance(given, Number) else json.dumps(given)


def _quoted(text: str) -> str:
    """Return a JSON string as Spark writes it: characters beyond the basic plane are escaped, in capitals."""
    return re.sub(r"[^\0-\uffff]", lambda found: _escape(found[0]), json.dumps(text, ensure_ascii=False))


def _escape(character: str) -> str:
    high, low = struct.unpack(">HH", character.encode("utf-16-be"))
    return f"\\u{high:04X}\\u{low:04X}"


def _scalar(kind: DataType, given: Any, tool: str) -> Any:
    text = _shown(given)
    if kind.name in INTEGERS:
        return _integer(text, INTEGERS[kind.name])
    if kind.name == "decimal":
        return _decimal(text, *kind.arguments)
    if kind.name in ("float", "double"):
        return _floating(text, kind.name)
    if kind.name == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if kind.name == "binary":
        return None if isinstance(given, Number | bool) else _bytes(text, tool)
    if isinstance(given, Number):
        days = _integer(text, 31) if kind.name == "date" and tool == "debezium" else None
        return (
            None if days is None or not -700_000 < days < 2_900_000 else str(dt.date(1970, 1, 1) + dt.timedelta(days))
        )
    return _date(text) if kind.name == "date" else _timestamp(text, kind.name)


def _fraction(text: str) -> Fraction | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, before, behind, exponent = found.groups()
    digits = int(before + behind)
    power = int(exponent or 0) - len(behind)
    if digits == 0:
        return Fraction(0)
    if abs(power) > 5000:
        return Fraction(-1 if sign == "-" else 1) * (Fraction(10) ** 5000 if power > 0 else Fraction(1, 10**5000))
    return Fraction(-digits if sign == "-" else digits) * Fraction(10) ** power


def _integer(text: str, bits: int) -> int | None:
    found = _fraction(_shown(text))
    fits = found is not None and found.denominator == 1 and -(1 << bits) <= found < 1 << bits
    return int(found) if fits and found is not None else None


def _decimal(text: str, precision: int, scale: int) -> Fraction | None:
    found = _fraction(text)
    if found is None or (found * 10**scale).denominator != 1 or abs(found) * 10**scale >= 10**precision:
        return None
    return found


def _floating(text: str, kind: str) -> float | None:
    if re.fullmatch(r"[+-]?([iI]nf(inity)?|INF(INITY)?)|[nN]a[nN]|NAN", text):
        return float(text)
    exact = _fraction(text)
    if exact is None:
        return None
    try:
        found = _nearest(exact) if kind == "float" else float(exact)
    except OverflowError:
        return None
    if math.isinf(found) or (found == 0 and exact != 0):
        return None
    if re.fullmatch(r"[+-]?[0-9]+", text) and -(1 << 63) <= exact < 1 << 63 and Fraction(found) != exact:
        return None
    return -0.0 if exact == 0 and text.startswith("-") else found


def _nearest(exact: Fraction) -> float:
    """Return the nearest FLOAT; of two equally near ones the one whose last bit is 0."""
    if abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return math.inf
    largest = float(np.finfo(np.float32).max)
    near = np.float32(min(max(float(exact), -largest), largest))
    options = [float(near), *(float(np.nextafter(near, np.float32(end))) for end in (-largest, largest))]

    def distance(option: float) -> tuple[Fraction, int]:
        return abs(Fraction(option) - exact), struct.unpack("<I", struct.pack("<f", option))[0] & 1

    return min(options, key=distance)


def _bytes(text: str, tool: str) -> str | None:
    try:
        if tool == "canal":
            return text.encode("latin-1").hex().upper()
        found = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return found.hex().upper() if base64.b64encode(found).decode() == text else None


def _date(text: str) -> str | None:
    found = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]00:00(?::00(?:\.0+)?)?|Z)?", text)
    try:
        return str(dt.date.fromisoformat(found[1])) if found else None
    except ValueError:
        return None


def _timestamp(text: str, kind: str) -> int | None:
    """Return the microseconds since 1970. A time without a zone is UTC, the zone of the tests' session."""
    zone = r"(Z|[+-][0-9]{2}:[0-9]{2})?" if kind == "timestamp" else r"(Z|\+00:00|\+00)?"
    pattern = (
        rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[T ]([0-9]{{2}}:[0-9]{{2}})(?::([0-9]{{2}}(?:\.[0-9]+)?))?{zone})?"
    )
    found = re.fullmatch(pattern, text)
    if found is None:
        return None
    seconds, _, fraction = (found[3] or "00").partition(".")
    whole = f"{found[1]}T{found[2] or '00:00'}:{seconds}.{fraction[:6].ljust(6, '0')}{found[4] or 'Z'}"
    try:
        return (dt.datetime.fromisoformat(whole) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // _MICRO
    except ValueError:
        return None
