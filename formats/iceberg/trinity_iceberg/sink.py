"""The sinks: the shared ones, which here know Iceberg's partition transforms. Imports PyIceberg only for these."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from trinity.spi import DeleteSink, RewriteTableHandle, SinkId, WriteTarget
from trinity.storage import ParquetSinkProvider

__all__ = ["IcebergSinkProvider"]


class IcebergSinkProvider(ParquetSinkProvider):
    """See :class:`~trinity.spi.PageSinkProvider`."""

    def partition_values(self, target: WriteTarget) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Partition columns as they are, and transforms under the names of their partition fields."""
        if set(target.partition_by) <= set(target.storage.names):
            return super().partition_values(target)
        from trinity_iceberg.partition import transformed_values

        return transformed_values(target)

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Position delete files, which name data files as manifests do."""
        from trinity_iceberg.deletes import delete_sink

        return delete_sink(rewrite, sink)
