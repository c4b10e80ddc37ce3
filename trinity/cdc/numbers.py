"""Numbers out of their text, in Spark SQL: the number that the text says, or NULL where a type does not have it."""

from __future__ import annotations

from typing import Final

from trinity.syntax.quoting import text_literal

__all__ = ["decimal_of", "floating_of", "integer_of", "let", "matches", "whole"]

_INTEGER: Final = "[+-]?[0-9]+"
_NUMBER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?"
_POWER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*[eE][+-]?0*[0-9]{1,3}"
"""Pattern of a number with an exponent, of at most three digits: Java's decimals need as much memory as it is large."""
_ZERO: Final = r"[+-]?(?=\.?0)[0.]*(?:[eE].*)?"
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
    return f"try_cast(IF({matches(text, _INTEGER)}, {text}, CAST({decimal_of(text, 19, 0)} AS STRING)) AS {kind})"


def decimal_of(text: str, precision: int, scale: int) -> str:
    """Spark SQL: a DECIMAL, never rounded: ``1.250`` is a DECIMAL(3,2), ``1.255`` is none."""
    kind = f"DECIMAL({precision},{scale})"
    value, zero = f"try_cast({text} AS {kind})", f"CAST(0 AS {kind})"
    plain = matches(text, rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?")
    # what rounding makes of a number has other digits, be it 0, which has none
    kept = f"{_significant(text)} = {_significant(f'CAST({value} AS STRING)')}"
    power = f"CASE WHEN {matches(text, _ZERO)} THEN {zero} WHEN {matches(text, _POWER)} AND {kept} THEN {value} END"
    return f"IF({plain}, {value}, {power})"


def _significant(text: str) -> str:
    """Spark SQL: a number's digits without the zeros around them."""
    return f"trim(BOTH '0' FROM regexp_replace({text}, '[eE].*|[^0-9]', ''))"


def floating_of(text: str, kind: str) -> str:
    """Spark SQL: a FLOAT or DOUBLE, the nearest there is.

    An integer that the type does not have, a number beyond its range, and one so near to 0 that it would be 0 are NULL.
    ``NaN`` and ``Infinity`` are numbers here.
    """
    value = f"try_cast({text} AS {kind})"
    integer = f"try_cast({text} AS BIGINT)"
    kept = f"({integer} IS NULL OR ({value} < {_BEYOND} AND try_cast({value} AS BIGINT) = {integer}))"
    exact = f"(length({text}) <= {_EXACT[kind]} OR NOT {matches(text, _INTEGER)} OR {kept})"
    near = f"abs({value}) < CAST('Infinity' AS {kind}) AND ({value} <> 0 OR {matches(text, _ZERO)})"
    return f"IF(({matches(text, _NUMBER)} AND {near} AND {exact}) OR {matches(text, _NO_NUMBER)}, {value}, NULL)"
