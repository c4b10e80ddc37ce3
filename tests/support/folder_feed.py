"""A folder of Parquet files that others made, on a disk or in a bucket, as one process writes into it without Spark."""

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
    """A folder in partitions ``p=0``, ``p=1``, with a column ``v`` of numbers.

    Args:
        folder: the folder.
        settings: a catalog's, by which it is reached.
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
        """Appends rows, one file for each partition."""
        insert = self.metadata.begin_insert(self.table)
        return self.metadata.finish_insert(insert, self.staged(insert.target, *numbers))

    def staged(self, target: Any, *numbers: int) -> list[bytes]:
        """Stages rows, and gives their fragments."""
        sink = self.sinks.create_page_sink(target, SinkId())
        parts = pa.array([v % 2 for v in numbers], pa.int64())
        sink.append_page(pa.record_batch([pa.array(numbers, pa.int64()), parts], schema=target.storage))
        return sink.finish()

    def compact(self) -> CommitResult:
        """Writes all rows anew, in the place of their files."""
        files = self.metadata.get_splits(self.table).files
        rewrite = self.metadata.begin_rewrite(self.table, files)
        staged = self.staged(rewrite.target, *rows_in(files))
        return self.metadata.finish_rewrite(rewrite, staged, replace_sidecar=False)


def values(feed: Feed) -> list[int]:
    """The rows that a read finds."""
    return rows_in(feed.metadata.get_splits(feed.table).files)


def rows_in(files: Iterable[DataFile]) -> list[int]:
    """The rows of some files."""
    return sorted(v for file in files for v in _numbers(file.path))


def _numbers(path: str) -> list[int]:
    with ObjectStore(path).filesystem.open_input_file(Location.of(path).for_arrow) as file:
        found: list[int] = pq.ParquetFile(file).read()["v"].to_pylist()
    return found
