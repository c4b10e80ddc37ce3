"""The sink of a partitioned table, which splits pages, and writes each partition to files of its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from trinity.errors import TrinityError
from trinity.spi import PageSink, SinkId, TableDefinition, WriteTarget
from trinity.storage.parquet_sink import ParquetPageSink, SinkFile, attempt_id, sync_folders_of

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_FOLDER: Final = 255
"""Bytes that file systems allow in a folder's name."""

PartitionValues = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Function from a page to its partition values: a column for each field, named as in ``DataFile.partition``."""


def identity_only(definition: TableDefinition, format_name: str) -> None:
    """Check that a table has no partition transforms, for a format that has none. Raises NOT_SUPPORTED."""
    for field in definition.partition_fields:
        if not field.identity:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{definition.full_name}': {format_name} has no partition transforms, such as {field}; "
                "partition by a column as it is, or use Iceberg.",
            )


class PartitionedPageSink(PageSink):
    """A sink that writes each partition's rows to files of their own; rows may arrive in any order.

    Args:
        target: where and how to write.
        sink: identifies the sink.
        values: returns the partition values of a page.
        most_buffered: bytes that are buffered for all partitions; beyond that the largest buffer is written out.
        most_open: number of files that are kept open; beyond that the file opened first is finished, and its partition
            gets another file.
    """

    def __init__(
        self,
        target: WriteTarget,
        sink: SinkId,
        values: PartitionValues,
        *,
        most_buffered: int = 256 * 1024 * 1024,
        most_open: int = 64,
    ) -> None:
        self._target = target
        self._sink = sink
        self._values = values
        self._most_buffered = most_buffered
        self._most_open = most_open
        self._attempt = attempt_id()
        self._made = 0
        self._active: dict[tuple[Any, ...], ParquetPageSink] = {}
        self._finished: list[ParquetPageSink] = []
        self._fragments: list[bytes] = []

    def append_page(self, page: pa.RecordBatch) -> None:
        """Give every row to the sink of its partition, in order; write buffers out if too much is buffered."""
        if page.num_rows == 0:
            return
        for partition, rows in _split(page, self._values(page)):
            found = self._active.get(tuple(partition.values()))
            if found is None:
                found = self._active[tuple(partition.values())] = self._new_sink(partition)
            found.append_page(rows)
        self._relieve()

    def finish(self) -> list[bytes]:
        """Close the files, one after the other, and return their fragments."""
        for partition in list(self._active):
            self._finish(partition)
        sync_folders_of(self._target, [sink.path for sink in self._finished])
        return self._fragments

    def abort(self) -> None:
        """Remove the files."""
        for sink in (*self._active.values(), *self._finished):
            sink.abort()
        self._active.clear()

    def _new_sink(self, partition: dict[str, Any]) -> ParquetPageSink:
        # numbered, so that names are unique across partitions and sort in the order in which the files were begun
        file = SinkFile(self._attempt, self._made, _partition_folder(partition), partition)
        self._made += 1
        return self.new_file(self._target, self._sink, file)

    def new_file(self, target: WriteTarget, sink: SinkId, file: SinkFile) -> ParquetPageSink:
        """Return the sink of one partition's file."""
        return ParquetPageSink(target, sink, file)

    def _finish(self, partition: tuple[Any, ...]) -> None:
        sink = self._active[partition]
        self._fragments += sink.close()
        self._finished.append(self._active.pop(partition))

    def _relieve(self) -> None:
        while sum(s.buffered for s in self._active.values()) > self._most_buffered:
            max(self._active.values(), key=lambda s: s.buffered).flush()
        opened = [partition for partition, sink in self._active.items() if sink.opened]
        for partition in opened[: max(0, len(opened) - self._most_open)]:
            self._finish(partition)


def _split(page: pa.RecordBatch, values: pa.RecordBatch) -> Iterator[tuple[dict[str, Any], pa.RecordBatch]]:
    """Yield (partition values, rows in order) for each partition of a page."""
    codes = _codes(values)
    order = pc.sort_indices(codes)  # the sort is stable, so the rows of a partition keep their order
    begin = 0
    for count in pc.value_counts(codes.take(order)).field("counts").to_pylist():
        rows = order.slice(begin, count)
        begin += count
        # copied by `take`: a slice that waits in a buffer would keep the whole page in memory
        yield _python_values(values, rows[0].as_py()), page if count == page.num_rows else page.take(rows)


def _codes(values: pa.RecordBatch) -> pa.Array:
    """Return a number for each row; rows with the same partition values, NULL included, have the same number."""
    codes: pa.Array | None = None
    for column in values.columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        part = encoded.indices.cast(pa.int64())
        # encoded again after each column, so that no product exceeds the square of the page's number of rows
        both = part if codes is None else pc.add(pc.multiply(codes, len(encoded.dictionary)), part)
        codes = both.dictionary_encode().indices.cast(pa.int64())
    assert codes is not None
    return codes


def _python_values(values: pa.RecordBatch, row: int) -> dict[str, Any]:
    found = {}
    for name, column in zip(values.schema.names, values.columns, strict=True):
        try:
            found[name] = column[row].as_py()
        except (OverflowError, ValueError) as error:
            text = column.slice(row, 1).cast(pa.string())[0].as_py()
            raise TrinityError(
                "CONSTRAINT_VIOLATION",
                f"'{text}' in partition column '{name}' is outside of the years 1 to 9999, which partitions can have.",
            ) from error
    return found


def _partition_folder(partition: dict[str, Any]) -> str:
    """Return the folders of a partition in Hive's form: ``region=eu/day=2024-01-31``, values percent-encoded.

    Trinity reads no value from a path, but Polars and DuckDB do for such paths, so the values must be right.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for a value that is too long for a folder's name.
    """
    return "/".join(_folder(name, value) for name, value in partition.items())


def _folder(name: str, value: Any) -> str:
    text = NULL_FOLDER if value is None else _text(value)
    folder = f"{quote(name, safe='')}={quote(text, safe='')}"
    if len(folder) > _LONGEST_FOLDER:
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"'{text[:40]}...' in partition column '{name}' is too long: percent-encoded, '{name}=' and the value are "
            f"a folder's name of at most {_LONGEST_FOLDER} bytes. Partition by a shorter column.",
        )
    return folder


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
