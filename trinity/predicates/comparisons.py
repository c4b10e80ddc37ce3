"""Comparisons of a column with others, as AND joins them, and literals as values that compare with bounds."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfoNotFoundError

from sqlglot import exp

from trinity.spi import parse_type
from trinity.zones import LARGEST_OFFSET, zone_of

_FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.EQ: exp.EQ, exp.NullSafeEQ: exp.NullSafeEQ, exp.NEQ: exp.NEQ,
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
"""Operator -> the one that means the same with its sides exchanged."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column with other expressions.

    Attributes:
        operator: the operator with the column on its left; ``exp.Is`` for IS NULL.
        values: what it is compared with: the bounds of BETWEEN, the elements of IN, none for IS NULL.
        negated: whether NOT stands before it.
    """

    column: exp.Column
    operator: type[exp.Expr]
    values: tuple[exp.Expr, ...]
    negated: bool

    @classmethod
    def of(cls, part: exp.Expr) -> Comparison | None:
        """Return the comparison of a part of a predicate; None for other parts."""
        part = part.unnest()
        negated = isinstance(part, exp.Not)
        sides = _sides(part.this.unnest() if negated else part)
        if sides is None:
            return None
        operator, column, values = sides
        return cls(column, operator, values, negated) if isinstance(column, exp.Column) else None


def _sides(part: exp.Expr) -> tuple[type[exp.Expr], exp.Expr, tuple[exp.Expr, ...]] | None:
    """Return the operator, its left side and its other operands; None for other predicates."""
    operator = type(part)
    if isinstance(part, exp.Between):
        return None if part.args.get("symmetric") else (operator, part.this, (part.args["low"], part.args["high"]))
    if isinstance(part, exp.In):
        listed = part.expressions and not part.args.get("query") and not part.args.get("unnest")
        return (operator, part.this, tuple(part.expressions)) if listed else None
    if isinstance(part, exp.Is):
        return (operator, part.this, ()) if isinstance(part.expression, exp.Null) else None
    if operator not in _FLIPPED:
        return None
    if isinstance(part.this, exp.Column):
        return operator, part.this, (part.expression,)
    return _FLIPPED[operator], part.expression, (part.this,)


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a predicate that AND joins."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for part in tree.flatten():
            yield from conjuncts(part)
    else:
        yield tree


def equal_sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield both sides of an equality, then both the other way round; nothing for another part of a predicate."""
    if isinstance(part, exp.EQ):
        yield part.this, part.expression
        yield part.expression, part.this


def literal_value(value: exp.Expr, kind: str, timezone: Callable[[], str] = lambda: "") -> Any:
    """Return the value of a literal as a column is compared with it; None when what Spark makes of it is not certain.

    ``timezone`` returns Spark's session time zone, and is called only for timestamps without zone. An empty one makes
    them unknown.
    """
    value, cast, full, kind = value.unnest(), "", kind, kind.split("(")[0]
    if isinstance(value, exp.Cast):
        cast, value = value.to.this.name, value.this
        if cast not in _CASTS.get(kind, ()):
            return None
    if isinstance(value, exp.Boolean):
        return bool(value.this) if kind == "boolean" else None
    if isinstance(value, exp.HexString):
        return bytes.fromhex(value.name) if kind == "binary" else None
    convert = _CONVERTERS.get(kind)
    is_text = isinstance(value, exp.Literal) and value.is_string
    if convert is None or not isinstance(value, exp.Literal | exp.Neg) or (is_text and kind == "decimal"):
        return None
    if not is_text and kind not in _NUMBERS:  # Spark compares a text with a number as numbers
        return None
    text = value.name if isinstance(value, exp.Literal) else value.sql()
    if cast == "DATE" and kind != "date" and ":" in text:  # the cast would cut the time
        return None
    try:
        found: Any = _char_text(text, parse_type(full).arguments[0]) if kind == "char" else convert(text)
        if not _compares_exactly(found, cast, full):
            return None
        return _instant(found, timezone) if kind == "timestamp" else found
    except (ValueError, InvalidOperation, OverflowError, ZoneInfoNotFoundError):
        return None


def _compares_exactly(found: Any, cast: str, kind: str) -> bool:
    """Return True when a number is compared exactly: neither cut by its cast, nor rounded to fit 38 digits."""
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
    """Return text padded as CHAR (K2). Raise ValueError when it is too long, not counting trailing blanks."""
    if len(text.rstrip(" ")) > length:
        raise ValueError(text)
    return text[:length].ljust(length)


def _instant(value: dt.datetime, timezone: Callable[[], str]) -> dt.datetime:
    return (value if value.tzinfo else value.replace(tzinfo=zone_of(timezone()))).astimezone(dt.UTC)


_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "decimal"})
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
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _integer),
    # floats are left out: their bounds say nothing of NaN, which is above every number (K3)
    **dict.fromkeys(("string", "varchar", "char"), str),
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}
_INTEGER_CASTS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_CASTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER_CASTS),
    **dict.fromkeys(("string", "varchar", "char"), ("TEXT",)),
    "date": ("DATE",),
    "timestamp": ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"),
    # compared with an instant, Spark puts a clock into the session's zone, in which two clocks may be one instant
    "timestamp_ntz": ("DATE", "TIMESTAMPNTZ"),
}
"""Type of a column -> casts (names of sqlglot's types) that leave a literal's text as it is."""
