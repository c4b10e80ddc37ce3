"""Arithmetic as Spark's ANSI mode has it: a number that does not fit is an error, as is a division by zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions.coercion import DIGITS, common_type, widened
from trinity.engine.expressions.decimals import (
    LEAST_SCALE,
    MOST_DIGITS,
    adjusted,
    decimals_of,
    halves_away,
    scaled,
    units_of,
)
from trinity.engine.expressions.node import (
    DOUBLE,
    VOID,
    Compiled,
    Datum,
    Refused,
    in_turn,
    null_of_operand,
)
from trinity.engine.expressions.rows import of_rows
from trinity.errors import TrinityError
from trinity.spi import DataType

_Timezone = Callable[[], str]
_Kernel = Callable[[Datum, Datum], Datum]
_BIGINT: Final = DataType("bigint")


def arithmetic(operator: type[exp.Expr], left: Compiled, right: Compiled, timezone: _Timezone) -> Compiled:
    """Return an operator applied to two operands. Raises Refused for types that only Spark computes with."""
    kinds = {left.type, right.type}
    if not all(kind.is_number or kind == VOID for kind in kinds) or kinds == {VOID}:
        raise Refused(f"only Spark calculates with {left.type} and {right.type}")
    if any(kind.name == "decimal" for kind in kinds) and not any(kind.is_floating for kind in kinds):
        return _of_decimals(operator, left, right, timezone)
    kind = common_type(left.type, right.type)
    if operator is exp.Div:
        kind = DOUBLE
    if operator is exp.IntDiv:
        if not kind.is_integer:
            raise Refused(f"only Spark divides {kind} into whole numbers")
        kind = _BIGINT
    kernel = (_FLOATING if kind.is_floating else _WHOLE)[operator]
    return _binary(operator, kernel, kind, *(widened(v, kind, timezone) for v in (left, right)))


def _of_decimals(operator: type[exp.Expr], left: Compiled, right: Compiled, timezone: _Timezone) -> Compiled:
    if operator is exp.IntDiv or VOID in (left.type, right.type):
        raise Refused("only Spark divides numbers of type decimal into whole numbers, or calculates with them and NULL")
    left, right = (_as_decimal(v, timezone) for v in (left, right))
    (p1, s1), (p2, s2) = left.type.arguments, right.type.arguments
    scale = max(s1, s2)
    if operator is exp.Div:
        scale = max(LEAST_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    elif operator is exp.Mod:
        if p1 - s1 + s2 > MOST_DIGITS:
            raise Refused(
                f"only Spark divides {left.type} by {right.type}, of whose quotient it may know too few digits"
            )
        precision = min(p1 - s1, p2 - s2) + scale
    elif operator is exp.Mul:
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        precision = max(p1 - s1, p2 - s2) + scale + 1
    kind = adjusted(precision, scale)
    if operator in (exp.Add, exp.Sub, exp.Mul) and kind.arguments == (precision, scale):
        return _binary(operator, _WHOLE[operator], kind, left, right)
    return _rounded_decimals(operator, kind, left, right)


def _rounded_decimals(operator: type[exp.Expr], kind: DataType, left: Compiled, right: Compiled) -> Compiled:
    """Return an operator applied to two DECIMALs, rounded to the scale of the result's type."""
    s1, s2, wanted = left.type.arguments[1], right.type.arguments[1], kind.arguments[1]
    shared = max(s1, s2)

    def kernel(one: pa.Array, other: pa.Array) -> pa.Array:
        first, second = units_of(one), units_of(other)
        if operator is exp.Mul:
            return decimals_of(scaled(first * second, wanted - s1 - s2), kind)
        if operator in _DIVISIONS:
            _refuse_zero(other)
        if operator is exp.Div:
            places = wanted + s2 - s1
            found = halves_away(first * 10 ** max(places, 0), second * 10 ** max(-places, 0))
            return decimals_of(found, kind)
        first, second = scaled(first, shared - s1), scaled(second, shared - s2)
        if operator is exp.Mod:
            rest = abs(first) % abs(second)
            return decimals_of(np.where(first < 0, -rest, rest), kind)
        found = first + second if operator is exp.Add else first - second
        return decimals_of(scaled(found, wanted - shared), kind)

    if operator in _DIVISIONS:  # Spark evaluates the divisor first
        return of_rows(kind, lambda other, one: kernel(one, other), right, left, may_fail=True)
    return of_rows(kind, kernel, left, right, may_fail=True)


def _as_decimal(value: Compiled, timezone: _Timezone) -> Compiled:
    """Cast a number to DECIMAL. A literal gets the digits that are written, any other number those of its type."""
    if value.type.name == "decimal":
        return value
    digits = DIGITS[value.type.name]
    if value.constant and not value.is_null:
        if not value.literal:
            raise Refused("only Spark calculates with DECIMAL and a constant that is no plain literal")
        digits = len(str(abs(value.value)))
    return widened(value, DataType("decimal", (digits, 0)), timezone)


def negated(value: Compiled) -> Compiled:
    """Return a number with its sign reversed. Raises Refused for other types than numbers."""
    _refuse_rounded(value)
    return _unary(pc.negate_checked, value)


def absolute(value: Compiled) -> Compiled:
    """Return a number without its sign. Raises Refused for other types than numbers."""
    _refuse_rounded(value)
    return _unary(pc.abs_checked, value)


def _refuse_rounded(value: Compiled) -> None:
    _refuse_unless_number(value)
    if value.type.name == "decimal" and value.type.arguments[0] > _DIGITS_OF_A_SIGN:
        raise Refused(f"only Spark changes the sign of {value.type}, and rounds it, then")


