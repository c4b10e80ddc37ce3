"""A folder of Parquet files that others made, on a disk or in a bucket, written by one process without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.spi import (
    CommitResult,
    ConnectorContext,
    ConnectorMetadata,
    DataFile,
    PageSinkProvider,
    SinkId,
    TableHandle,
)
from trinity.storage import Location, ObjectStore
from trinity_parquet import ParquetFormat


class Feed:
    """A table in a folder with partitions ``p=0`` and ``p=1``, and a column ``v`` of numbers.

    Args:
        folder: the table's folder.
        settings: the settings of its catalog.
    """

    def __init__(self, folder: str, settings: Mapping[str, Any]) -> None:
        def no_spark() -> Any:
            raise AssertionError

        lake = ParquetFormat().create("lake", settings, ConnectorContext(no_spark))
        self.folder = folder
        self.table = TableHandle("lake", "default", "feed", folder)
        self.metadata: ConnectorMetadata = lake.open_external(self.table)
        self.sinks: PageSinkProvider = lake.sinks

    def append(self, *numbers: int) -> CommitResult:
        """Append rows, one file a partition."""
        insert = self.metadata.begin_insert(self.table)
        return self.metadata.finish_insert(insert, self.staged(insert.target, *numbers))

    def staged(self, target: Any, *numbers: int) -> list[bytes]:
        """Write rows to staged files, and return their fragments."""
        sink = self.sinks.create_page_sink(target, SinkId())
        parts = pa.array([v % 2 for v in numbers], pa.int64())
        sink.append_page(pa.record_batch([pa.array(numbers, pa.int64()), parts], schema=target.storage))
        return sink.finish()

    def compact(self) -> CommitResult:
        """Rewrite all rows into new files."""
        files = self.metadata.get_splits(self.table).files
        rewrite = self.metadata.begin_rewrite(self.table, files)
        staged = self.staged(rewrite.target, *rows_in(files))
        return self.metadata.finish_rewrite(rewrite, staged, replace_sidecar=False)


def values(feed: Feed) -> list[int]:
    """Return the rows of the newest version."""
    return rows_in(feed.metadata.get_splits(feed.table).files)


def rows_in(files: Iterable[DataFile]) -> list[int]:
    """Return the rows of these files."""
    return sorted(v for file in files for v in _numbers(file.path))


def _numbers(path: str) -> list[int]:
    with ObjectStore(path).filesystem.open_input_file(Location.of(path).for_arrow) as file:
        found: list[int] = pq.ParquetFile(file).read()["v"].to_pylist()
    return found
