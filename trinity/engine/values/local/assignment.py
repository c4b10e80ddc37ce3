"""Assignment of values to columns in Arrow, equal to Spark's store assignment (M6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.executes import NotLocal
from trinity.engine.values.store_assignment import narrows, only_widens, refusal_around, refuse_unassignable, too_large
from trinity.engine.writing.casts import cast_array, converts, fitted
from trinity.spi import Column, DataType, parse_type

_DIGITS: Final = 76
"""Most digits of Arrow's widest DECIMAL."""
_Cast = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class Assignment:
    """The assignment of values of one type to a column.

    Attributes:
        cast: returns values as the column stores them, NULL for values that do not fit.
        message: the message, before the value, of the error for a value that does not fit; None where all values fit.
    """

    cast: _Cast
    message: str | None

    def refusals(self, given: pa.Array, stored: pa.Array) -> pa.Array | None:
        """Return the error of each value that does not fit, as JSON; None when all values fit."""
        if self.message is None or given.null_count == stored.null_count:
            return None
        bad = pc.and_(pc.is_valid(given), pc.is_null(stored))
        head, tail = refusal_around(self.message)
        texts = [head + _shown(value) + tail for value in given.filter(bad).to_pylist()]
        return pc.replace_with_mask(pa.nulls(len(given), pa.string()), bad, pa.array(texts))


def _shown(value: object) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def assignment(source: DataType, column: Column, table: str, where: str) -> Assignment | NotLocal:
    """Return the assignment of values of a type to a column.

    Args:
        source: the values' type.
        column: the column.
        table: full name of the table, for messages.
        where: the clause, for messages.

    Raises:
        TrinityError: TYPE_MISMATCH when values of the type may not be assigned to the column.
    """
    wanted = parse_type(column.type)
    if source.name == "void":
        kind = wanted.to_arrow()
        return Assignment(lambda values: pa.nulls(len(values), kind), None)
    if source == wanted and not wanted.limited:
        return Assignment(lambda values: values, None)
    if not converts(source, wanted):
        refuse_unassignable(source, column, table, where)
        if source.is_text:
            return Assignment(lambda values: fitted_texts(values, wanted), None)
    if source.nested and only_widens(source, wanted):
        kind = wanted.to_arrow()
        return Assignment(lambda values: cast_array(values, kind, f"column '{column.name}'", "UTC"), None)
    cast = _number(source, wanted) if source.is_number and wanted.is_number else None
    if cast is None:
        return NotLocal(f"only Spark stores {source} in column '{column.name}', which is {wanted}")
    return Assignment(cast, too_large(column, table, where) if narrows(source, wanted) else None)


def fitted_texts(values: pa.Array, kind: DataType) -> pa.Array:
    """Return texts as a column of a type stores them; one that is too long stays, so that the sink refuses it (K2)."""
    if not kind.has_length:
        return values
    fits = pc.less_equal(pc.utf8_length(pc.utf8_rtrim(values, " ")), kind.arguments[0])
    return pc.if_else(fits, fitted(values, kind), values)


def _number(source: DataType, wanted: DataType) -> _Cast | None:
    """Return the conversion between two types of numbers; None for a conversion that only Spark makes."""
    target = wanted.to_arrow()
    if source.is_integer and wanted.is_integer:
        return lambda values: _within(values, target)
    if source.is_floating or wanted.is_floating:
        if source.name == "decimal":
            return lambda values: cast_array(values, target, "", "UTC")
        return (lambda values: values.cast(target, safe=False)) if wanted.is_floating else None
    if wanted.name == "decimal":
        return lambda values: _rounded_to_decimal(values, target)
    return lambda values: _within(pc.trunc(values).cast(pa.decimal128(38, 0)), target)


def _within(values: pa.Array, target: pa.DataType) -> pa.Array:
    bound = 1 << target.bit_width - 1
    if pa.types.is_decimal(values.type):
        low, high = (pa.scalar(Decimal(edge), values.type) for edge in (-bound, bound - 1))
    elif values.type.bit_width <= target.bit_width:
        return values.cast(target)
    else:
        low, high = pa.scalar(-bound, values.type), pa.scalar(bound - 1, values.type)
    fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.if_else(fits, values, pa.scalar(None, values.type)).cast(target)


def _rounded_to_decimal(values: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Round numbers half up to a DECIMAL; a number with too many digits before the point becomes NULL."""
    source = values.type if pa.types.is_decimal(values.type) else pa.decimal128(19, 0)
    wide = values.cast(pa.decimal256(_DIGITS, source.scale))
    if source.scale > target.scale:
        wide = pc.round(wide, target.scale, "half_towards_infinity")
    before = target.precision - target.scale
    if source.precision - source.scale >= before:
        fits = pc.less(pc.abs(wide), pa.scalar(Decimal(10) ** before, wide.type))
        wide = pc.if_else(fits, wide, pa.scalar(None, wide.type))
    return wide.cast(pa.decimal256(_DIGITS, target.scale)).cast(target)
