"""The parts that a rewrite's rows are laid out in: each becomes the files of one sink."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trinity.engine.compacting.sizes import FILE_BYTES, by_partition_values
from trinity.engine.reading.spark_hash import buckets_of
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Parts by the hash of the key, of all rows or of those of each partition.

    Attributes:
        key: the key columns.
        count: the number of parts of rows that no partition is known of.
        partitions: path of a file -> the first part of its partition, and how many that has.
    """

    key: Sequence[str]
    count: int
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_partitions(cls, files: Sequence[DataFile], spec: MergeSpec) -> Layout:
        """Return the layout of a partitioned table's files: as many files for a partition as its size needs."""
        found: dict[str, tuple[int, int]] = {}
        first = 1
        for group in by_partition_values(files).values():
            count = spec.buckets or max(1, math.ceil(sum(f.size for f in group) / FILE_BYTES))
            found |= {file.path: (first, count) for file in group}
            first += count
        return cls(spec.key, 1, found)

    def parts(self, file: DataFile, rows: pa.RecordBatch) -> np.ndarray:
        """Return the part of each of a file's rows."""
        first, count = self.partitions.get(file.path, (0, self.count))
        return first + self._by_hash(rows, count)

    def of_rows(self, rows: pa.RecordBatch) -> np.ndarray:
        """Return the part of each of some rows that no partition is known of."""
        return self._by_hash(rows, self.count)

    def _by_hash(self, rows: pa.RecordBatch, count: int) -> np.ndarray:
        if count == 1:
            return np.zeros(rows.num_rows, np.int32)
        return buckets_of(pa.Table.from_batches([rows]), self.key, count)
