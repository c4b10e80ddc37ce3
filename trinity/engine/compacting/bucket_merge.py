"""Merges of the log's winners of a bucket with the bucket's base file, in a task that reads that file itself.

Losing rows of the base file are dropped, and winners are inserted in key order, all in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.compacting.rewrite_task import RewriteTask, in_storage_form
from trinity.engine.reading.data_files import read_columns
from trinity.hidden import BUCKET, DELETED, SINCE
from trinity.merge.arrow.fold import compared_columns, losers
from trinity.merge.kernels.keys import Keys, indexes_among, sorted_indexes
from trinity.merge.sidecar import Retention
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile
from trinity.storage.parquet_files import rows_in, stored_pages

_BUCKET: Final = b"b"
_ROWS: Final = b"r"
_DELETES: Final = b"d"
_PAGE: Final = 1 << 16
"""Rows that are copied into order at once, so that there is never a second copy of all rows."""


def bucket_markers(buckets: Sequence[int]) -> pa.Table:
    """Return a row for each bucket, with nothing but its number: the task that gets it merges the bucket."""
    return pa.table({BUCKET: pa.array(buckets, pa.int32())})


def in_order(rows: pa.Table, indexes: np.ndarray, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows at the given positions, sorted by key, then by position."""
    rows = rows.combine_chunks()  # `take` on several chunks would copy all of them for each page
    order = indexes[sorted_indexes(rows.select(key).take(indexes), key)]
    for first in range(0, len(order), _PAGE):
        yield from rows.take(order[first : first + _PAGE]).to_batches()


class Written(NamedTuple):
    """The results of tasks: numbers of merged buckets, fragments of rows, and fragments of deleted positions."""

    buckets: Sequence[int]
    rows: Sequence[bytes]
    deletes: Sequence[bytes] = ()

    def results(self) -> list[bytes]:
        """Return the results as bytes; the first byte of each tells its kind."""
        buckets = [_BUCKET + str(bucket).encode() for bucket in self.buckets]
        return [*buckets, *(_ROWS + f for f in self.rows), *(_DELETES + f for f in self.deletes)]

    @classmethod
    def of(cls, results: Iterable[bytes]) -> Written:
        """Collect the results of tasks.

        Raises:
            RuntimeError: two tasks have merged one bucket, and so each has written the bucket's base rows.
        """
        found: dict[bytes, list[bytes]] = {_BUCKET: [], _ROWS: [], _DELETES: []}
        for result in results:
            found[result[:1]].append(result[1:])
        buckets = sorted(map(int, found[_BUCKET]))
        if len(set(buckets)) < len(buckets):
            raise RuntimeError(f"Spark has put rows of one bucket into several tasks: {buckets}.")
        return cls(buckets, found[_ROWS], found[_DELETES])


class MergedBucket(NamedTuple):
    """The winners of a bucket that no base row beats, and the bucket's base file, if it has one.

    Attributes:
        winners: rows with :data:`DELETED`, :data:`SINCE` and :data:`BUCKET`, in no order.
        base: key and ordering columns of all rows of the base file.
        lost: positions of losing rows of the base file, ascending.
    """

    winners: pa.Table
    file: DataFile | None
    base: pa.Table
    lost: np.ndarray


