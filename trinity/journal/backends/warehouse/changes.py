"""A change of a journal in a Trinity table: one commit, and the rows that it returns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trinity.engine.reading.spark.row_versions import row_versions
from trinity.engine.spark.settings import pinned
from trinity.engine.writing.casts import cast_array
from trinity.journal.backends.base import Described, Result
from trinity.journal.backends.warehouse.returning import Returning
from trinity.journal.backends.warehouse.rewriter import Merged
from trinity.journal.tables import JournalTable
from trinity.rows import rows_of
from trinity.spi import DataType, SplitSource, TableHandle, TransactionId, parse_given_type, type_text
from trinity.sql.changing import dml
from trinity.syntax.parse import only_one

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.result import Result as Answer
    from trinity.table import Table

__all__ = ["described", "run_change"]

_COUNT: Final = "num_affected_rows"
_VOID: Final = DataType("void")
_INSTANT: Final = re.compile(r'"(type|elementType|keyType|valueType)":"timestamp"')
"""The type TIMESTAMP in the JSON of a schema."""


def described(rows: Answer, timezone: str) -> Result:
    """Return the rows of a query, or the count of a change; ``timezone`` is the session's."""
    if not rows.columns:
        return Result(None, iter(()), -1)
    if rows.columns[0] == _COUNT:
        return Result(None, iter(()), rows.collect()[0][0])
    return _fetched(rows.frame) if rows.frame is not None else _fetched_here(rows.to_arrow(), timezone)


def _fetched_here(rows: pa.Table, timezone: str) -> Result:
    """Return rows of this process, with instants as :func:`_with_clocks` has them."""
    kinds = [parse_given_type(type_text(field.type)) for field in rows.schema]
    columns = [
        cast_array(column.combine_chunks(), _clock(kind).to_arrow(), "a column", timezone) if kind != _VOID else column
        for column, kind in zip(rows.columns, kinds, strict=True)
    ]
    found = [tuple(row) for row in rows_of(pa.record_batch(columns, names=rows.column_names))]
    description: list[Described] = [
        (f.name, str(kind), None, None, None, None, f.nullable) for f, kind in zip(rows.schema, kinds, strict=True)
    ]
    return Result(description, iter(found), len(found))


def _clock(kind: DataType) -> DataType:
    if kind.name == "timestamp":
        return DataType("timestamp_ntz")
    return replace(kind, children=tuple(map(_clock, kind.children)))


def _fetched(rows: DataFrame) -> Result:
    found = [tuple(r) for r in _with_clocks(rows).collect()]
    description: list[Described] = [
        (f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in rows.schema.fields
    ]
    return Result(description, iter(found), len(found))


def _with_clocks(rows: DataFrame) -> DataFrame:
    """Return the rows with instants as datetimes without zone, in the session's zone, as parameters are read.

    PySpark would return them in the process's zone.
    """
    from trinity.spark_names import StructType

    clocks = StructType.fromJson(json.loads(_INSTANT.sub(r'"\1":"timestamp_ntz"', rows.schema.json())))
    if clocks == rows.schema:
        return rows
    plain = rows.toDF(*[f"_{number}" for number in range(len(clocks))])
    return plain.select(*[plain[f"_{number}"].cast(field.dataType) for number, field in enumerate(clocks)])


def run_change(found: Merged, table: JournalTable, stored: Table, txn: TransactionId | None = None) -> Result:
    """Run a change.

    Args:
        found: the rewritten statement.
        table: the journalled table.
        stored: its journal.
        txn: as of :meth:`trinity.Table.upsert`.

    Returns:
        the count; or the rows of RETURNING, read from those that the commit has appended.

    Raises:
        TrinityError: as :func:`trinity.sql.changing.dml.changed`; errors of RETURNING come before anything is written.
    """
    text, tokens = only_one(found.sql)
    piece = dml.row_change(text, "spark", tokens)
    assert piece is not None
    returning = found.returning
    if returning is not None:
        _returned(returning, table, stored, replace(stored.splits(), files=(), sidecar=()))
    beside = partial(_versions, table, stored) if found.fills else None
    done = dml.changed(stored.session, piece, beside, table.unique_keys, txn)
    if returning is None:
        return Result(None, iter(()), done.affected)
    splits = stored.splits(done.version)
    files = tuple(f for f in splits.files if done.affected and f.commit == done.version)
    return _fetched(_returned(returning, table, stored, replace(splits, files=files, sidecar=())))


@contextmanager
def _versions(table: JournalTable, stored: Table, splits: SplitSource) -> Iterator[Sequence[TableHandle]]:
    """Register the view of all stored versions within the context; inserted keys need it. Yield the pinned journal."""
    spark = stored.session.spark
    row_versions(spark, splits).createOrReplaceTempView(table.versions_view)
    try:
        yield (stored.handle.pinned(splits.version, splits.definition.id),)
    finally:
        spark.catalog.dropTempView(table.versions_view)


def _returned(returning: Returning, table: JournalTable, stored: Table, splits: SplitSource) -> DataFrame:
    spark = stored.session.spark
    with pinned(spark):
        row_versions(spark, splits).where(returning.rows).createOrReplaceTempView(table.returned_view)
    try:
        return stored.session.sql(returning.query).to_df()
    finally:
        spark.catalog.dropTempView(table.returned_view)
