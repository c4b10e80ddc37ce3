"""Expressions whose kernels see only rows in which no operand is NULL."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.node import Compiled, as_array, null_of_operand, on_some_rows, spread
from trinity.spi import DataType


def of_rows(kind: DataType, kernel: Callable[..., pa.Array], *operands: Compiled, may_fail: bool = False) -> Compiled:
    """Apply a kernel that takes arrays without NULLs; the result is NULL where an operand is NULL.

    The operands are evaluated in order. One that may raise is evaluated only in rows where none before it is NULL.
    """

    def run(rows: pa.RecordBatch) -> pa.Array:
        found = list[pa.Array]()
        for operand in operands:
            if found and operand.may_fail:
                found.append(on_some_rows(operand, rows, _valid_rows(found)))
            else:
                found.append(as_array(operand.run(rows), len(rows)))
        return _where_valid(kernel, *found)

    return null_of_operand(kind, operands) or Compiled.over(kind, run, *operands, may_fail=may_fail)


def _where_valid(kernel: Callable[..., pa.Array], *values: pa.Array) -> pa.Array:
    """Apply a kernel to the rows without NULL; the result is NULL in the others."""
    if not any(v.null_count for v in values):
        return kernel(*values)
    known = _valid_rows(values)
    return spread(kernel(*(v.filter(known) for v in values)), known)


def _valid_rows(values: list[pa.Array] | tuple[pa.Array, ...]) -> pa.Array:
    return reduce(pc.and_, map(pc.is_valid, values))
