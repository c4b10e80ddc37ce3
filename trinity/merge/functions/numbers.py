"""Sums and products, in types so wide that no step overflows; only the final value is range-checked (A4)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.merge.functions.base import AggregateFunction, Field, ListFunction, aggregated, ranged, unfit
from trinity.merge.kernels.products import integer_limits, steps_of
from trinity.merge.kernels.rows import ColumnRows, Folded
from trinity.merge.kernels.sums import decimals, digits_of, sums_of_digits, totals, whole
from trinity.spi import INTEGERS, DataType

_SMALL: Final = INTEGERS[:3]
_WIDEST: Final = 38
_MORE_DIGITS: Final = 10
_PRODUCT_DIGITS: Final = 18
"""The most digits of a decimal column: with more, Spark's product of two decimals would lose digits."""
_EXACT: Final = Context(prec=200)


class Sum(AggregateFunction):
    """The sum; a retract subtracts its value. It does not depend on the order of the rows."""

    name = "sum"
    retractable = True
    commutes = True
    translates = True

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if kind.is_number else "needs a number"

    def aggregate(self, field: Field) -> str:
        value = _signed(field, _wide(field, field.value))
        if _may_leave_decimal(field.type):
            sums, counted = (aggregated(f"{call}({value})", field.when) for call in ("try_sum", "count"))
            return f"named_struct('v', {sums}, 'n', {counted})"
        if not _in_halves(field):
            return aggregated(f"sum({value})", field.when)
        # the sums of two halves cannot overflow; DECIMAL(38) for every row would take longer than the rest of the fold
        low = aggregated(f"sum({_signed(field, f'({field.value} & {_LOW})')})", field.when)
        high = aggregated(f"sum({_signed(field, f'shiftright({field.value}, 32)')})", field.when)
        return f"named_struct('low', {low}, 'high', {high})"

    def result(self, field: Field, state: str) -> str:
        if field.type.is_floating:
            return f"CAST({state} AS {field.type})"
        if _in_halves(field):
            exact = f"CAST({state}.high AS DECIMAL(38,0)) * 4294967296BD + {state}.low"
            return ranged(field, f"(shiftleft({_high(state)}, 32) | ({state}.low & {_LOW}))", _beyond(state), exact)
        if _may_leave_decimal(field.type):
            return ranged(field, f"{state}.v", _overflowed(state))
        return state if field.type.name == "bigint" else ranged(field, state)

    def fits(self, field: Field, state: str) -> str | None:
        if _in_halves(field):
            return f"NOT {_beyond(state)}"
        if _may_leave_decimal(field.type):
            return f"NOT {unfit(field, f'{state}.v', _overflowed(state))}"
        return None if field.type.is_floating or field.type.name == "bigint" else f"NOT {unfit(field, state)}"

    def folded(self, rows: ColumnRows) -> Folded:
        order, keys, values = rows.order, rows.order.keys, rows.values
        negative = rows.retract if rows.retract.any() else None
        if not rows.with_value.all():
            among = np.flatnonzero(rows.with_value)
            keys, values = keys[among], values.take(as_arrow(among))
            negative = None if negative is None else negative[among]
        none = np.bincount(keys, minlength=order.count) == 0
        if rows.type.is_floating:
            numbers = as_numpy(values.cast(pa.float64()))
            numbers = numbers if negative is None else np.where(negative, -numbers, numbers)
            sums = np.bincount(keys, numbers, minlength=order.count)
            return Folded(as_arrow(sums, mask=none).cast(rows.values.type, safe=False))
        digits = sums_of_digits(digits_of(values), keys, order.count, negative)
        if rows.type.name == "decimal":
            return _decimal_sums(rows, digits, none, keys, values, negative)
        sums, unfit = totals(digits)
        if rows.type.name in _SMALL:
            limits = integer_limits(rows.type)
            unfit = (sums < limits.min) | (sums > limits.max)
        found = as_arrow(sums, mask=none | unfit).cast(rows.values.type)
        return Folded(found, unfit, lambda key: str(whole(digits, key)))


