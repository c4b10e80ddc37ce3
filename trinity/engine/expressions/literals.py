"""Literals with the types that Spark gives them, and strings cast to other types."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfoNotFoundError

import pyarrow as pa
from sqlglot import exp

from trinity.engine.expressions.node import BOOLEAN, STRING, VOID, Compiled, Refused, fits
from trinity.errors import TrinityError
from trinity.predicates.literals import literal_value
from trinity.spi import DataType, parse_type
from trinity.syntax.parse import ESCAPED
from trinity.syntax.types import type_text

_NUMBER: Final = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MOST_DIGITS: Final = 38
_LARGEST: Final = {"float": Decimal("3.4028234663852886E+38"), "double": Decimal("1.7976931348623157E+308")}


def constant(kind: DataType, value: Any) -> Compiled:
    """Return an expression with one value."""
    scalar = pa.scalar(value, pa.null() if kind == VOID else kind.to_arrow())
    return Compiled(kind, lambda _: scalar)


def literal(tree: exp.Expr) -> Compiled:
    """Compile a literal that is written without a type. Raises Refused for other nodes."""
    if isinstance(tree, exp.Null):
        return constant(VOID, None)
    if isinstance(tree, exp.Boolean):
        return constant(BOOLEAN, bool(tree.this))
    if isinstance(tree, exp.HexString):
        return constant(DataType("binary"), bytes.fromhex(tree.name.rjust(len(tree.name) + len(tree.name) % 2, "0")))
    if isinstance(tree, exp.Literal) and tree.is_string:
        if tree.meta.get(ESCAPED):
            raise Refused("only Spark reads a text with a backslash")
        return constant(STRING, tree.name)
    return replace(_number(_number_text(tree)), literal=True)


def certain(value: Compiled) -> Compiled:
    """Evaluate a constant now, so that it cannot fail later. Raises Refused where it fails."""
    found = value.only_value()
    return Compiled(value.type, lambda _: found)


def _number_text(tree: exp.Expr) -> str:
    """Return the text of a number with its sign, which takes part in deciding its type: -2147483648 is an INT."""
    negative = isinstance(tree, exp.Neg)
    number = tree.this if negative else tree
    if not isinstance(number, exp.Literal) or number.is_string or not _NUMBER.fullmatch(number.name):
        raise Refused.of(tree)
    return f"-{number.name}" if negative else number.name


def _number(text: str) -> Compiled:
    if "e" in text.lower():
        return _finite(text, DataType("double"))
    if "." not in text:
        value = int(text)
        for kind in (DataType("int"), DataType("bigint")):
            if fits(value, kind):
                return constant(kind, value)
    exact = Decimal(text)
    _, digits, exponent = exact.as_tuple()
    scale = -int(exponent)
    precision = max(len(str(int("".join(map(str, digits))))), scale)
    if precision > _MOST_DIGITS:
        raise Refused(f"{text} has more than {_MOST_DIGITS} digits")
    return constant(DataType("decimal", (precision, scale)), exact)


def type_of(tree: exp.Expr) -> DataType:
    """Return the type to which a node casts. Raises Refused for types that no column has, and for CHAR and VARCHAR."""
    try:
        kind = parse_type(type_text(tree.args["to"], "spark"))
    except TrinityError as error:
        raise Refused(error.message) from error
    if kind.limited:
        raise Refused(f"only Spark casts to {kind}")
    return kind


def typed_literal(tree: exp.Expr, kind: DataType, timezone: Callable[[], str]) -> Compiled:
    """Return a literal with its type, as ``DATE '2024-01-31'``, ``1L`` or ``CAST(1 AS SMALLINT)``.

    Raises:
        Refused: for other nodes, and for values that Spark changes to fit the type.
    """
    value = tree.this.unnest()
    if isinstance(value, exp.Null):
        return constant(kind, None)
    if isinstance(value, exp.Literal) and value.is_string and not value.meta.get(ESCAPED):
        return value_of_text(value.name, kind, timezone)
    number = _number_text(value)
    if kind.is_integer and number.lstrip("-").isdigit() and fits(int(number), kind):
        return constant(kind, int(number))
    if kind.is_floating:
        return _finite(number, kind)
    if kind.name == "decimal" and "e" not in number.lower():
        return _decimal(number, kind)
    raise Refused.of(tree)


def value_of_text(text: str, kind: DataType, timezone: Callable[[], str]) -> Compiled:
    """Return a text as a constant of a type. Raises Refused for a text that is not in the type's plain form."""
    if kind == STRING:
        return constant(kind, text)
    if kind.name == "binary":
        return constant(kind, text.encode())
    if not text.isascii():  # Spark, as Python, reads some digits of other scripts
        raise Refused(f"'{text}' is no plain text of a value of type {kind}")
    if kind == BOOLEAN and text in ("true", "false"):
        return constant(kind, text == "true")
    if kind.is_floating and re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text):
        return _floating(text, kind)
    if kind.name == "decimal" and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return _decimal(text, kind)
    if kind.name == "time" and re.fullmatch(r"\d\d:\d\d:\d\d(\.\d{6})?", text):
        return constant(kind, _parsed(dt.time.fromisoformat, text))
    known = kind.is_integer or kind.is_datetime
    value = literal_value(exp.Literal.string(text), str(kind), timezone) if known else None
    if value is None or (kind.is_integer and not fits(value, kind)):
        raise Refused(f"'{text}' is no plain text of a value of type {kind}")
    return constant(kind, value)


def _floating(text: str, kind: DataType) -> Compiled:
    """Return the number nearest to a text. It is read as its own type: a FLOAT read as a DOUBLE is rounded twice."""
    return constant(kind, pa.scalar(text).cast(kind.to_arrow()).as_py())


def _finite(text: str, kind: DataType) -> Compiled:
    """Return the number nearest to a literal. Raises Refused for one beyond the type's range, which Spark refuses."""
    if abs(Decimal(text)) > _LARGEST[kind.name]:
        raise Refused(f"{text} is beyond the range of {kind}")
    return _floating(text, kind)


def _decimal(text: str, kind: DataType) -> Compiled:
    precision, scale = kind.arguments
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if -int(exponent) > scale or len(digits) + int(exponent) > precision - scale:
        raise Refused(f"{text} is rounded, or does not fit, as {kind}")
    return constant(kind, value)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise Refused(str(error)) from error
