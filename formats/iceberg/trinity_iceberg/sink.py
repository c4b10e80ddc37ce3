"""Sinks: the shared ones, with Iceberg's partition transforms. PyIceberg is imported for transforms only."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from trinity.spi import DeleteSink, RewriteTableHandle, SinkId, WriteTarget
from trinity.storage import ParquetSinkProvider


class IcebergSinkProvider(ParquetSinkProvider):
    """The provider of sinks for Iceberg tables."""

    def partition_values(self, target: WriteTarget) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Return a function from a page to its partition values; those of transforms are named by partition field."""
        if set(target.partition_by) <= set(target.storage.names):
            return super().partition_values(target)
        from trinity_iceberg.partition import transformed_values

        return transformed_values(target)

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Return a sink of position delete files, which name data files as manifests do."""
        from trinity_iceberg.deletes import IcebergDeleteSink

        return IcebergDeleteSink(rewrite, sink)