def _decimal_sums(
    rows: ColumnRows,
    digits: list[np.ndarray],
    none: np.ndarray,
    keys: np.ndarray,
    values: pa.Array,
    negative: np.ndarray | None,
) -> Folded:
    precision, scale = rows.type.arguments
    sums, unfit = decimals(digits, scale)
    if precision == _WIDEST:
        unfit |= _beyond_digits(digits, unfit)
    else:
        limit = pa.scalar(Decimal(10) ** (precision - scale), pa.decimal128(_WIDEST, scale))
        unfit |= as_numpy(pc.greater_equal(pc.abs(sums), limit))
    overflowed = _overflowed_on_the_way(precision, keys, values, negative, len(none))
    unfit |= overflowed
    mask = as_arrow(none | unfit)
    found = pc.if_else(mask, pa.scalar(None, sums.type), sums).cast(rows.values.type)

    def shown(key: int) -> str:
        if overflowed[key]:
            return "of many digits"
        return format(Decimal(whole(digits, key)).scaleb(-scale, _EXACT), "f")

    return Folded(found, unfit, shown)


def _beyond_digits(digits: list[np.ndarray], beyond: np.ndarray) -> np.ndarray:
    """Return a mask of the sums that fit into 128 bits, but have more than 38 digits."""
    near = np.flatnonzero(~beyond & (np.abs(digits[3]) >= (10**_WIDEST >> 96)))
    found = np.zeros(len(beyond), bool)
    found[near] = [abs(whole(digits, key)) >= 10**_WIDEST for key in near.tolist()]
    return found


def _overflowed_on_the_way(
    precision: int, keys: np.ndarray, values: pa.Array, negative: np.ndarray | None, count: int
) -> np.ndarray:
    """Return a mask of the keys whose running sum exceeds 38 digits on the way, as Spark's sum then overflows."""
    found = np.zeros(count, bool)
    if precision <= _WIDEST - _MORE_DIGITS:
        return found
    sizes = np.abs(as_numpy(values.cast(pa.float64()))) * 10.0**values.type.scale
    near = np.bincount(keys, sizes, minlength=count) > 0.9 * 10.0**_WIDEST
    for key in np.flatnonzero(near):  # few keys, if any
        mine = np.flatnonzero(keys == key)
        total = 0
        for row in mine.tolist():
            value = int(values[row].as_py().scaleb(values.type.scale, _EXACT))
            total += -value if negative is not None and negative[row] else value
            found[key] |= abs(total) >= 10**_WIDEST
    return found


def _in_halves(field: Field) -> bool:
    """Return True when a partial sum may need more than BIGINT."""
    return field.type.name == "bigint" and not field.small


_LOW: Final = "4294967295L"


def _high(state: str) -> str:
    """Return Spark SQL: the high half of a sum, with the carry of the low half."""
    return f"({state}.high + shiftright({state}.low, 32))"


def _beyond(state: str) -> str:
    return f"coalesce({_high(state)} NOT BETWEEN -2147483648L AND 2147483647L, false)"


def _may_leave_decimal(kind: DataType) -> bool:
    """Return whether even Spark's sum, which has ten digits more than the column, can overflow; then it is NULL."""
    return kind.name == "decimal" and kind.arguments[0] > _WIDEST - _MORE_DIGITS


def _overflowed(state: str) -> str:
    return f"({state}.v IS NULL AND {state}.n > 0)"


def _signed(field: Field, value: str) -> str:
    return f"IF({field.retract}, -{value}, {value})" if field.retracts else value


def _wide(field: Field, value: str) -> str:
    if field.type.name in _SMALL:
        return f"CAST({value} AS BIGINT)"
    return f"CAST({value} AS DOUBLE)" if field.type.is_floating else value


