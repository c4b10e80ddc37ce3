"""Values of SQL literals, which can be compared with bounds."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfoNotFoundError

from sqlglot import exp

from trinity.spi import INTEGERS, TEXTS, parse_type
from trinity.zones import LARGEST_OFFSET, zone_of


@dataclass(frozen=True)
class PlainLiteral:
    """A literal, which may have a sign and be cast.

    Attributes:
        node: the literal itself.
        text: its text, with the sign of a number.
        cast: name of sqlglot's type to which it is cast; empty without a cast.
    """

    node: exp.Literal | exp.Boolean | exp.HexString
    text: str
    cast: str

    @classmethod
    def of(cls, tree: exp.Expr) -> PlainLiteral | None:
        """Return the literal of an expression; None for other expressions."""
        value, cast, sign = tree.unnest(), "", ""
        if isinstance(value, exp.Cast):
            cast, value = value.to.this.name, value.this
        if isinstance(value, exp.Neg):
            sign, value = "-", value.this.unnest()
        if not isinstance(value, exp.Literal | exp.Boolean | exp.HexString):
            return None
        if sign and not (isinstance(value, exp.Literal) and not value.is_string):
            return None
        return cls(value, sign + value.name, cast)

    @property
    def is_certain(self) -> bool:
        """True when its text in Spark's dialect is certain to mean the same."""
        if not isinstance(self.node, exp.Literal):
            return isinstance(self.node, exp.Boolean) and not self.cast
        text = r"[^'\\\x00-\x1f]*" if self.node.is_string else r"\d+(\.\d*)?([eE][+-]?\d+)?"
        return (not self.cast or self.cast in _CERTAIN_CASTS) and re.fullmatch(text, self.node.name) is not None


def literal_value(tree: exp.Expr, kind: str, timezone: Callable[[], str] = lambda: "") -> Any:
    """Return the value of a literal that is compared with a column; None if it is not certain how Spark compares it.

    Args:
        tree: the literal.
        kind: the column's type.
        timezone: returns Spark's session time zone, and is called only for timestamps without zone. If it is empty,
            the value of such a timestamp is None.
    """
    found, name = PlainLiteral.of(tree), kind.split("(")[0]
    if found is None or (found.cast and found.cast not in _CASTS.get(name, ())):
        return None
    if isinstance(found.node, exp.Boolean):
        return bool(found.node.this) if name == "boolean" else None
    if isinstance(found.node, exp.HexString):
        return bytes.fromhex(found.text) if name == "binary" else None
    convert, text = _CONVERTERS.get(name), found.text
    # Spark compares a text with a decimal, and a number with a column of texts, as numbers of another type
    if convert is None or (name == "decimal" if found.node.is_string else not parse_type(kind).is_number):
        return None
    if found.cast == "DATE" and name != "date" and ":" in text:  # the cast would cut the time
        return None
    try:
        value: Any = _char_text(text, parse_type(kind).arguments[0]) if name == "char" else convert(text)
        if not _compares_exactly(value, found.cast, kind):
            return None
        return _instant(value, timezone) if name == "timestamp" else value
    except (ValueError, InvalidOperation, OverflowError, ZoneInfoNotFoundError):
        return None


def _compares_exactly(found: Any, cast: str, kind: str) -> bool:
    """Return True when Spark compares a number exactly: it neither overflows its cast, nor is rounded to 38 digits."""
    if cast in _INTEGER_CASTS:
        bits = 8 << _INTEGER_CASTS.index(cast)
        return bool(-(2 ** (bits - 1)) <= found < 2 ** (bits - 1))
    if not isinstance(found, Decimal):
        return True
    precision, scale = parse_type(kind).arguments
    _, digits, exponent = found.as_tuple()
    fraction = max(0, -int(exponent))
    return max(precision - scale, len(digits) - fraction) + max(scale, fraction) <= 38


def _char_text(text: str, length: int) -> str:
    """Return text padded as CHAR (K2). Raises ValueError if it is too long, not counting trailing blanks."""
    if len(text.rstrip(" ")) > length:
        raise ValueError(text)
    return text[:length].ljust(length)


def _instant(value: dt.datetime, timezone: Callable[[], str]) -> dt.datetime:
    return (value if value.tzinfo else value.replace(tzinfo=zone_of(timezone()))).astimezone(dt.UTC)


_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:[0-5]\d)?")


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?\s*\d+", text):
        raise ValueError(text)
    return int(text.replace(" ", ""))


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"-?\s*\d*\.?\d*", text):  # with an exponent it is a double
        raise ValueError(text)
    return Decimal(text.replace(" ", ""))


def _date(text: str) -> dt.date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _timestamp(text: str) -> dt.datetime:
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(text)
    found = dt.datetime.fromisoformat(text if ":" in text else f"{text} 00:00:00")
    if abs(found.utcoffset() or dt.timedelta()) > LARGEST_OFFSET:
        raise ValueError(text)
    return found


def _timestamp_ntz(text: str) -> dt.datetime:
    found = _timestamp(text)
    if found.tzinfo:
        raise ValueError(text)
    return found


_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(INTEGERS, _integer),
    # floats are left out: their bounds leave out NaN, which is above every number (K3)
    **dict.fromkeys(TEXTS, str),
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}
_INTEGER_CASTS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_CASTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(INTEGERS, _INTEGER_CASTS),
    **dict.fromkeys(TEXTS, ("TEXT",)),
    "date": ("DATE",),
    "timestamp": ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"),
    # no casts to instants: in the session's zone two local times may be the same instant
    "timestamp_ntz": ("DATE", "TIMESTAMPNTZ"),
}
"""Type of a column -> casts (names of sqlglot's types) that leave a literal's text as it is."""
_CERTAIN_CASTS: Final = frozenset({"BOOLEAN", "DECIMAL", "FLOAT", "DOUBLE", "BINARY"}.union(*_CASTS.values())) - {
    "TIMESTAMP"
}
"""Types of sqlglot whose names, written again in Spark's dialect, mean the same."""
