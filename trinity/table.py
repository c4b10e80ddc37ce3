"""A table: its reads, writes, columns and maintenance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Protocol, overload

import pyarrow as pa

from trinity.calls import public
from trinity.conversions import as_duckdb, as_lazy_polars, as_pandas, as_polars
from trinity.definition import evolve
from trinity.definition.checks import without_check
from trinity.descriptions import describe_rows, table_html, table_text
from trinity.engine.program import Counts, Expression
from trinity.engine.time_travel import splits_at
from trinity.errors import TrinityError, nearest, not_pickled
from trinity.merge.properties import Properties
from trinity.names import TableName
from trinity.result import Result
from trinity.spi import (
    Check,
    Column,
    CommitResult,
    Connector,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
    VacuumResult,
)
from trinity.target import Host

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from trinity.builder import MergeBuilder
    from trinity.engine.compacting.health import Health
    from trinity.external import ExternalTables


class TableSession(Host, Protocol):
    """A session, as its tables see it."""

    @property
    def external(self) -> ExternalTables: ...

    def check_open(self) -> None: ...

    def format_name(self, catalog: str) -> str: ...

    def find_table(self, name: TableName) -> Table | None: ...

    def rename_table(self, name: TableName | str, new: TableName | str) -> Table: ...

    def create_like(
        self, name: TableName | str, definition: TableDefinition, *, fill: Callable[[Table], object] | None
    ) -> Table: ...

    def checked_properties(self, catalog: str, properties: Properties) -> dict[str, str]: ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    S = TypeVar("S", bound=TableSession, default=Any)
else:  # Python gives type variables a default from 3.13 on
    from typing import TypeVar

    S = TypeVar("S")


@public
class Table(Generic[S]):
    """One table of a session. Holds no state of its own: every call sees the newest version.

    Attributes:
        name: full name.
        handle: the connector's handle, unpinned.
    """

    def __init__(self, session: S, name: TableName, handle: TableHandle, connector: Connector) -> None:
        self.session = session
        self.name = name
        self.handle = handle
        self._connector = connector

    def __repr__(self) -> str:
        """Describe the columns with their roles, partitions, version, and number of rows by statistics.

        Reads no rows.
        """
        return self._described(table_text, f"Table({self.name})")

    def _repr_html_(self) -> str:
        """Return the description as HTML for a notebook."""
        return self._described(table_html, escape(f"Table({self.name})"))

    def _described(self, look: Callable[[Table, SplitSource], str], otherwise: str) -> str:
        try:
            return look(self, self.splits())
        except TrinityError as error:  # the session is closed, or the table was dropped or is damaged
            return f"{otherwise}: {error.code}"

    def __reduce__(self) -> NoReturn:
        raise not_pickled("table", f"call session.table('{self.name}')")

    @property
    def connector(self) -> Connector:
        """The connector of the table's catalog; a registered table has a connector of its own.

        Raises:
            TrinityError: INVALID_ARGUMENTS in a closed session.
        """
        self.session.check_open()
        return self._connector

    @property
    def location(self) -> str:
        """Absolute folder or URI of the table."""
        return self.handle.location

    def splits(self, version: int | None = None) -> SplitSource:
        """Return what a read of a version needs (files, statistics, definition), by default of the newest version."""
        found = self.connector.metadata.get_splits(replace(self.handle, version=version))
        return replace(found, definition=self.handle.named(found.definition))

    def _splits_at(self, version: int | None, timestamp: str | dt.datetime | None) -> SplitSource:
        return self.splits(version) if timestamp is None else splits_at(self, version, timestamp)

    @property
    def definition(self) -> TableDefinition:
        """Columns, key and properties as they are now."""
        return self.handle.named(self.connector.metadata.get_table_definition(self.handle))

    @property
    def schema(self) -> pa.Schema:
        """Visible columns with their logical types, as :meth:`to_arrow` returns them."""
        return pa.schema([c.to_arrow() for c in self.definition.visible])

    @property
    def columns(self) -> list[str]:
        """Names of the visible columns."""
        return [c.name for c in self.definition.visible]

    @property
    def version(self) -> int:
        """The newest version."""
        return self.splits().version

    @property
    def format(self) -> str:
        """Name of the table's format: ``delta``."""
        return self.session.external.format_name(self.name) or self.session.format_name(self.name.catalog)

    @property
    def exists(self) -> bool:
        """Whether there is a table of this name."""
        return self.session.find_table(self.name) is not None

    def describe(self) -> Result:
        """Return the columns: name, type, whether they may be NULL, role in the table (such as key), and comment."""
        return Result(self.session, describe_rows(self.definition))

    @property
    def properties(self) -> dict[str, str]:
        """Table properties in canonical spelling."""
        return dict(self.definition.properties)

    # -- reads ------------------------------------------------------------------------------------------

    def to_df(
        self,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        where: str | None = None,
    ) -> DataFrame:
        """Return the merged rows: at most one per key, deleted keys left out.

        The result is lazy, with one exception. For a table of ten thousand base rows or more, the call itself runs a
        job over key and ordering columns, which finds the rows that win no key. Their positions are remembered, so that
        this read and the next ones are scans.

        Args:
            version: a version of :meth:`history`.
            timestamp: reads the newest version that was committed by then; a datetime, or ISO text (in the session's
                time zone unless it names one).
            where: a predicate, Spark SQL over bare names, by which the rows are filtered. One of key columns, without
                functions, may skip files and rows before they are merged, which a filter on the result cannot (L9).

        Raises:
            TrinityError: SYNTAX_ERROR, NOT_SUPPORTED for a text that is no predicate; INVALID_ARGUMENTS for an unknown
                or vacuumed version, naming the oldest readable one (L10); BAD_DATA naming a corrupt or missing file.
        """
        from trinity.engine.reading.spark.merged_read import filtered_read

        return filtered_read(self.session, self._splits_at(version, timestamp), where)

    def explain(
        self,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        where: str | None = None,
    ) -> str:
        """Describe the plan of :meth:`to_df` with these arguments: which files it reads, and how. Reads no rows.

        Raises:
            TrinityError: as :meth:`to_df`.
        """
        from trinity.engine.reading.explain import explained_read

        return explained_read(self.session, self._splits_at(version, timestamp), where)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Return the merged rows as Arrow data in this process's memory, in no order.

        This process reads by itself what Trinity wrote, and evaluates the predicates of docs/expressions.md. It leaves
        the rest to Spark.

        Args:
            columns: names of the columns, in any case; all by default.
            where: a predicate on any columns, Spark SQL over bare names.
            version: as in :meth:`to_df`.
            timestamp: as in :meth:`to_df`.
            limit: maximum number of rows; which rows these are is not defined.

        Raises:
            TrinityError: as :meth:`to_df`, and COLUMN_NOT_FOUND.
        """
        from trinity.engine.reading.arrow_read import arrow_table

        return arrow_table(self.session, self._splits_at(version, timestamp), columns, where, limit)

    def to_reader(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return the merged rows as a stream of Arrow record batches, pinned to their version.

        Rows are read as they are taken: memory holds a few row groups of each thread, and the keys of the log.
        Arguments and errors are those of :meth:`to_arrow`. A file that is missing or corrupt is found when the stream
        comes to it.
        """
        from trinity.engine.reading.arrow_read import arrow_reader

        return arrow_reader(self.session, self._splits_at(version, timestamp), columns, where, limit)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return the merged rows as a pandas DataFrame. Arguments and errors are those of :meth:`to_arrow`.

        Raises:
            TrinityError: CONFIGURATION_INVALID without pandas.
        """
        return as_pandas(self.to_arrow(columns, where, version, timestamp, limit).to_reader())

    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = ...,
        where: str | None = ...,
        version: int | None = ...,
        timestamp: str | dt.datetime | None = ...,
        limit: int | None = ...,
        *,
        lazy: Literal[False] = ...,
    ) -> pl.DataFrame: ...
    @overload
    def to_polars(
        self,
        columns: Sequence[str] | None = ...,
        where: str | None = ...,
        version: int | None = ...,
        timestamp: str | dt.datetime | None = ...,
        limit: int | None = ...,
        *,
        lazy: Literal[True],
    ) -> pl.LazyFrame: ...
    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
        *,
        lazy: bool = False,
    ) -> pl.DataFrame | pl.LazyFrame:
        """Return the merged rows as a Polars DataFrame. Other arguments and errors are those of :meth:`to_arrow`.

        With ``lazy`` the result is a LazyFrame, pinned to the version. Its rows are read when Polars collects it, and
        only the columns that are needed.

        Raises:
            TrinityError: CONFIGURATION_INVALID without Polars.
        """
        if not lazy:
            return as_polars(self.to_arrow(columns, where, version, timestamp, limit).to_reader())
        from trinity.engine.reading.arrow_read import arrow_reader, arrow_schema

        splits = self._splits_at(version, timestamp)
        return as_lazy_polars(
            arrow_schema(splits, columns),
            lambda names: arrow_reader(self.session, splits, names or columns, where, limit),
        )

    def to_duckdb(
        self,
        connection: Any = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        limit: int | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return the merged rows as a relation of DuckDB's. Other arguments and errors are those of :meth:`to_arrow`.

        The relation may be joined to tables of ``connection``; None stands for DuckDB's default connection.

        Raises:
            TrinityError: CONFIGURATION_INVALID without DuckDB.
        """
        return as_duckdb(self.to_reader(columns, where, version, timestamp, limit), connection)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the merged rows to any library that takes Arrow data: ``pa.table(t)``, DuckDB's ``FROM t``."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the merged rows to any library that takes Arrow data."""
        return self.schema.__arrow_c_schema__()

    def head(self, n: int = 5) -> pa.Table:
        """Return at most ``n`` merged rows as Arrow data; which rows is not defined. Raises as :meth:`to_arrow`."""
        return self.to_arrow(limit=n)

    def count(self, version: int | None = None, timestamp: str | dt.datetime | None = None) -> int:
        """Return the number of merged rows; without reading them, where the plan allows it.

        Arguments and errors are those of :meth:`to_df`.
        """
        from trinity.engine.reading.arrow_read import counted_rows

        return counted_rows(self.session, self._splits_at(version, timestamp))

    def log(self, version: int | None = None) -> Result:
        """Return the stored row versions with ``_commit_version`` BIGINT, ``_file``, ``_pos`` BIGINT and ``_tier``.

        ``_tier`` is ``base`` (compacted), ``log``, or ``sidecar`` (a tombstone that compaction moved there).
        """
        from trinity.engine.reading.row_versions import row_versions

        return row_versions(self.session, self.splits(version))

    def changes(
        self,
        start: int | str | dt.datetime,
        end: int | str | dt.datetime | None = None,
        *,
        start_inclusive: bool = False,
        end_inclusive: bool = True,
        deduplication_mode: str = "dropCarryovers",
        compute_updates: bool = True,
        preimages: bool = True,
    ) -> Result:
        """Return the change feed: what changed in the merged rows after a version, up to another one (C1-C5). Lazy.

        Applied to the read of ``start``, it gives the read of ``end``. Its columns are those of the last version, with
        ``_change_type`` STRING (``insert``, ``delete``, ``update_preimage``, ``update_postimage``),
        ``_commit_version`` BIGINT and ``_commit_timestamp`` TIMESTAMP. Rows come in no order.

        Args:
            start: a version of :meth:`history`; or a time: a datetime, or ISO text (in the session's time zone unless
                it names one).
            end: likewise; by default the newest version.
            start_inclusive: True to include the changes of ``start`` itself.
            end_inclusive: False to leave out the changes of ``end`` itself.
            deduplication_mode: ``dropCarryovers``; or ``netChanges`` for one change per key over all the versions, with
                the last version that changed it (Spark 4.2's words). Unchanged rows are never shown.
            compute_updates: False for a delete and an insert instead of an update's two images.
            preimages: False to leave out the rows before an update.

        Raises:
            TrinityError: INVALID_ARGUMENTS for an unknown or vacuumed version, naming the oldest readable one (L10),
                for an end before the start, for an unknown mode; DUPLICATE_COLUMN_NAME for a table with a column of one
                of the three names.
        """
        from trinity.engine.feed.changes import changes
        from trinity.engine.feed.interval import Bound
        from trinity.engine.feed.shape import FeedMode

        mode = FeedMode.of(deduplication_mode, compute_updates=compute_updates, preimages=preimages)
        until = None if end is None else Bound(end, end_inclusive)
        return changes(self, Bound(start, start_inclusive), until, mode)

    def merge_view_sql(self, dialect: str) -> str:
        """Return one SELECT of the newest version's merged rows, for an engine without Trinity.

        It lists the files of this version with their commit numbers. It does not show rows that are committed later,
        and fails once :meth:`vacuum` has removed one of the files.

        Args:
            dialect: ``duckdb`` or ``spark``.

        Raises:
            TrinityError: NOT_SUPPORTED for another dialect, for a column whose aggregate function the dialect lacks,
                and for a table that only the format's own reader can read; BAD_DATA naming a corrupt or missing file.
        """
        from trinity.engine.reading.spark.merge_view import merge_view_sql

        return merge_view_sql(self.splits(), dialect)

    def history(self) -> Result:
        """Return the readable commits, newest first (L10).

        Columns: ``version`` BIGINT, ``timestamp`` TIMESTAMP, ``operation`` STRING, ``details`` MAP<STRING,STRING>.
        """
        from trinity.engine.reading.metadata import commits

        return Result(self.session, commits(self.connector.metadata.history(self.handle)))

    def rename(self, name: TableName | str) -> Table:
        """Give the table another name, and return it; versions, streams and recorded transactions go with it.

        Args:
            name: the new name: in the same schema, or ``schema.name`` in the same catalog.

        Raises:
            TrinityError: as :meth:`Session.rename_table`.
        """
        return self.session.rename_table(self.name, name)

    def copy_to(
        self, name: TableName | str, version: int | None = None, timestamp: str | dt.datetime | None = None
    ) -> Table:
        """Create a table like this one in any catalog, with the merged rows of a version. If that fails, none is left.

        Columns, key, partitions, CHECKs and properties are those of the version. What was deleted or overwritten is not
        copied, and neither are tombstones. ``other.upsert(table)`` writes merged rows to a table that exists.

        Args:
            name: full or relative name of the new table.
            version: as in :meth:`to_df`.
            timestamp: as in :meth:`to_df`.

        Raises:
            TrinityError: TABLE_ALREADY_EXISTS; as :meth:`to_arrow` and :meth:`Session.create_table`.
        """
        from trinity.engine.appending.append import append_rows
        from trinity.engine.reading.arrow_read import arrow_reader

        splits = self._splits_at(version, timestamp)
        rows = arrow_reader(self.session, splits, None, None, None)
        return self.session.create_like(name, splits.definition, fill=lambda made: append_rows(made, rows, new=True))

    # -- writes -----------------------------------------------------------------------------------------

    def upsert(self, data: Any, *, txn: TransactionId | None = None, evolve: bool = False) -> CommitResult:
        """Append row versions to a keyed table in one commit, without reading it (docs/upsert.md).

        Args:
            data: a Spark DataFrame; or, written by this process without a Spark job, Arrow data (anything with
                ``__arrow_c_stream__``: pyarrow, Polars, DuckDB), a pandas DataFrame, a lazy frame of Polars, a dict or
                a dataclass for one row, or a list of them. Columns match by name; a missing column takes its DEFAULT,
                else NULL.
            txn: (application, version): a retry with the same or a lower version does nothing (L4).
            evolve: True to add the data's new columns to the table, nullable and at the end, and to give columns the
                data's wider types (docs/schema-evolution.md).

        Raises:
            TrinityError: INVALID_ARGUMENTS on a plain table; COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, TYPE_MISMATCH,
                CONSTRAINT_VIOLATION, NUMERIC_VALUE_OUT_OF_RANGE, each naming the column. The table is then unchanged.
        """
        from trinity.engine.appending.append import append_rows

        return append_rows(self, data, txn, keyed=True, evolve=evolve)

    def append(self, data: Any, *, txn: TransactionId | None = None, evolve: bool = False) -> CommitResult:
        """Append rows to a plain table in one commit. Arguments and errors are those of :meth:`upsert`.

        Raises:
            TrinityError: INVALID_ARGUMENTS on a keyed table.
        """
        from trinity.engine.appending.append import append_rows

        return append_rows(self, data, txn, keyed=False, evolve=evolve)

    def stream_writer(
        self,
        frame: DataFrame,
        *,
        checkpoint: str | Path,
        query_name: str | None = None,
        available_now: bool = False,
        processing_time: str | None = None,
        transform: Callable[[DataFrame], Any] | None = None,
        compact_every: int | None = None,
        evolve: bool = False,
    ) -> StreamingQuery:
        """Start a stream into the table: each micro-batch is one commit, exactly once (L4).

        Rows of a keyed table are row versions, as in :meth:`upsert`; rows of a plain one are appended. A batch without
        rows makes no commit. A batch that the table refuses ends the query, and leaves the table as it was. See
        docs/streaming.md.

        Args:
            frame: a streaming DataFrame.
            checkpoint: folder in which Spark notes how far the stream has come. Each stream needs its own, always the
                same.
            query_name: name of the query in Spark.
            available_now: True to end once all data that is there now is read.
            processing_time: time between two batches, such as "10 seconds"; by default a batch starts when the last
                ends.
            transform: makes a batch's rows from its DataFrame, such as ``lambda batch: cdc.debezium(batch, table)``.
            compact_every: number of commits after which a thread of this process folds the log in levels, beside the
                stream.
            evolve: as in :meth:`upsert`, for each batch.

        Returns:
            pyspark's query, running.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a DataFrame that is no stream, and for arguments that do not fit; and,
                without ``transform``, the errors of :meth:`upsert` about names and types of columns.
        """
        from trinity.engine.streaming.batches import StreamOptions
        from trinity.engine.streaming.stream_in import stream_in

        options = StreamOptions(
            checkpoint, query_name, available_now, processing_time, transform, compact_every, evolve
        )
        return stream_in(self, frame, options)

    def delete(
        self, condition_or_keys: str | SparkColumn | Any = None, *, txn: TransactionId | None = None
    ) -> CommitResult:
        """Delete rows: from a keyed table by appending their tombstones (U5), from a plain one by rewriting files.

        Args:
            condition_or_keys: a predicate (Spark SQL text or Column) over the rows; for a keyed table also keys: data
                as in :meth:`upsert` with the key columns, a list of dicts, or a list of values for a single key column.
                All rows by default.
            txn: as in :meth:`upsert`.

        Returns:
            the commit; ``rows`` is the number of deleted rows.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH; TRANSACTION_CONFLICT when other writers kept committing for
                longer than ``commit.retry.timeout``.
        """
        from trinity.engine.changing.writer_delete import delete_rows

        return delete_rows(self, condition_or_keys, txn)

    def truncate(self, *, txn: TransactionId | None = None) -> CommitResult:
        """Remove all rows, and the tombstones of a keyed table, in one commit, without reading them (M12).

        Args:
            txn: as in :meth:`upsert`.

        Returns:
            the commit; ``rows`` counts the rows of the removed files.

        Raises:
            TrinityError: NOT_SUPPORTED for an external table.
        """
        from trinity.engine.changing.whole_table import truncate

        return truncate(self, txn)

    def restore(self, version: int | None = None, timestamp: str | dt.datetime | None = None) -> CommitResult:
        """Make an earlier version the newest one again, in a commit of its own (L11).

        The table is then what it was: rows, tombstones, columns, properties. Later versions stay readable, so that a
        restore can be undone by another one.

        Args:
            version: a version of :meth:`history`.
            timestamp: as in :meth:`to_df`.

        Returns:
            the commit; ``rows`` and ``files`` are those of the version's files.

        Raises:
            TrinityError: INVALID_ARGUMENTS unless exactly one of both is given, for an unknown or vacuumed version, and
                for a version that lacks a file; NOT_SUPPORTED for an external table, and where a column has another
                type since.
        """
        from trinity.engine.changing.whole_table import restore

        return restore(self, version, timestamp)

    def update(
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002 - as in Delta's DeltaTable
        *,
        txn: TransactionId | None = None,
    ) -> Counts:
        """Change rows, as SQL's UPDATE does (M9).

        Args:
            condition: which rows, Spark SQL text or Column; all by default.
            set: column -> new value, Spark SQL text or Column over the old row.
            txn: as in :meth:`upsert`.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH, CONSTRAINT_VIOLATION, NUMERIC_VALUE_OUT_OF_RANGE,
                INVALID_ARGUMENTS (M9), TRANSACTION_CONFLICT; the table is then as it was.
        """
        from trinity.engine.changing.writer_delete import update_rows

        if not set or not isinstance(set, Mapping):
            raise TrinityError("INVALID_ARGUMENTS", f"update() of '{self.name}' needs set={{column: value}}.")
        return update_rows(self, set, condition, txn)

    def merge(self, source: Any, on: Expression) -> MergeBuilder:
        """Begin a MERGE of data into this table. Add its WHEN clauses, then call :meth:`MergeBuilder.execute`.

        Args:
            source: data as in :meth:`upsert`. Its columns are ``s.name``; the alias of a Spark DataFrame takes the
                place of ``s``.
            on: which target row (``t.name``) a source row matches, Spark SQL text or Column.

        Raises:
            TrinityError: INVALID_ARGUMENTS for data of another kind.
        """
        from trinity.builder import MergeBuilder
        from trinity.engine.appending.append import given_rows, is_spark_frame, source_rows

        source = given_rows(source)
        rows = source if is_spark_frame(source) else source_rows(source, self.session.timezone)
        return MergeBuilder(self, rows, on)

    # -- columns and constraints ------------------------------------------------------------------------

    def alter(self, *changes: evolve.Change) -> None:
        """Change the definition in one commit; older versions keep theirs. SQL has ALTER TABLE for the usual changes.

        Args:
            changes: functions that take a :class:`trinity.spi.TableDefinition` and return the new one, called in this
                order; once more if another commit comes between.

        Raises:
            TrinityError: the errors of a change, or of the resulting definition (V1); the table is then as it was.
        """
        from trinity.engine.changing.adding import alter  # imports SQL's parser, which a read may not need

        alter(self, *changes)

    def add_column(self, column: Column, after: str | None = None) -> None:
        """Add a nullable column, even if one of that name was dropped before. Older rows have NULL in it.

        If the column has a DEFAULT, the same commit stores that value in all older rows.

        Args:
            column: the column.
            after: the column after which it goes; ``""`` for the first place. By default it goes last.

        Raises:
            TrinityError: COLUMN_ALREADY_EXISTS; COLUMN_NOT_FOUND for ``after``; NOT_SUPPORTED for NOT NULL;
                INVALID_ARGUMENTS for a name that columns may not have.
        """
        self.alter(lambda definition: evolve.added(definition, column, after))

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column, in the key and in properties too.

        Raises:
            TrinityError: COLUMN_NOT_FOUND; COLUMN_ALREADY_EXISTS; INVALID_ARGUMENTS for a name that columns may not
                have; NOT_SUPPORTED for a column that a CHECK constraint names.
        """
        self.alter(lambda definition: evolve.rename_column(definition, old, new))

    def drop_column(self, name: str) -> None:
        """Drop a column; older versions still have it.

        Raises:
            TrinityError: COLUMN_NOT_FOUND; NOT_SUPPORTED for a column by which rows are merged or partitioned, one that
                a CHECK constraint names, and the only column that is left.
        """
        self.alter(lambda definition: evolve.dropped(definition, name))

    def widen_column(self, name: str, type: str) -> None:  # noqa: A002 - the SQL word
        """Give a column a wider type, such as ``bigint`` for INT (docs/schema-evolution.md).

        Raises:
            TrinityError: COLUMN_NOT_FOUND; TYPE_MISMATCH for a type that is not wider; NOT_SUPPORTED for a partition
                column.
        """
        self.alter(lambda definition: evolve.with_type(definition, name, type))

    def set_not_null(self, name: str, not_null: bool = True) -> None:
        """Declare a column NOT NULL, or nullable again.

        Raises:
            TrinityError: COLUMN_NOT_FOUND; CONSTRAINT_VIOLATION when a row has NULL there; NOT_SUPPORTED for a key
                column, and for NOT NULL where rows need not carry the column.
        """
        from trinity.engine.values.altering import set_not_null

        set_not_null(self, {name: not_null})

    def add_check(self, name: str, condition: str) -> None:
        """Add a CHECK constraint: from now on no row is stored for which it is false (M6).

        Args:
            name: name of the constraint.
            condition: Spark SQL over bare column names; NULL passes.

        Raises:
            TrinityError: CONSTRAINT_VIOLATION when a row fails it; INVALID_ARGUMENTS for a name that is taken;
                COLUMN_NOT_FOUND; SYNTAX_ERROR; NOT_SUPPORTED for a subquery, and for tables that fold by column.
        """
        from trinity.engine.values.altering import add_check

        add_check(self, Check(name, condition))

    def drop_check(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a CHECK constraint. Raises INVALID_ARGUMENTS when there is none of that name, unless ``if_exists``."""
        self.alter(lambda definition: without_check(definition, name, if_exists=if_exists))

    # -- maintenance ------------------------------------------------------------------------------------

    def compact(self, strength: str | bool | None = None, *, full: bool = False) -> CommitResult:
        """Replace files by fewer that mean the same (K6, L3). Concurrent appends stay, and count as later.

        Args:
            strength: ``minor``, the default, folds the files of the log with each other; the base too, if the log is
                large compared with it.
                ``resolve`` writes the log's winners beside the base and deletes by position what they supersede there;
                reads are then scans again, and no base file is rewritten (R1). ``full`` folds everything into a sorted
                base, one file per bucket; every other engine then sees exactly the live rows.
            full: True means the same as strength ``full``.

        Raises:
            TrinityError: INVALID_ARGUMENTS for another strength; TRANSACTION_CONFLICT when another compaction replaced
                the same files meanwhile; NOT_SUPPORTED for an external table that compaction may not fold
                (docs/external-tables.md), and for a resolve of a table that does not allow it (docs/compaction.md).
        """
        from trinity.engine.compacting.after_commit import compact_newest
        from trinity.merge.compaction_strength import Strength

        return compact_newest(self, Strength.of(strength, full))

    def health(self) -> Health:
        """Return what a read costs, and which compaction helps, according to file statistics alone."""
        from trinity.engine.compacting.health import health_of

        return health_of(self.splits(), self.connector.metadata.since_checkpoint(self.handle))

    def vacuum(self, retain: str | dt.timedelta = "7 days") -> VacuumResult:
        """Forget versions that were replaced longer ago than ``retain``, and remove files that nothing needs.

        Retain at least the time that the longest read or write takes.

        Args:
            retain: a text such as "7 days" or "12 hours", or a timedelta.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a text that is no duration; NOT_SUPPORTED for an external table.
        """
        from trinity.engine.compacting.upkeep import vacuum

        return vacuum(self, retain)

    def set_properties(self, properties: Properties) -> None:
        """Set table properties; others stay.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for an unknown key, or a change that would alter what stored rows mean.
        """
        given = self.session.checked_properties(self.name.catalog, properties)
        self._change_properties(given, lambda definition: evolve.with_changed_properties(definition, given))

    def unset_properties(self, *names: str, if_exists: bool = False) -> None:
        """Unset table properties, so that they have their defaults again; others stay.

        Args:
            names: the properties.
            if_exists: True to skip properties that the table has not set.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for one that is not set, or by which stored rows were written.
        """
        definition = self.definition
        given = self.session.checked_properties(self.name.catalog, dict.fromkeys(names, ""))
        missing = [name for name in given if name not in definition.properties]
        if missing and not if_exists:
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"'{missing[0]}' is not set on table '{self.name}'."
                f"{nearest(missing[0], list(definition.properties))} With IF EXISTS it is left out.",
            )
        self._change_properties(
            dict.fromkeys(given), lambda definition: evolve.without_properties(definition, list(given))
        )

    def _change_properties(self, given: Mapping[str, str | None], change: evolve.Change) -> None:
        """Change properties: of an external table in its registration, else by altering the definition."""
        if (definition := self.definition).external:
            change(definition)
            self.session.external.change_properties(self.name, given)
        else:
            self.alter(change)
