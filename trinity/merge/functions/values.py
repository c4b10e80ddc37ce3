"""Functions that choose one of the values: by fold order, or by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from trinity.merge.functions.base import AggregateFunction, Field, aggregated
from trinity.merge.kernels.order import FoldOrder, order_codes
from trinity.merge.kernels.rows import ColumnRows, Folded, picked
from trinity.spi import DataType


def _at(end: str, field: Field, value: str, when: str) -> str:
    """Return Spark SQL: the value, even NULL, at one end of the fold order: ``min`` is the first, ``max`` the last."""
    return aggregated(f"{end}_by({value}, {field.order})", when)


class _Placed(AggregateFunction):
    stands = False
    translates = True


class LastValue(_Placed):
    """The last value, NULL too; a retract leaves NULL."""

    name = "last_value"
    retractable = True

    def aggregate(self, field: Field) -> str:
        return _at("max", field, _unless_retract(field), field.when)

    def folded(self, rows: ColumnRows) -> Folded:
        return _unless_retracted(rows, rows.order.last(rows.when))


class LastNonNullValue(_Placed):
    """The last value that is not NULL; a retract of a value leaves NULL. The default of ``aggregation``."""

    name = "last_non_null_value"
    retractable = True

    def aggregate(self, field: Field) -> str:
        when = f"{field.when} AND ({field.value} IS NOT NULL OR {field.explicit})"
        return _at("max", field, _unless_retract(field), when)

    def folded(self, rows: ColumnRows) -> Folded:
        return _unless_retracted(rows, rows.order.last(rows.with_value | (rows.when & rows.explicit)))


class FirstValue(_Placed):
    """The first value, NULL too."""

    name = "first_value"

    def aggregate(self, field: Field) -> str:
        return _at("min", field, field.value, f"{field.when} AND NOT {field.retract}")

    def folded(self, rows: ColumnRows) -> Folded:
        return Folded(picked(rows.values, rows.order.first(rows.when & ~rows.retract)))


class FirstNonNullValue(_Placed):
    """The first value that is not NULL."""

    name = "first_non_null_value"

    def aggregate(self, field: Field) -> str:
        return _at("min", field, field.value, f"{field.when} AND NOT {field.retract} AND {field.value} IS NOT NULL")

    def folded(self, rows: ColumnRows) -> Folded:
        return Folded(picked(rows.values, rows.order.first(rows.with_value & ~rows.retract)))


def _unless_retract(field: Field) -> str:
    return f"IF({field.retract}, NULL, {field.value})" if field.retracts else field.value


def _unless_retracted(rows: ColumnRows, chosen: np.ndarray) -> Folded:
    return Folded(picked(rows.values, np.where((chosen < 0) | rows.retract[chosen], -1, chosen)))


class _Extreme(AggregateFunction):
    commutes = True
    translates = True
    call: ClassVar[str]
    largest: ClassVar[bool]

    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return "compares values, which this type does not allow" if kind.nested else None

    def aggregate(self, field: Field) -> str:
        when = f"{field.when} AND NOT {field.retract}" if field.retracts else field.when
        return aggregated(f"{self.call}({field.value})", when)

    def folded(self, rows: ColumnRows) -> Folded:
        by_size = FoldOrder(rows.order.keys, rows.order.count, (order_codes(rows.values),))
        among = rows.with_value & ~rows.retract
        return Folded(picked(rows.values, by_size.last(among) if self.largest else by_size.first(among)))


class Max(_Extreme):
    """The largest value; text and binary by bytes, NaN above every number (K3)."""

    name = "max"
    call = "max"
    largest = True


class Min(_Extreme):
    """The smallest value."""

    name = "min"
    call = "min"
    largest = False


class _Logical(_Extreme):
    def problem(self, kind: DataType, options: Mapping[str, str]) -> str | None:
        return None if kind.name == "boolean" else "needs a boolean column"


class BoolAnd(_Logical):
    """TRUE if every value is TRUE."""

    name = "bool_and"
    call = "bool_and"
    largest = False


class BoolOr(_Logical):
    """TRUE if any value is TRUE."""

    name = "bool_or"
    call = "bool_or"
    largest = True
