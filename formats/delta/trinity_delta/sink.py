"""Sinks: the shared ones, and one that writes deletion vectors."""

from __future__ import annotations

from trinity.spi import DeleteSink, RewriteTableHandle, SinkId
from trinity.storage import ParquetSinkProvider


class DeltaSinkProvider(ParquetSinkProvider):
    """The provider of sinks for Delta tables."""

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Return a sink that writes deletion vectors."""
        from trinity_delta.deletes import DeletionVectorSink

        return DeletionVectorSink(rewrite, sink)
