"""Sinks: the shared ones, and for folders that others write sinks that leave partition columns out of the files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from trinity.spi import PageSink, SinkId, WriteTarget
from trinity.storage import ParquetSinkProvider
from trinity.storage.parquet_sink import ParquetPageSink, SinkFile
from trinity.storage.partitioned_sink import PartitionedPageSink


@dataclass(frozen=True)
class FolderTarget(WriteTarget):
    """The target of a write to a folder that others write. The files get no partition columns."""


class FolderSinkProvider(ParquetSinkProvider):
    """The provider of sinks for Parquet tables, and for folders that others write."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """Return the shared sink, except for partitioned folders that others write."""
        if not (isinstance(target, FolderTarget) and target.partition_by):
            return super().create_page_sink(target, sink)
        return _FolderSink(target, sink, self.partition_values(target))


class _FolderSink(PartitionedPageSink):
    def new_file(self, target: WriteTarget, sink: SinkId, file: SinkFile) -> ParquetPageSink:
        kept = [f for f in target.storage if f.name not in target.partition_by]
        return _WithoutPartition(replace(target, storage=pa.schema(kept)), sink, file)


class _WithoutPartition(ParquetPageSink):
    def append_page(self, page: pa.RecordBatch) -> None:
        super().append_page(page.select(self._target.storage.names))
