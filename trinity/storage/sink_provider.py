"""The choice of the sink that takes the rows of a table of Parquet files."""

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
    """Makes :class:`ParquetPageSink`; enough for every format that stores Parquet files."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """A sink for one task's rows; of a partitioned table, one that splits them."""
        if not target.partition_by:
            return ParquetPageSink(target, sink)
        return PartitionedPageSink(target, sink, self.partition_values(target))

    def partition_values(self, target: WriteTarget) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Tells the partition values of pages: here the partition columns as they are."""
        names = list(target.partition_by)
        return lambda page: page.select(names)

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        """A sink for one task's changes: copy-on-write for a plain table, row versions for a keyed one."""
        return merge_sink(self, merge, sink)

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """A sink for one task's positions of deleted rows: files of positions."""
        return PositionDeleteSink(rewrite, sink)