class Product(ListFunction):
    """The product; a retract divides: integers truncate, DECIMAL rounds half up to the column's scale at every step."""

    name = "product"
    retractable = True

    def said_in(self, dialect: str, field: Field) -> bool:
        # a quotient of decimals needs more digits than the exact types of other engines have
        return dialect == "spark" or field.type.name != "decimal" or not field.retracts

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        if kind.name == "decimal" and kind.arguments[0] > _PRODUCT_DIGITS:
            return f"multiplies decimals of up to {_PRODUCT_DIGITS} digits"
        return None if kind.is_number else "needs a number"

    def bad_retract(self, values: pa.Array) -> str | None:
        zero = pc.any(pc.equal(values, pa.scalar(0, values.type))).as_py()
        return "cannot take back a factor of 0" if zero else None

    def fold(self, field: Field, rows: str) -> str:
        kind = _accumulator(field.type)
        factor = f"CAST(x.v AS {_factor(field.type)})"
        times = _rounded(field, f"try_multiply(a.v, {factor})", kind)
        steps = f"CASE WHEN a.over THEN IF(x.v = 0 AND NOT x.r, {_state(f'CAST(0 AS {kind})', kind)}, a) "
        if field.retracts:
            steps += f"WHEN x.r AND a.v IS NULL THEN a WHEN x.r THEN {_result(_quotient(field, factor, kind), kind)} "
        steps += f"WHEN a.v IS NULL THEN {_state(f'CAST(x.v AS {kind})', kind)} ELSE {_result(times, kind)} END"
        start = _state("NULL", kind)
        return f"aggregate({rows}, {start}, (a, x) -> {steps})"

    def result(self, field: Field, state: str) -> str:
        if _floating(field):
            return f"CAST({self.fold(field, state)}.v AS {field.type})"
        return f"{_once(self.fold(field, state), ranged(field, 'p.v', 'p.over'))}"

    def fits(self, field: Field, state: str) -> str | None:
        return None if _floating(field) else _once(self.fold(field, state), f"NOT {unfit(field, 'p.v', 'p.over')}")

    def folded(self, rows: ColumnRows) -> Folded:
        # row by row, since each step rounds the result of the step before
        steps, indexes = steps_of(rows.type), self.counted(rows)
        values = steps.numbers(rows.values.take(as_arrow(indexes)))
        keys, retract = rows.order.keys[indexes].tolist(), rows.retract[indexes].tolist()
        products: list[Any] = [None] * rows.order.count
        over = np.zeros(rows.order.count, bool)
        for key, value, taken_back in zip(keys, values, retract, strict=True):
            so_far = products[key]
            if over[key]:
                if value == 0 and not taken_back:
                    products[key], over[key] = abs(value), False
            elif so_far is None:
                products[key] = so_far if taken_back else value
            else:
                products[key] = steps.divided(so_far, value) if taken_back else steps.multiplied(so_far, value)
                over[key] = products[key] is None
        return steps.folded(products, over, rows.values.type)


def _once(value: str, of: str) -> str:
    """Return Spark SQL: expression ``of``, in which ``p`` stands for ``value``, which is evaluated once."""
    return f"transform(array({value}), p -> {of})[0]"


def _floating(field: Field) -> bool:
    return field.type.is_floating


def _accumulator(kind: DataType) -> str:
    if kind.is_floating:
        return "DOUBLE"
    # the widest type whose product with a value of the column is exact
    return "DECIMAL(38,0)" if kind.is_integer else f"DECIMAL({37 - kind.arguments[0]},{kind.arguments[1]})"


def _factor(kind: DataType) -> str:
    if kind.is_floating:
        return "DOUBLE"
    return "DECIMAL(20,0)" if kind.is_integer else str(kind)


def _state(value: str, kind: str, over: str = "false") -> str:
    """Return Spark SQL: STRUCT<v, over>. ``over`` is true once the product is out of range; only a 0 brings it back."""
    return f"named_struct('v', CAST({value} AS {kind}), 'over', {over})"


def _result(value: str, kind: str) -> str:
    return _state(value, kind, f"({value}) IS NULL")


def _rounded(field: Field, value: str, kind: str) -> str:
    return value if _floating(field) else f"try_cast({value} AS {kind})"


def _quotient(field: Field, factor: str, kind: str) -> str:
    if field.type.is_integer:  # Spark's DIV yields BIGINT
        return f"try_cast(try_divide(a.v - a.v % {factor}, {factor}) AS {kind})"
    return _rounded(field, f"try_divide(a.v, {factor})", kind)
