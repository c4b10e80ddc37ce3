"""Numbers out of their text, in Spark SQL: the number that the text says, or NULL where a type does not have it."""

from __future__ import annotations

from typing import Final

from trinity.merge.quoting import text_literal

__all__ = ["decimal_of", "floating_of", "integer_of", "let", "matches", "whole"]

_PARTS: Final = r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?"
"""Pattern of a number: sign, digits before the point, digits behind it, exponent."""
_INTEGER: Final = "[+-]?[0-9]+"
_ZERO: Final = r"[+-]?[0.]*(?:[eE].*)?"
_NO_NUMBER: Final = r"[+-]?(?:[iI]nf(?:inity)?|INF(?:INITY)?)|[nN]a[nN]|NAN"
_EXACT: Final = {"float": 7, "double": 15}
"""Digits of integers that are all among a type's numbers."""
_BEYOND: Final = "9.223372036854775807E18D"
"""2^63 as a DOUBLE, which a cast to BIGINT takes for 2^63 - 1."""


def matches(text: str, pattern: str) -> str:
    """Spark SQL: true where a pattern matches a whole text."""
    return f"{text} RLIKE {text_literal(whole(pattern))}"


def whole(pattern: str) -> str:
    """A pattern of a whole text. ``$`` would match before a line feed, too."""
    return rf"^(?:{pattern})\z"


def let(name: str, value: str, body: str) -> str:
    """Spark SQL: an expression in which a name stands for a value, which is evaluated once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


def integer_of(text: str, kind: str) -> str:
    """Spark SQL: an integer type's value. ``1e2`` and ``100.0`` are 100; ``1.5`` is none."""
    return f"IF({matches(text, _INTEGER)}, try_cast({text} AS {kind}), try_cast({_plain(text, 19, 0)} AS {kind}))"


def decimal_of(text: str, precision: int, scale: int) -> str:
    """Spark SQL: a DECIMAL, never rounded: ``1.250`` is a DECIMAL(3,2), ``1.255`` is none."""
    kind = f"DECIMAL({precision},{scale})"
    fits = matches(text, rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?")
    return f"try_cast(IF({fits}, {text}, {_plain(text, precision, scale)}) AS {kind})"


def floating_of(text: str, kind: str) -> str:
    """Spark SQL: a FLOAT or DOUBLE, the nearest there is.

    An integer that the type does not have, a number beyond its range, and one so near to 0 that it would be 0 are NULL.
    ``NaN`` and ``Infinity`` are numbers here.
    """
    value = f"try_cast({text} AS {kind})"
    integer = f"try_cast({text} AS BIGINT)"
    kept = f"coalesce({value} < {_BEYOND} AND try_cast({value} AS BIGINT) = {integer}, {integer} IS NULL)"
    exact = f"(length({text}) <= {_EXACT[kind]} OR NOT {matches(text, _INTEGER)} OR {kept})"
    near = f"abs({value}) < CAST('Infinity' AS {kind}) AND ({value} <> 0 OR {matches(text, _ZERO)})"
    number = f"({matches(text, _PARTS)} AND {near} AND {exact})"
    return f"IF({number} OR {matches(text, _NO_NUMBER)}, {value}, NULL)"


def _plain(text: str, precision: int, scale: int) -> str:
    """Spark SQL: a number without exponent and needless zeros; NULL where it does not fit a DECIMAL."""
    pattern = text_literal(whole(_PARTS))
    sign, before, behind, exponent = (f"regexp_extract({text}, {pattern}, {n})" for n in (1, 2, 3, 4))
    power = f"CAST(try_cast(IF({exponent} = '', '0', {exponent}) AS INT) AS BIGINT)"
    # digits without the zeros around them, and the power of ten of the last one
    digits = f"named_struct('all', ltrim('0', concat({before}, {behind})), 'power', {power} - length({behind}))"
    cut = "named_struct('digits', rtrim('0', d.all), 'power', d.power + length(d.all) - length(rtrim('0', d.all)))"
    fits = f"-n.power <= {scale} AND length(n.digits) + n.power <= {precision - scale}"
    padded = "lpad(n.digits, CAST(greatest(length(n.digits), 1 - n.power) AS INT), '0')"
    places = "CAST(-n.power AS INT)"
    pointed = f"concat(left({padded}, length({padded}) - {places}), '.', right({padded}, {places}))"
    written = f"IF(n.power >= 0, concat(n.digits, repeat('0', CAST(n.power AS INT))), {pointed})"
    found = f"CASE WHEN n.digits = '' THEN '0' WHEN {fits} THEN concat({sign}, {written}) END"
    return f"IF({matches(text, _PARTS)}, {let('d', digits, let('n', cut, found))}, NULL)"
