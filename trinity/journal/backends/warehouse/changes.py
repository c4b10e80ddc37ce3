"""A change of a journal in a Trinity table: one commit, and the rows that it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from trinity.engine.reading.spark.row_versions import row_versions
from trinity.journal.backends.base import Result
from trinity.journal.backends.warehouse.fetched import fetched_frame
from trinity.journal.backends.warehouse.returning import Returning
from trinity.journal.backends.warehouse.rewriter import Merged
from trinity.journal.tables import JournalTable
from trinity.spark.settings import pinned
from trinity.spi import SplitSource, TableHandle, TransactionId
from trinity.sql.changing import dml
from trinity.syntax.parse import only_one

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.table import Table


def run_change(found: Merged, table: JournalTable, stored: Table, txn: TransactionId | None) -> Result:
    """Run a change, and return the count; or the rows of RETURNING, read from those that the commit has appended.

    Raises:
        TrinityError: as :func:`trinity.sql.changing.dml.change_rows`; errors of RETURNING come before any write.
    """
    text, tokens = only_one(found.sql)
    piece = dml.row_change(text, "spark", tokens)
    assert piece is not None
    returning = found.returning
    if returning is not None:
        _returned(returning, table, stored, replace(stored.splits(), files=(), sidecar=()))
    versions = partial(_versions, table, stored) if found.fills else None
    done = dml.change_rows(stored.session, piece, versions, table.unique_keys, txn)
    if returning is None:
        return Result(None, iter(()), done.affected)
    splits = stored.splits(done.version)
    files = tuple(f for f in splits.files if done.affected and f.commit == done.version)
    rows = _returned(returning, table, stored, replace(splits, files=files, sidecar=()))
    return fetched_frame(rows, stored.session.timezone)


@contextmanager
def _versions(table: JournalTable, stored: Table, splits: SplitSource) -> Iterator[Sequence[TableHandle]]:
    """Register the view of all stored versions within the context, and yield the journal's pinned handle.

    The statement looks up the newest version of inserted keys in the view.
    """
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
        rows: DataFrame = stored.session.sql(returning.query).to_df()
        return rows
    finally:
        spark.catalog.dropTempView(table.returned_view)
