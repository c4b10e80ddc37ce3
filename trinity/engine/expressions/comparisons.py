"""Comparisons, BETWEEN and IN: -0.0 equals 0.0, NaN equals itself and is above every number, CHAR is padded (K2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.logic import both, either
from trinity.engine.expressions.node import (
    BOOLEAN,
    ONE_ROW,
    STRING,
    VOID,
    Compiled,
    Datum,
    Refused,
    in_turn,
    null_of_operand,
)
from trinity.spi import INTEGERS

OPERATORS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "is distinct from",
}  # fmt: skip

_Kernel = Callable[[Datum, Datum], Datum]
_FEW_FLOATS: Final = 10
"""Most FLOATs or DOUBLEs in the list of an IN that Spark compares one by one; a longer list it makes a set."""


def comparison(operator: str, left: Compiled, right: Compiled, timezone: Callable[[], str]) -> Compiled:
    """Return a comparison. Raises Refused for types that only Spark compares."""
    _refuse_out_of_range([left, right])
    left, right = together(_padded([left, right]), timezone)
    null_safe = operator in ("<=>", "is distinct from")
    if left.type.nested or (null_safe and left.type == VOID):
        raise Refused(f"only Spark compares values of type {left.type}")
    kernel = (_OF_FLOATS if left.type.is_floating else _KERNELS)[operator]

    def run(rows: pa.RecordBatch) -> Datum:
        return kernel(*((left.run(rows), right.run(rows)) if null_safe else in_turn(left, right, rows)))

    unknown = None if null_safe else null_of_operand(BOOLEAN, [left, right])
    return unknown or Compiled.over(BOOLEAN, run, left, right)


def is_nan(value: Compiled) -> Compiled:
    """Return ISNAN, which is false for NULL. Raises Refused for other types than FLOAT and DOUBLE."""
    if not value.type.is_floating:
        raise Refused(f"only Spark makes a DOUBLE of {value.type} here")
    return value.mapped(lambda found: pc.fill_null(pc.is_nan(found), False))


def among(value: Compiled, values: Sequence[Compiled], timezone: Callable[[], str]) -> Compiled:
    """Return IN with a list of values. Raises Refused as :func:`comparison`."""
    _refuse_char(value, values)
    if _is_char(value) and any(v.evaluate(ONE_ROW).null_count for v in values):  # only some of Spark's plans pad here
        raise Refused("only Spark looks for a CHAR column in a list with NULL")
    _refuse_out_of_range([value, *values])
    value, *values = together(_padded([value, *values]), timezone)
    if value.type.nested:
        raise Refused(f"only Spark compares values of type {value.type}")
    floating = value.type.is_floating
    if floating and len(values) > _FEW_FLOATS:
        raise Refused(f"only Spark looks for a number among more than {_FEW_FLOATS} of type {value.type}")
    if floating or not all(v.constant for v in values):
        return reduce(either, [comparison("=", value, v, timezone) for v in values])
    listed = pa.concat_arrays([v.evaluate(ONE_ROW) for v in values])
    known = listed.drop_null()
    absent = pa.scalar(None if listed.null_count else False, pa.bool_())

    def kernel(found: Datum) -> Datum:
        return pc.if_else(
            pc.is_null(found), pa.scalar(None, pa.bool_()), pc.if_else(pc.is_in(found, value_set=known), True, absent)
        )

    return value.mapped(kernel)


def between(value: Compiled, low: Compiled, high: Compiled, timezone: Callable[[], str]) -> Compiled:
    """Return BETWEEN. Raises Refused as :func:`comparison`."""
    _refuse_char(value, [low, high])
    return both(comparison(">=", value, low, timezone), comparison("<=", value, high, timezone))


def _refuse_out_of_range(values: Sequence[Compiled]) -> None:
    """Raise Refused where numbers are compared with a literal that does not fit into their type.

    Some of Spark's plans replace such a comparison by TRUE or FALSE even for NULLs: INT <= 9223372036854775808, say.
    """
    literals = [v for v in values if v.constant and v.type.is_number]
    for kind in dict.fromkeys(v.type for v in values):
        limit = _LIMITS.get(kind.name, math.inf)
        for literal in (v for v in literals if v.type != kind):
            if literal.is_null or not -limit <= literal.value < limit:
                raise Refused(f"only Spark compares {kind} with a literal that {kind} cannot hold")


_LIMITS: Final = {
    **{name: 1 << (8 << index) - 1 for index, name in enumerate(INTEGERS)},
    "float": float(np.finfo(np.float32).max),
}
"""Type of numbers -> the first number that is too large for it."""


def _refuse_char(value: Compiled, values: Sequence[Compiled]) -> None:
    """Raise Refused for a CHAR column in a list, or compared with a non-literal: Spark pads only some of them there."""
    columns = [v for v in (value, *values) if _is_char(v)]
    if columns and not (_is_char(value) and all(v.constant for v in values)):
        raise Refused("only Spark looks for CHAR columns in a list, or between them")


def _is_char(value: Compiled) -> bool:
    return value.column and value.type.name == "char"


def _padded(values: Sequence[Compiled]) -> Sequence[Compiled]:
    """Return the operands of a comparison, padded to one length if one of them is a CHAR column.

    A CHAR column of that length is compared as it is, as in Spark: after UNION it may have shorter texts.
    """
    columns = [v for v in values if _is_char(v)]
    if not columns:
        return values
    others = [v for v in values if v not in columns and v.type.name != "void"]
    if not all(v.constant and v.type == STRING for v in others):
        raise Refused("only Spark compares a CHAR column with a text that is neither a literal nor CHAR")
    texts = [v.value for v in others]
    length = max([*(v.type.arguments[0] for v in columns), *(len(text) for text in texts if text is not None)])
    return [v if v.type.name == "void" else _of_length(v, length) for v in values]


def _of_length(value: Compiled, length: int) -> Compiled:
    as_text = replace(value, type=STRING, column=False)
    if value.type.arguments == (length,):
        return as_text
    return replace(as_text, run=lambda rows: pc.utf8_rpad(value.run(rows), width=length, padding=" "))


def _null_safe(equal: _Kernel) -> _Kernel:
    def kernel(left: Datum, right: Datum) -> Datum:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(equal(left, right), False), both_null)

    return kernel


def _not(kernel: _Kernel) -> _Kernel:
    return lambda left, right: pc.invert(kernel(left, right))


def _equal_floats(left: Datum, right: Datum) -> Datum:
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less_float(left: Datum, right: Datum) -> Datum:
    return pc.or_(pc.less(left, right), pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _ordered(equal: _Kernel, less: _Kernel) -> dict[str, _Kernel]:
    """Return the kernels of all operators, made of those for = and <. Only the null-safe ones give a value for NULL."""
    safe = _null_safe(equal)
    return {
        "=": equal,
        "<>": _not(equal),
        "<": less,
        "<=": _not(lambda left, right: less(right, left)),
        ">": lambda left, right: less(right, left),
        ">=": _not(less),
        "<=>": safe,
        "is distinct from": _not(safe),
    }


_KERNELS: Final = _ordered(pc.equal, pc.less)
_OF_FLOATS: Final = _ordered(_equal_floats, _less_float)
