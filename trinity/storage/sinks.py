"""The provider of a statement's sinks, and their targets: folder, columns with bounds, stamps.

Rows of keyed tables are stamped in formats whose files other engines may rewrite (L3).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa

from trinity.merge.properties import syncs_files
from trinity.merge.spec import merge_spec
from trinity.spi import (
    STAMP,
    DeleteSink,
    MergeSink,
    MergeTableHandle,
    PageSink,
    PageSinkProvider,
    RewriteTableHandle,
    SinkId,
    TableDefinition,
    WriteTarget,
    parse_type,
)
from trinity.storage.merge_sinks import merge_sink
from trinity.storage.parquet_sink import ParquetPageSink
from trinity.storage.partitioned_sink import PartitionedPageSink
from trinity.storage.position_deletes import PositionDeleteSink

_MOST_STATISTICS: Final = 32
"""How many columns of a plain table have bounds: as many as Delta keeps by default."""
_STAMPS: Final = pa.field(STAMP, pa.int64())


def write_target(
    folder: str,
    definition: TableDefinition,
    storage: pa.Schema,
    *,
    statistics: tuple[str, ...] | None = None,
    statement: str | None = None,
) -> WriteTarget:
    """Return the target of one statement.

    Args:
        folder: folder for new files, absolute.
        definition: the table.
        storage: physical Arrow schema of the files.
        statistics: physical columns whose bounds go into fragments; by default those of :func:`statistics_columns`.
        statement: prefix of the names of its files; by default a new one.
    """
    return WriteTarget(
        folder=folder,
        storage=storage,
        statistics=statistics_columns(definition) if statistics is None else statistics,
        statement=statement or uuid.uuid4().hex,
        partition_by=definition.partition_by,
        sync=syncs_files(definition.properties),
    )


def statistics_columns(definition: TableDefinition) -> tuple[str, ...]:
    """Return the columns whose bounds are kept for every file, so that reads and row changes skip files.

    For a keyed table these are the key, the ordering columns and further columns that its fold needs. For a plain table
    they are the first primitive columns, since statements find rows by any column.
    """
    if definition.keyed:
        return (*merge_spec(definition).statistics, *([STAMP] if definition.stamped else []))
    primitive = [c.name for c in definition.columns if not parse_type(c.type).nested]
    return tuple(primitive[:_MOST_STATISTICS])


def stamped(
    definition: TableDefinition, target: WriteTarget, stamp: int, field: pa.Field = _STAMPS
) -> tuple[TableDefinition, WriteTarget]:
    """Return definition and target for sinks whose files have the stamp column, also if the table lacks it so far.

    Args:
        definition: the table.
        target: where sinks write.
        stamp: the stamp of rows without one.
        field: the stamp column in the storage schema.
    """
    if not definition.keyed or definition.external:
        return definition, target
    storage = target.storage if definition.stamped else target.storage.append(field)
    statistics = tuple(dict.fromkeys((*target.statistics, STAMP)))
    return definition.with_stamps(), replace(target, storage=storage, statistics=statistics, stamp=stamp)


class ParquetSinkProvider(PageSinkProvider):
    """The provider of the shared sinks, which suit every format that stores Parquet files."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """Return a sink for one task's rows; for a partitioned table, a sink that splits them by partition."""
        if not target.partition_by:
            return ParquetPageSink(target, sink)
        return PartitionedPageSink(target, sink, self.partition_values(target))

    def partition_values(self, target: WriteTarget) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return a function from a page to its partition values: here the partition columns as they are."""
        names = list(target.partition_by)
        return lambda page: page.select(names)

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        """Return a sink for one task's changes: copy-on-write for a plain table, row versions for a keyed one."""
        return merge_sink(self, merge, sink)

    def updates_in_place(self, merge: MergeTableHandle) -> bool:
        """Return True for plain tables without partitions; with partitions an update may move a row to another one."""
        return not (merge.insert.definition.keyed or merge.insert.target.partition_by)

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Return a sink that writes one task's positions of deleted rows to files of positions."""
        return PositionDeleteSink(rewrite, sink)
