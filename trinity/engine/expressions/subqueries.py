"""Subqueries whose rows are there already: IN, EXISTS, and the value of the only row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.families import BOOLEAN, FLOATS, TEXTS, WHOLE
from trinity.engine.expressions.node import Compiled, Datum, Refused
from trinity.errors import TrinityError
from trinity.spi import DataType, parse_given_type, type_text

__all__ = ["among_rows", "exists", "only_value"]

_OF_ROWS: Final = frozenset({""})
"""Stands for the columns of a subquery: its value is no literal, beside which Spark would pad a CHAR column."""


def exists(rows: pa.Table) -> Compiled:
    """Return EXISTS."""
    return Compiled(BOOLEAN, lambda _: pa.scalar(rows.num_rows > 0), _OF_ROWS)


def only_value(rows: pa.Table) -> Compiled:
    """Return the value of the only row, NULL without a row.

    Raises:
        TrinityError: SUBQUERY_MULTIPLE_ROWS.
    """
    kind = _only_type(rows)
    if rows.num_rows > 1:
        raise TrinityError("SUBQUERY_MULTIPLE_ROWS", f"A subquery that is a value has {rows.num_rows} rows, not one.")
    column = rows.column(0)
    value = column[0] if rows.num_rows else pa.scalar(None, column.type)
    return Compiled(kind, lambda _: value, _OF_ROWS)


def among_rows(value: Compiled, rows: pa.Table, timezone: Callable[[], str]) -> Compiled:
    """Return IN of a subquery. Raises Refused for types that only Spark compares."""
    kind = _only_type(rows)
    both = {value.type.name, kind.name}
    if kind.nested or both & {*FLOATS, "char"} or not (value.type == kind or both <= {*WHOLE} or both <= {*TEXTS}):
        raise Refused(f"only Spark looks for {value.type} among rows of {kind}")
    page = pa.record_batch({"": rows.column(0).combine_chunks()})
    value, listed = together([value, Compiled(kind, lambda page: page.column(0), _OF_ROWS)], timezone)
    values = listed.evaluate(page)
    known = values.drop_null()
    absent = pa.scalar(None if values.null_count else False, pa.bool_())

    def run(batch: pa.RecordBatch) -> Datum:
        if not len(values):
            return pa.scalar(False)
        found = value.run(batch)
        among = pc.if_else(pc.is_in(found, value_set=known), True, absent)
        return pc.if_else(pc.is_null(found), pa.scalar(None, pa.bool_()), among)

    return Compiled(BOOLEAN, run, value.fields | _OF_ROWS, may_fail=value.may_fail)


def _only_type(rows: pa.Table) -> DataType:
    if rows.num_columns != 1:
        raise Refused(f"a subquery that is a value has {rows.num_columns} columns")
    return parse_given_type(type_text(rows.schema.field(0).type))
