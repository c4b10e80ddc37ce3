"""Numbers read from text, in Spark SQL: exactly the number in the text, or NULL where the type does not have it."""

from __future__ import annotations

from typing import Final

from trinity.syntax.quoting import text_literal

__all__ = ["decimal_of", "floating_of", "integer_of", "let", "matches", "whole"]

_INTEGER: Final = "[+-]?[0-9]+"
_NUMBER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?"
_POWER: Final = r"[+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*[eE][+-]?0*[0-9]{1,3}"
"""Pattern of a number with an exponent of at most three digits: the memory of Java's decimals grows with it."""
_ZERO: Final = r"[+-]?(?=\.?0)[0.]*(?:[eE].*)?"
_NO_NUMBER: Final = r"[+-]?(?:[iI]nf(?:inity)?|INF(?:INITY)?)|[nN]a[nN]|NAN"
_EXACT: Final = {"float": 7, "double": 15}
"""Type -> most digits of an integer that the type surely has exactly."""
_BEYOND: Final = "9.223372036854775807E18D"
"""2^63 as a DOUBLE, which a cast to BIGINT makes 2^63 - 1."""


def matches(text: str, pattern: str) -> str:
    """Return Spark SQL that is true where a pattern matches a whole text."""
    return f"{text} RLIKE {text_literal(whole(pattern))}"


def whole(pattern: str) -> str:
    """Return a pattern that matches a whole text. ``$`` would match before a line feed, too."""
    return rf"^(?:{pattern})\z"


def let(name: str, value: str, body: str) -> str:
    """Return Spark SQL of an expression in which a name stands for a value, which is evaluated once."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


def integer_of(text: str, kind: str) -> str:
    """Return Spark SQL of an integer type's value. ``1e2`` and ``100.0`` are 100; ``1.5`` is NULL."""
    return f"try_cast(IF({matches(text, _INTEGER)}, {text}, CAST({decimal_of(text, 19, 0)} AS STRING)) AS {kind})"


def decimal_of(text: str, precision: int, scale: int) -> str:
    """Return Spark SQL of a DECIMAL, never rounded: as DECIMAL(3,2) ``1.250`` is 1.25, and ``1.255`` NULL."""
    kind = f"DECIMAL({precision},{scale})"
    value, zero = f"try_cast({text} AS {kind})", f"CAST(0 AS {kind})"
    plain = matches(text, rf"[+-]?0*[0-9]{{0,{precision - scale}}}(?:\.[0-9]{{0,{scale}}}0*)?")
    # rounding changes the significant digits; 0 has none
    kept = f"{_significant(text)} = {_significant(f'CAST({value} AS STRING)')}"
    power = f"CASE WHEN {matches(text, _ZERO)} THEN {zero} WHEN {matches(text, _POWER)} AND {kept} THEN {value} END"
    return f"IF({plain}, {value}, {power})"


def _significant(text: str) -> str:
    """Return Spark SQL of a number's digits without leading and trailing zeros."""
    return f"trim(BOTH '0' FROM regexp_replace({text}, '[eE].*|[^0-9]', ''))"


def floating_of(text: str, kind: str) -> str:
    """Return Spark SQL of a FLOAT or DOUBLE, the nearest to the number in the text.

    NULL are: an integer that the type does not have exactly, a number beyond its range, and a number other than 0 that
    it would round to 0. ``NaN`` and ``Infinity`` are numbers here.
    """
    value = f"try_cast({text} AS {kind})"
    integer = f"try_cast({text} AS BIGINT)"
    kept = f"({integer} IS NULL OR ({value} < {_BEYOND} AND try_cast({value} AS BIGINT) = {integer}))"
    exact = f"(length({text}) <= {_EXACT[kind]} OR NOT {matches(text, _INTEGER)} OR {kept})"
    near = f"abs({value}) < CAST('Infinity' AS {kind}) AND ({value} <> 0 OR {matches(text, _ZERO)})"
    return f"IF(({matches(text, _NUMBER)} AND {near} AND {exact}) OR {matches(text, _NO_NUMBER)}, {value}, NULL)"
