"""Rows of a query as those of an INSERT, where Arrow's casts store them as Spark's store assignment does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from trinity.calls import translated
from trinity.engine.expressions import TEXTS, VOID, WHOLE
from trinity.engine.not_local import NotLocal
from trinity.engine.values.store_assignment import only_widens, placed
from trinity.engine.writing.casts import assignable, converts
from trinity.spi import Column, DataType, parse_type
from trinity.sql.local.relations import Relation

__all__ = ["as_named", "reader_as", "why_not_stored_here"]

_EXACT: Final = ("tinyint", "smallint", "int", "float", "decimal")
"""Types whose values a DOUBLE holds, or the nearest number to them."""


def reader_as(relation: Relation, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return the rows under some names."""
    pages = relation.pages()
    return as_named(pa.RecordBatchReader.from_batches(pages.schema, translated(pages.open())), names)


def as_named(rows: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return a stream under other names."""
    schema = pa.schema([pa.field(name, field.type) for name, field in zip(names, rows.schema, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(p.columns, schema=schema) for p in rows))


def why_not_stored_here(columns: Sequence[Column], types: Sequence[DataType]) -> NotLocal | None:
    """Return why only Spark stores values of some types in some columns; None where this process does."""
    for column, source in zip(columns, types, strict=True):
        wanted = parse_type(column.type)
        if placed(source, wanted) != source:
            return NotLocal(f"only Spark stores {source} in column '{column.name}' by the places of its fields")
        if not _casts_as_spark_assigns(source, wanted):
            return NotLocal(f"only Spark stores {source} in column '{column.name}' of type {wanted}")
    return None


def _casts_as_spark_assigns(source: DataType, wanted: DataType) -> bool:
    """Return True where Arrow's cast gives what Spark's assignment does; also where both refuse the type."""
    if source in (wanted, VOID) or (source.name in TEXTS and wanted.name in TEXTS):
        return True
    if source.nested and source.name == wanted.name:
        return only_widens(source, wanted)
    if not (assignable(source, wanted) or converts(source, wanted)):
        return True
    if source.name in WHOLE and wanted.name in (*WHOLE, "decimal"):
        return True
    if source.name == wanted.name == "decimal":
        return source.arguments[1] <= wanted.arguments[1]
    if wanted.name == "float":
        return source.name in ("double", "decimal")
    return wanted.name == "double" and source.name in _EXACT
