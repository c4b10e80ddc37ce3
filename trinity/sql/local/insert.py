"""INSERT of a query's rows in this process, where Arrow's casts give the values of Spark's store assignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from trinity.calls import translated
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import VOID
from trinity.engine.values.store_assignment import only_widens, placed
from trinity.engine.writing.casts import assignable, converts
from trinity.spi import INTEGERS, Column, DataType, parse_type
from trinity.sql.local.relations import Relation

_EXACT: Final = (*INTEGERS[:3], "float", "decimal")
"""Types whose values Arrow casts to the same DOUBLE as Spark."""


def reader_with_names(relation: Relation, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return the rows with the given column names."""
    pages = relation.pages()
    return with_names(pa.RecordBatchReader.from_batches(pages.schema, translated(pages.open())), names)


def with_names(rows: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return a stream of record batches with other column names."""
    schema = pa.schema([pa.field(name, field.type) for name, field in zip(names, rows.schema, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(p.columns, schema=schema) for p in rows))


def with_field_names(
    rows: pa.RecordBatchReader, columns: Sequence[Column], types: Sequence[DataType]
) -> pa.RecordBatchReader:
    """Return a stream whose structs take field names from the table's columns, where ``types`` has none."""
    named = [placed(source, parse_type(column.type)) for column, source in zip(columns, types, strict=True)]
    if named == [*types]:
        return rows
    kinds = [kind.to_arrow() if kind != source else None for kind, source in zip(named, types, strict=True)]
    fields = [pa.field(f.name, kind or f.type) for f, kind in zip(rows.schema, kinds, strict=True)]

    def page(given: pa.RecordBatch) -> pa.RecordBatch:
        found = [
            values if kind is None else values.cast(source.to_arrow()).view(kind)
            for values, kind, source in zip(given.columns, kinds, types, strict=True)
        ]
        return pa.record_batch(found, schema=pa.schema(fields))

    return pa.RecordBatchReader.from_batches(pa.schema(fields), map(page, rows))


def why_only_spark_stores(columns: Sequence[Column], types: Sequence[DataType], *, by_name: bool) -> NotLocal | None:
    """Return the reason why only Spark can store values of these types in the columns; None if this process can."""
    for column, given in zip(columns, types, strict=True):
        wanted = parse_type(column.type)
        source = given if by_name else placed(given, wanted)
        if not _casts_as_spark_assigns(source, wanted):
            return NotLocal(f"only Spark stores {source} in column '{column.name}' of type {wanted}")
    return None


def _casts_as_spark_assigns(source: DataType, wanted: DataType) -> bool:
    """Return whether Arrow's cast gives the same values as Spark's store assignment; True if both refuse the type."""
    if source in (wanted, VOID) or (source.is_text and wanted.is_text):
        return True
    if source.nested and source.name == wanted.name:
        return only_widens(source, wanted)
    if not (assignable(source, wanted) or converts(source, wanted)):
        return True
    if source.is_integer and (wanted.is_integer or wanted.name == "decimal"):
        return True
    if source.name == wanted.name == "decimal":
        return source.arguments[1] <= wanted.arguments[1]
    if wanted.name == "float":
        return source.name in ("double", "decimal")
    return wanted.name == "double" and source.name in _EXACT
