"""Rows of given keys, picked in Arrow from files with many other rows: only the picked rows reach Spark.

The key columns of a file are read first, and then the pages that have rows with one of the keys. This costs a small
part of a scan by Spark, which reads all rows and joins them with the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from trinity.engine.reading.data_files import not_deleted
from trinity.engine.writing.spark.run_sinks import map_in_arrow
from trinity.merge.kernels.keys import rows_with_keys
from trinity.spi import DataFile, Deletes, SplitSource
from trinity.storage.parquet_files import check_not_missing, stored_pages
from trinity.storage.spark_files import spark_schema
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANY: Final = 32
"""Most files with keys: every task opens all of them."""


def pickable(splits: SplitSource, keyed: Sequence[DataFile]) -> bool:
    """Return True when rows of the version can be picked by the keys of some files.

    Nested columns are left to Spark, which maps a file's fields to those of a later version; TIME, too, which Spark
    has in another unit.
    """
    plain = not any(pa.types.is_nested(field.type) or pa.types.is_time(field.type) for field in splits.storage)
    return plain and len(keyed) <= _MANY


def picked_rows(
    spark: SparkSession, splits: SplitSource, key: Sequence[str], files: Sequence[DataFile], keyed: Sequence[DataFile]
) -> DataFrame:
    """Return the rows of ``files`` whose key occurs in the other files, in storage form: a task for each file.

    Raises:
        TrinityError: BAD_DATA naming a file that is missing.
    """
    check_not_missing(files)
    pick = _Pick(splits.storage, tuple(key), tuple((f.path, f.deletes) for f in files), tuple(f.path for f in keyed))
    stored = spark_schema(splits.storage)
    rows = map_in_arrow(spark.range(0, len(files), 1, len(files)), lambda pages: pick(pages), stored)
    return rows.select(*(quoted(name) for name in splits.storage.names))


@dataclass(frozen=True)
class _Pick:
    """The task that picks rows. It is given numbers of ``files``: pairs of a path, and the deleted positions.

    ``keyed`` are the paths of the files that have the keys.
    """

    storage: pa.Schema
    key: tuple[str, ...]
    files: tuple[tuple[str, Deletes | None], ...]
    keyed: tuple[str, ...]

    def __call__(self, pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys: pa.Table | None = None
        for page in pages:
            for number in page.column(0).to_pylist():
                keys = self._keys() if keys is None else keys
                path, deletes = self.files[number]
                yield from self._picked(path, deletes, keys)

    def _keys(self) -> pa.Table:
        return pa.concat_tables([self._keys_of(path) for path in self.keyed])

    def _picked(self, path: str, deletes: Deletes | None, keys: pa.Table) -> Iterator[pa.RecordBatch]:
        positions = not_deleted(rows_with_keys(self._keys_of(path), keys, self.key), deletes)
        before = 0
        for page in stored_pages(path, self.storage) if len(positions) else ():
            first, last = np.searchsorted(positions, (before, before + page.num_rows))
            if first < last:
                yield page.take(pa.array(positions[first:last] - before))
            before += page.num_rows

    def _keys_of(self, path: str) -> pa.Table:
        wanted = pa.schema([self.storage.field(name) for name in self.key])
        return pa.Table.from_batches(stored_pages(path, wanted), wanted)
