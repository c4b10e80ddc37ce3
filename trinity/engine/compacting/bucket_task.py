"""Rewrites of buckets: what loses in a base file is left out, and what wins is put in its place, all in Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.compacting.bucket_merge import BucketMerge, MergedBucket, Written
from trinity.engine.writing.run_sinks import RewriteTask
from trinity.hidden import BUCKET
from trinity.merge.arrow.keys import places_among
from trinity.spi import DataFile
from trinity.storage import stored_pages

__all__ = ["BucketTask"]


@dataclass(frozen=True)
class BucketTask:
    """Writes the buckets that its pages name, and tells which these are."""

    write: RewriteTask
    merge: BucketMerge

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        rows, done = self.merge.rows(pages), list[int]()
        written = self.write(order, self._merged(rows, done)) if len(rows) else []
        return Written(done, written).results()

    def of_bucket(self, bucket: int, winners: pa.Table) -> list[bytes]:
        """Write a bucket, and return the fragments.

        Args:
            bucket: its number, and its place in the order of the commit.
            winners: the winners of its keys, without :data:`BUCKET`.
        """
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
        """Return a base file's rows that stay, with the log's in their places."""
        stays = np.ones(file.rows, bool)
        stays[merged.lost] = False
        if file.deletes:
            stays[as_numpy(file.deletes.positions())] = False
        places = places_among(merged.base, live, self.merge.spec.key)
        first, taken = 0, 0
        for page in stored_pages(file.path, self.merge.storage):
            end = first + page.num_rows
            kept = first + np.flatnonzero(stays[first:end])
            upto = int(np.searchsorted(places, end))
            rows = self._of_base(page.take(as_arrow(kept - first)), bucket)
            if upto > taken:
                order = np.argsort(np.concatenate([places[taken:upto], kept]), kind="stable")
                rows = pa.concat_tables([live.slice(taken, upto - taken), rows]).take(order).combine_chunks()
            yield from rows.to_batches()
            first, taken = end, upto
        yield from live.slice(taken).to_batches()

    def _of_base(self, page: pa.RecordBatch, bucket: int) -> pa.Table:
        count = page.num_rows
        buckets = as_arrow(np.full(count, bucket, np.int32))
        further = [as_arrow(np.zeros(count, bool)), pa.nulls(count, pa.int64()), buckets]
        return pa.Table.from_arrays([*page.columns, *further], schema=self.merge.schema)