@dataclass(frozen=True)
class BucketMerge:
    """The merge of winners with base files, by bucket, in a task."""

    spec: MergeSpec
    storage: pa.Schema
    base: Mapping[int, DataFile]
    retention: Retention

    @property
    def schema(self) -> pa.Schema:
        """The columns of winners."""
        further = pa.schema([(DELETED, pa.bool_()), (SINCE, pa.int64()), (BUCKET, pa.int32())])
        return pa.schema([*self.storage, *further])

    def rows(self, pages: Iterable[pa.RecordBatch]) -> pa.Table:
        """Return the rows of a task's pages: winners, and rows that only name a bucket, with :data:`DELETED` NULL."""
        schema = self.schema
        return pa.Table.from_batches([in_storage_form(page, schema) for page in pages], schema)

    def merged(self, rows: pa.Table) -> Iterator[tuple[int, MergedBucket]]:
        """Merge each bucket that is named. Raises BAD_DATA naming a base file that cannot be read."""
        for bucket in sorted(rows.column(BUCKET).unique().to_pylist()):
            mine = pc.and_(pc.equal(rows.column(BUCKET), bucket), pc.is_valid(rows.column(DELETED)))
            yield bucket, self.of_bucket(bucket, rows.filter(mine).combine_chunks())

    def of_bucket(self, bucket: int, winners: pa.Table) -> MergedBucket:
        """Merge the winners of a bucket. Raises as :meth:`merged`."""
        file, names = self.base.get(bucket), compared_columns(self.spec)
        if file is None:
            return MergedBucket(winners, None, self.storage.empty_table().select(names), np.empty(0, np.int64))
        base = read_columns(file.path, self.storage, names)
        keys, numbers = Keys.of(winners, self.spec.key)
        lost, beaten = losers(self.spec, base, keys, winners.take(np.argsort(numbers)), file.deletes)
        return MergedBucket(winners.filter(np.isin(numbers, beaten, invert=True)), file, base, lost)

    def live(self, winners: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the winners that are no tombstones, in order of the key."""
        indexes = np.flatnonzero(~as_numpy(winners.column(DELETED)))
        yield from in_order(winners, indexes, self.spec.key)

    def tombstones(self, winners: pa.Table) -> pa.Table:
        """Return the winners that are tombstones, and not older than the table's retention."""
        found = winners.filter(winners.column(DELETED))
        found = found.filter(self.retention.keeps(found))
        return found.set_column(found.schema.get_field_index(SINCE), SINCE, self.retention.since(found))


@dataclass(frozen=True)
class BucketTask:
    """The task that merges and writes the buckets which its pages name. It returns their numbers with the fragments."""

    write: RewriteTask
    merge: BucketMerge

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        rows, done = self.merge.rows(pages), list[int]()
        written = self.write(order, self._merged(rows, done)) if len(rows) else []
        return Written(done, written).results()

    def of_bucket(self, bucket: int, winners: pa.Table) -> list[bytes]:
        """Write a bucket, and return the fragments. Files have the order of their buckets' numbers in the commit."""
        named = winners.append_column(BUCKET, as_arrow(np.full(len(winners), bucket, np.int32)))
        return self.write(bucket, self._rows(bucket, self.merge.of_bucket(bucket, named)))

    def _merged(self, rows: pa.Table, done: list[int]) -> Iterator[pa.RecordBatch]:
        for bucket, merged in self.merge.merged(rows):
            yield from self._rows(bucket, merged)
            done.append(bucket)

    def _rows(self, bucket: int, merged: MergedBucket) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a bucket in order of the key, and then its tombstones."""
        if merged.file is None:
            yield from self.merge.live(merged.winners)
        else:
            live = pa.Table.from_batches(self.merge.live(merged.winners), self.merge.schema)
            yield from self._with_log_rows(bucket, merged.file, merged, live)
        yield from self.merge.tombstones(merged.winners).to_batches()

    def _with_log_rows(
        self, bucket: int, file: DataFile, merged: MergedBucket, live: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        """Yield a base file's remaining rows, with the log's ``live`` winners merged in by key."""
        stays = np.ones(rows_in(file), bool)
        stays[merged.lost] = False
        if file.deletes:
            stays[as_numpy(file.deletes.positions())] = False
        indexes = indexes_among(merged.base, live, self.merge.spec.key)
        first, taken = 0, 0
        for page in stored_pages(file.path, self.merge.storage):
            end = first + page.num_rows
            kept = first + np.flatnonzero(stays[first:end])
            upto = int(np.searchsorted(indexes, end))
            rows = self._of_base(page.take(as_arrow(kept - first)), bucket)
            if upto > taken:
                order = np.argsort(np.concatenate([indexes[taken:upto], kept]), kind="stable")
                rows = pa.concat_tables([live.slice(taken, upto - taken), rows]).take(order).combine_chunks()
            yield from rows.to_batches()
            first, taken = end, upto
        yield from live.slice(taken).to_batches()

    def _of_base(self, page: pa.RecordBatch, bucket: int) -> pa.Table:
        count = page.num_rows
        buckets = as_arrow(np.full(count, bucket, np.int32))
        further = [as_arrow(np.zeros(count, bool)), pa.nulls(count, pa.int64()), buckets]
        return pa.Table.from_arrays([*page.columns, *further], schema=self.merge.schema)
