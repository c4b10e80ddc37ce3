"""Makes the sinks of tables that are stored in Parquet files."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from trinity.spi import (
    DeleteSink,
    MergeSink,
    MergeTableHandle,
    PageSink,
    PageSinkProvider,
    RewriteTableHandle,
    SinkId,
    WriteTarget,
)
from trinity.storage.merge_sinks import merge_sink
from trinity.storage.parquet_sink import ParquetPageSink
from trinity.storage.partitioned_sink import PartitionedPageSink
from trinity.storage.position_deletes import PositionDeleteSink

__all__ = ["ParquetSinkProvider"]


class ParquetSinkProvider(PageSinkProvider):
    """Makes the shared sinks, which suit every format that stores Parquet files."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """Return a sink for one task's rows; for a partitioned table, one that splits them."""
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
        """Return True for plain tables without partitions, between which an update may move a row."""
        return not (merge.insert.definition.keyed or merge.insert.target.partition_by)

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Return a sink that writes one task's positions of deleted rows to files of positions."""
        return PositionDeleteSink(rewrite, sink)
