"""Parts into which rows are sorted: buckets, or partitions. Rows beyond a limit of memory are spilled to disk."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.compacting.sizes import by_partition_values, files_for
from trinity.engine.reading.spark_hash import buckets_of
from trinity.errors import TrinityError
from trinity.limits import Limit
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile

BYTES_IN_MEMORY: Final = Limit(128 * 1024 * 1024)
"""Most bytes of rows that wait in memory."""
_LZ4: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class Parts:
    """Rows by the number of their part. Several threads may use it; as a context manager, it removes its files."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._waiting: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._bytes = 0
        self._spilled: defaultdict[int, list[tuple[Path, int]]] = defaultdict(list)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._mutex = Lock()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, rows: pa.RecordBatch, parts: np.ndarray) -> None:
        """Add rows to their parts. Raises FILESYSTEM_ERROR when the folder for temporary files cannot hold them."""
        if not rows.num_rows:
            return
        order = np.argsort(parts, kind="stable")
        found, edges = np.unique(parts[order], return_index=True)
        rows = rows if len(found) == 1 else rows.take(as_arrow(order))
        with self._mutex:
            for part, first, end in zip(found.tolist(), edges, [*edges[1:], len(parts)], strict=True):
                self._waiting[part].append(rows.slice(first, end - first))
            self._bytes += rows.nbytes
            if self._bytes > BYTES_IN_MEMORY.value:
                self._spill()

    def __iter__(self) -> Iterator[int]:
        """Yield the parts that have rows."""
        return iter(sorted({*self._waiting, *self._spilled}))

    def take(self, part: int) -> pa.Table:
        """Return the rows of a part, and forget them."""
        with self._mutex:
            spilled, waiting = self._spilled.pop(part, []), self._waiting.pop(part, [])
        rows = [*(_read(path, index) for path, index in spilled), *waiting]
        return pa.Table.from_batches(rows, self._schema).combine_chunks()  # the caller gets the only copy

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="trinity-")
        path = Path(self._folder.name, f"{len(list(Path(self._folder.name).iterdir()))}.arrow")
        try:
            with pa.ipc.new_file(path, self._schema, options=_LZ4) as file:
                for index, (part, rows) in enumerate(self._waiting.items()):
                    file.write_batch(pa.concat_batches(rows))
                    self._spilled[part].append((path, index))
        except OSError as error:
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"'{path.parent}' cannot hold the rows of a compaction: {error}. Make room there, or name another "
                "folder for temporary files by the environment variable TMPDIR.",
            ) from error
        self._waiting.clear()
        self._bytes = 0


def _read(path: Path, index: int) -> pa.RecordBatch:
    with pa.ipc.open_file(path) as file:
        return file.get_batch(index)


@dataclass(frozen=True)
class PartLayout:
    """The layout of rows in parts, by the hash of the key: of all rows, or of the rows of each partition.

    ``partitions`` has, for the path of a file, the first part of its partition, and the partition's number of parts.
    ``count`` is the number of parts for rows whose partition is unknown.
    """

    key: Sequence[str]
    count: int
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_partitions(cls, files: Sequence[DataFile], spec: MergeSpec) -> PartLayout:
        """Return the layout of a partitioned table's files: as many files for a partition as its size needs."""
        found: dict[str, tuple[int, int]] = {}
        first = 1
        for group in by_partition_values(files).values():
            count = spec.buckets or files_for(group)
            found |= {file.path: (first, count) for file in group}
            first += count
        return cls(spec.key, 1, found)

    def parts(self, file: DataFile, rows: pa.RecordBatch) -> np.ndarray:
        """Return the part of each of a file's rows."""
        first, count = self.partitions.get(file.path, (0, self.count))
        return first + self._by_hash(rows, count)

    def of_rows(self, rows: pa.RecordBatch) -> np.ndarray:
        """Return the part of each row whose partition is unknown."""
        return self._by_hash(rows, self.count)

    def _by_hash(self, rows: pa.RecordBatch, count: int) -> np.ndarray:
        if count == 1:
            return np.zeros(rows.num_rows, np.int32)
        return buckets_of(pa.Table.from_batches([rows]), self.key, count)
