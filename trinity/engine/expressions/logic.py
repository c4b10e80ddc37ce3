"""AND, OR, NOT and IS, with three values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions.node import BOOLEAN, VOID, Compiled, Datum, Refused, as_array
from trinity.spi import DataType

__all__ = ["as_boolean", "null_of_operand", "both", "either", "in_turn", "is_null", "is_true", "negated", "spread"]


def as_boolean(value: Compiled) -> Compiled:
    """Return a condition, of a NULL too. Raises Refused for a value of another type."""
    if value.type == VOID:
        return Compiled(BOOLEAN, lambda _: pa.scalar(None, pa.bool_()))
    if value.type != BOOLEAN:
        raise Refused(f"{value.type} is no condition")
    return value


def both(left: Compiled, right: Compiled) -> Compiled:
    """Return AND."""
    return _joined(pc.and_kleene, left, right, decides=False)


def either(left: Compiled, right: Compiled) -> Compiled:
    """Return OR."""
    return _joined(pc.or_kleene, left, right, decides=True)


def _joined(kernel: Callable[..., Any], left: Compiled, right: Compiled, *, decides: bool) -> Compiled:
    """Join two conditions; the right one, if it may raise, is evaluated only where the left one does not decide."""
    left, right = as_boolean(left), as_boolean(right)

    def run(rows: pa.RecordBatch) -> Datum:
        first = left.run(rows)
        if not right.may_fail:
            return kernel(first, right.run(rows))
        first = as_array(first, len(rows))
        open_ = pc.fill_null(pc.not_equal(first, decides), True)
        return kernel(first, on_some_rows(right, rows, open_))

    return Compiled(BOOLEAN, run, left.fields | right.fields, may_fail=left.may_fail or right.may_fail)


def on_some_rows(value: Compiled, rows: pa.RecordBatch, some: pa.Array) -> pa.Array:
    """Evaluate an expression on some rows alone; NULL for the others."""
    if not pc.any(some).as_py():
        return pa.nulls(len(rows), value.arrow_type)
    found = as_array(value.run(rows.filter(some)), pc.sum(some).as_py() or 0)
    return spread(found, some)


def spread(values: pa.Array, some: pa.Array) -> pa.Array:
    """Return the values of some rows in the places of these; NULL in the others."""
    if pa.types.is_nested(values.type):
        chosen = as_numpy(some)
        return values.take(as_arrow(np.cumsum(chosen) - 1, mask=~chosen))
    return pc.replace_with_mask(pa.nulls(len(some), values.type), some, values)


def in_turn(first: Compiled, second: Compiled, rows: pa.RecordBatch) -> tuple[Datum, Datum]:
    """Evaluate two operands; the second one, if it may raise, only for rows where the first one is not NULL."""
    one = first.run(rows)
    if not second.may_fail:
        return one, second.run(rows)
    one = as_array(one, len(rows))
    return one, on_some_rows(second, rows, pc.is_valid(one))


def null_of_operand(kind: DataType, values: Sequence[Compiled]) -> Compiled | None:
    """Return NULL where one of some operands, in the order of their evaluation, is a constant NULL.

    Raises:
        Refused: where one before it may fail: in some plans Spark evaluates that one, and in others not.
    """
    nulls = [v.constant and (v.type == VOID or v.is_null) for v in values]
    if not any(nulls):
        return None
    if any(v.may_fail for v in values[: nulls.index(True)]):
        raise Refused("only Spark says whether a value beside NULL is evaluated")
    return Compiled(kind, lambda _: pa.scalar(None, kind.to_arrow()))


def negated(value: Compiled) -> Compiled:
    """Return NOT."""
    value = as_boolean(value)
    return Compiled(BOOLEAN, lambda rows: pc.invert(value.run(rows)), value.fields, may_fail=value.may_fail)


def is_null(value: Compiled) -> Compiled:
    """Return IS NULL."""
    return Compiled(BOOLEAN, lambda rows: pc.is_null(value.run(rows)), value.fields, may_fail=value.may_fail)


def is_true(value: Compiled, *, wanted: bool) -> Compiled:
    """Return IS TRUE, or IS FALSE."""
    value = as_boolean(value)
    return Compiled(
        BOOLEAN,
        lambda rows: pc.fill_null(pc.equal(value.run(rows), wanted), False),
        value.fields,
        may_fail=value.may_fail,
    )
