"""CASE, IF, COALESCE, NULLIF, GREATEST and LEAST. As in Spark, a value is evaluated only in rows that need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.coercion import together
from trinity.engine.expressions.comparisons import comparison
from trinity.engine.expressions.literals import constant
from trinity.engine.expressions.logic import as_boolean
from trinity.engine.expressions.node import (
    STRING,
    VOID,
    Compiled,
    Datum,
    Refused,
    as_array,
    on_some_rows,
)

_Timezone = Callable[[], str]


def _of_one_type(values: Sequence[Compiled], timezone: _Timezone) -> list[Compiled]:
    """Cast values to one type, texts to STRING. Raises Refused for types between which only Spark chooses."""
    if any(v.type.nested for v in values):
        raise Refused("only Spark chooses between values of nested types")
    texts = [v.type.is_text or v.type == VOID for v in values]
    if any(v.type.is_text for v in values) and not all(texts):
        raise Refused("only Spark chooses between texts and other values")
    found = together(values, timezone)
    return [Compiled.over(STRING, v.run, v) if v.type.is_text else v for v in found]


def chosen(cases: Sequence[tuple[Compiled, Compiled]], otherwise: Compiled | None, timezone: _Timezone) -> Compiled:
    """Return CASE: the value of the first condition that is true, else ``otherwise``; NULL without it."""
    if any(condition.type == VOID for condition, _ in cases):
        raise Refused("only Spark chooses by NULL")
    conditions = [as_boolean(condition) for condition, _ in cases]
    *values, last = _of_one_type([*(value for _, value in cases), otherwise or constant(VOID, None)], timezone)
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        last = _if(condition, value, last)
    return last


def _if(condition: Compiled, value: Compiled, otherwise: Compiled) -> Compiled:
    def run(rows: pa.RecordBatch) -> Datum:
        true = pc.fill_null(condition.run(rows), False)
        true = as_array(true, len(rows))
        return pc.if_else(true, _where(value, rows, true), _where(otherwise, rows, pc.invert(true)))

    return Compiled.over(value.type, run, condition, value, otherwise)


def _where(value: Compiled, rows: pa.RecordBatch, some: pa.Array) -> Datum:
    return on_some_rows(value, rows, some) if value.may_fail else value.run(rows)


def coalesced(values: Sequence[Compiled], timezone: _Timezone) -> Compiled:
    """Return the first value that is not NULL."""
    *first, last = _of_one_type(values, timezone)

    def filled(rest: Compiled, value: Compiled) -> Compiled:
        def run(rows: pa.RecordBatch) -> Datum:
            found = as_array(value.run(rows), len(rows))
            return pc.coalesce(found, _where(rest, rows, pc.is_null(found)))

        return Compiled.over(value.type, run, value, rest)

    return reduce(filled, reversed(first), last)


def null_if(value: Compiled, other: Compiled, timezone: _Timezone) -> Compiled:
    """Return NULL where two values are equal, else the first one."""
    if "char" in (value.type.name, other.type.name):
        raise Refused("only Spark evaluates NULLIF of a CHAR column")
    return chosen([(comparison("=", value, other, timezone), constant(value.type, None))], value, timezone)


def extreme(kernel: Callable[..., Any], values: Sequence[Compiled], timezone: _Timezone) -> Compiled:
    """Return GREATEST or LEAST, whose kernel of Arrow is given; NULLs are skipped."""
    values = _of_one_type(values, timezone)
    if values[0].type.is_floating or values[0].type.name in ("boolean", "binary", VOID.name):
        raise Refused(f"only Spark finds the largest or smallest of several values of type {values[0].type}")
    zoned = values[0].type.name == "timestamp"  # the kernels lack it; its order is that of UTC times

    def run(rows: pa.RecordBatch) -> Datum:
        found = [v.run(rows).cast(pa.timestamp("us")) if zoned else v.run(rows) for v in values]
        largest = kernel(*found, skip_nulls=True)
        return largest.cast(values[0].arrow_type) if zoned else largest

    return Compiled.over(values[0].type, run, *values)
