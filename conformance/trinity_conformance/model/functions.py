"""Aggregate functions (A3), in plain Python: a left fold, one row after the other.

Each function says what a row adds, what a retract takes back, and what the column reads in the end. The accumulator
starts as None, "nothing yet". Which rows a function sees, and in which order, is decided elsewhere (A2).

Functions of arrays, maps and structs are in :mod:`~trinity_conformance.model.nested_functions`, those of sketches and
bitmaps in :mod:`~trinity_conformance.model.sketches`.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from trinity.spi import parse_type
from trinity_conformance.model.values import Value, order_form

_WIDE: Final = Context(prec=200, rounding=ROUND_HALF_UP)
_RANGES: Final[Mapping[str, int]] = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


@dataclass(frozen=True)
class OutOfRange:
    """The value of a column whose total does not fit its type: the read must fail with NUMERIC_VALUE_OUT_OF_RANGE (A4).

    Attributes:
        total: the total.
    """

    total: Any


@dataclass(frozen=True)
class Function(ABC):
    """An aggregate function of one column.

    Attributes:
        type: type text of the column.
        options: options of the column, by their last part, as ``list-agg-delimiter``.
    """

    type: str
    options: Mapping[str, str] = field(default_factory=dict)

    @abstractmethod
    def add(self, acc: Any, value: Value) -> Any:
        """Return the accumulator after a row with ``value``, which may be NULL."""

    def retract(self, acc: Any, value: Value) -> Any:
        """Return the accumulator after a retract of ``value``. Functions without it refuse written retracts."""
        raise TypeError(f"{type(self).__name__} does not retract")

    def assign(self, acc: Any, value: Value) -> Any:
        """Return the accumulator after an SQL UPDATE of the column (P1); only last_non_null_value may be updated."""
        raise TypeError(f"{type(self).__name__} is not updated")

    def result(self, acc: Any) -> Value:
        """Return the value of the column."""
        return acc

    @property
    def retracts(self) -> bool:
        """Whether the function can take a retract back."""
        return type(self).retract is not Function.retract

    def refuses(self, value: Value) -> bool:
        """Return whether a retract of this value cannot be taken back (D4)."""
        return not self.retracts

    def switch(self, option: str) -> bool:
        """Return the value of a boolean option."""
        return self.options.get(option, "false") == "true"


# -- numbers --------------------------------------------------------------------------------------------


class _Number(Function):
    def widened(self, value: Value) -> Value:
        """Return a value in the type of totals: no integer, decimal or double overflows in it (A4)."""
        return value

    def result(self, acc: Any) -> Value:
        if acc is None:
            return None
        kind = parse_type(self.type)
        if kind.name in _RANGES:
            return acc if -_RANGES[kind.name] <= acc < _RANGES[kind.name] else OutOfRange(acc)
        if kind.name == "decimal":
            precision, scale = kind.arguments
            return acc if abs(acc) < Decimal(10) ** (precision - scale) else OutOfRange(acc)
        return _as_float(acc) if kind.name == "float" else acc


def _as_float(value: float) -> float:
    """Return the nearest number of single precision."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


class Sum(_Number):
    """sum: NULL changes nothing; a retract without a total yet gives the negative."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        return value if acc is None else self.plus(acc, value)

    def retract(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        return -value if acc is None else self.plus(acc, -value)

    def plus(self, one: Any, other: Any) -> Any:
        """Return the sum of both; decimals keep every digit."""
        return _WIDE.add(one, other) if isinstance(one, Decimal) else one + other


class Product(_Number):
    """product: NULL changes nothing; a retract divides, integers toward zero, decimals HALF_UP to the scale."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None:
            return acc
        if acc is None:
            return value
        return self.scaled(_WIDE.multiply(acc, value)) if isinstance(acc, Decimal) else acc * value

    def retract(self, acc: Any, value: Value) -> Any:
        if acc is None or value is None:
            return acc
        if isinstance(acc, Decimal):
            return self.scaled(_WIDE.divide(acc, value))
        if isinstance(acc, int):
            whole = abs(acc) // abs(value)
            return whole if (acc < 0) == (value < 0) else -whole
        return acc / value

    def scaled(self, value: Decimal) -> Decimal:
        """Return a value rounded to the column's scale."""
        return value.quantize(Decimal(1).scaleb(-parse_type(self.type).arguments[1]), context=_WIDE)

    def refuses(self, value: Value) -> bool:
        return value is not None and value == 0


# -- the largest, the smallest, all and any -------------------------------------------------------------


class Max(Function):
    """max: NULL changes nothing; NaN is above every number (K3)."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or acc is None:
            return acc if value is None else value
        return value if self.order(value) > self.order(acc) else acc

    def order(self, value: Value) -> tuple[Any, ...]:
        """Return the sort key of a value."""
        return order_form(self.type, value)


class Min(Max):
    """min: NULL changes nothing."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or acc is None:
            return acc if value is None else value
        return value if self.order(value) < self.order(acc) else acc


class BoolAnd(Function):
    """bool_and: NULL changes nothing."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or acc is None:
            return acc if value is None else value
        return acc and value


class BoolOr(Function):
    """bool_or: NULL changes nothing."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or acc is None:
            return acc if value is None else value
        return acc or value


# -- first and last -------------------------------------------------------------------------------------


class LastValue(Function):
    """last_value: NULL counts; a retract leaves NULL."""

    def add(self, acc: Any, value: Value) -> Any:
        return value

    def retract(self, acc: Any, value: Value) -> Any:
        return None


class LastNonNullValue(Function):
    """last_non_null_value: NULL is skipped; a retract of a value leaves NULL; an SQL UPDATE sets NULL too (P1)."""

    def add(self, acc: Any, value: Value) -> Any:
        return acc if value is None else value

    def retract(self, acc: Any, value: Value) -> Any:
        return acc if value is None else None

    def assign(self, acc: Any, value: Value) -> Any:
        return value


class FirstValue(Function):
    """first_value: the first row, NULL counts. The accumulator is a tuple, so that NULL differs from nothing yet."""

    def add(self, acc: Any, value: Value) -> Any:
        return (value,) if acc is None else acc

    def result(self, acc: Any) -> Value:
        return None if acc is None else acc[0]


class FirstNonNullValue(Function):
    """first_non_null_value, also first_not_null_value: the first that is not NULL."""

    def add(self, acc: Any, value: Value) -> Any:
        return value if acc is None else acc


class Listagg(Function):
    """listagg: NULL, empty and blank texts are skipped; ``distinct`` compares what lies between delimiters."""

    def add(self, acc: Any, value: Value) -> Any:
        if value is None or not value.strip():
            return acc
        delimiter = self.options.get("list-agg-delimiter", ",")
        if not self.switch("distinct"):
            return value if acc is None else acc + delimiter + value
        tokens = [] if acc is None else acc.split(delimiter)
        for token in value.split(delimiter):
            if token.strip() and token not in tokens:
                tokens.append(token)
        return delimiter.join(tokens) if tokens else None


SCALAR_FUNCTIONS: Final[Mapping[str, Callable[[str, Mapping[str, str]], Function]]] = {
    "sum": Sum,
    "product": Product,
    "max": Max,
    "min": Min,
    "bool_and": BoolAnd,
    "bool_or": BoolOr,
    "last_value": LastValue,
    "last_non_null_value": LastNonNullValue,
    "first_value": FirstValue,
    "first_non_null_value": FirstNonNullValue,
    "first_not_null_value": FirstNonNullValue,
    "listagg": Listagg,
}
"""Name -> function of primitive columns."""