_DIGITS_OF_A_SIGN: Final = 34
"""Digits to which Spark rounds a DECIMAL when it changes the sign."""


def square_root(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return SQRT, a DOUBLE; NaN for a number below zero. Raises Refused for other types than numbers."""
    _refuse_unless_number(value)
    return of_rows(DOUBLE, pc.sqrt, widened(value, DOUBLE, timezone))


def sign(value: Compiled, timezone: _Timezone) -> Compiled:
    """Return SIGN as a DOUBLE: 1, -1, or the number itself if zero or NaN. Raises Refused for types but numbers."""
    _refuse_unless_number(value)

    def kernel(found: pa.Array) -> pa.Array:
        return pc.if_else(pc.greater(found, 0.0), 1.0, pc.if_else(pc.less(found, 0.0), -1.0, found))

    return of_rows(DOUBLE, kernel, widened(value, DOUBLE, timezone))


def mean(total: Compiled, count: Compiled) -> Compiled:
    """Return the average of DECIMAL values from their sum and count. The sum's type has ten digits more than theirs."""
    if total.type.name != "decimal" or count.type != _BIGINT:
        raise Refused(f"only Spark divides {total.type} by {count.type} as an average")
    precision, scale = total.type.arguments
    kind = DataType("decimal", (precision - _FURTHER_OF_SUM + _FURTHER_OF_MEAN, scale + _FURTHER_OF_MEAN))

    def kernel(one: pa.Array, other: pa.Array) -> pa.Array:
        return decimals_of(halves_away(units_of(one) * 10**_FURTHER_OF_MEAN, as_numpy(other).astype(object)), kind)

    return of_rows(kind, kernel, total, count)


_FURTHER_OF_SUM: Final = 10
_FURTHER_OF_MEAN: Final = 4
"""Digits that Spark adds to the type of the values: to the precision for a sum, to the scale, too, for an average."""


def _refuse_unless_number(value: Compiled) -> None:
    if not value.type.is_number:
        raise Refused(f"only Spark calculates with {value.type}")


def _unary(kernel: Callable[[Datum], Datum], value: Compiled) -> Compiled:
    def run(rows: pa.RecordBatch) -> Datum:
        found = value.run(rows)
        with _in_range(value.type):
            return kernel(found)

    return Compiled.over(value.type, run, value, may_fail=True)


def _binary(operator: type[exp.Expr], kernel: _Kernel, kind: DataType, left: Compiled, right: Compiled) -> Compiled:
    divides = operator in _DIVISIONS
    first, second = (right, left) if divides else (left, right)  # Spark evaluates the divisor first

    def run(rows: pa.RecordBatch) -> Datum:
        found = in_turn(first, second, rows)
        one, other = reversed(found) if divides else found
        with _in_range(kind):
            return kernel(one, other)

    return null_of_operand(kind, [first, second]) or Compiled.over(kind, run, left, right, may_fail=True)


@contextmanager
def _in_range(kind: DataType) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        raise TrinityError(
            "NUMERIC_VALUE_OUT_OF_RANGE", f"A result does not fit into {kind}; CAST an operand to a wider type."
        ) from error


def _divided(divide: Callable[[Any, Any], Datum]) -> _Kernel:
    """Return a kernel that divides. It fails where a number is divided by zero; NULL divided by zero is NULL."""

    def kernel(left: Datum, right: Datum) -> Datum:
        _refuse_zero(pc.if_else(pc.is_valid(left), right, pa.scalar(None, right.type)))
        # a zero that is left divides a NULL, and a NULL divisor may have 0 in its buffer: the kernel must see neither
        return divide(left, pc.if_else(pc.equal(right, 0), pa.scalar(None, right.type), right))

    return kernel


def _refuse_zero(divisor: Datum) -> None:
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))  # a bare 0 would widen a DECIMAL of 38 digits to 39
    if pc.any(zero if isinstance(zero, pa.Array) else pa.array([zero.as_py()], pa.bool_())).as_py():
        raise TrinityError("INVALID_ARGUMENTS", "A number is divided by zero; NULLIF(divisor, 0) makes it NULL.")


def _whole_remainder(left: Datum, right: Datum) -> Datum:
    """Return the remainder, with the sign of the dividend."""
    by_minus_one = pc.equal(right, -1)  # the smallest number divided by -1 does not fit
    safe = pc.if_else(by_minus_one, pa.scalar(1, right.type), right)
    return pc.subtract(left, pc.multiply(pc.divide(left, safe), safe))


def _floating_remainder(left: Datum, right: Datum) -> Datum:
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _floating_remainder(pa.repeat(left, 1), right)[0]
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    with np.errstate(all="ignore"):
        found = np.fmod(_numbers(left), _numbers(right))
    kind = left.type
    return pc.if_else(valid, as_arrow(np.broadcast_to(found, len(valid)), kind), pa.scalar(None, kind))


def _numbers(values: Datum) -> Any:
    if isinstance(values, pa.Scalar):
        return np.nan if not values.is_valid else np.asarray(values.as_py(), values.type.to_pandas_dtype())
    return as_numpy(pc.fill_null(values, float("nan")))


_WHOLE: Final[dict[type[exp.Expr], _Kernel]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
    exp.IntDiv: _divided(pc.divide_checked),
    exp.Mod: _divided(_whole_remainder),
}
_FLOATING: Final[dict[type[exp.Expr], _Kernel]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
    exp.Div: _divided(pc.divide),
    exp.Mod: _divided(_floating_remainder),
}
_DIVISIONS: Final = (exp.Div, exp.IntDiv, exp.Mod)
OPERATORS: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
"""The operators that :func:`arithmetic` takes."""
