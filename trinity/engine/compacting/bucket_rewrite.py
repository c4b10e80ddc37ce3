"""Full compaction of a base in buckets: Spark folds the log alone, and each task reads its base file itself.

So base rows become no rows of Spark's: what loses is left out, what wins is put in its place, all in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trinity.engine.compacting.bucket_merge import BucketMerge, MergedBucket, Written, in_buckets, naming
from trinity.engine.compacting.in_threads import by_bucket, log_winners_in_process, run_in_threads
from trinity.engine.reading.local.limits import NotLocal, compared_in_arrow
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.spark.remote import parallelism
from trinity.engine.spark.types import arrow_frame
from trinity.engine.writing.run_sinks import RewriteTask, run_on_spark
from trinity.merge.arrow.keys import places_among
from trinity.spi import DataFile
from trinity.storage import stored_pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_rewritten_in_buckets", "rewritten_in_buckets"]


def is_rewritten_in_buckets(fold: FoldPlan, buckets: int) -> bool:
    """Return True for a version whose base has so many buckets, in which tasks compare it with the log in Arrow."""
    splits, spec = fold.splits, fold.spec
    whole = not spec.by_column and splits.native is None
    return whole and fold.buckets == buckets and compared_in_arrow(splits, spec, fold.base)


def rewritten_in_buckets(spark: SparkSession, fold: FoldPlan, write: RewriteTask) -> list[bytes]:
    """Rewrite base, log and sidecar, bucket by bucket, and return the fragments.

    Args:
        spark: the session.
        fold: the plan of a version for which :func:`is_rewritten_in_buckets` is true.
        write: writes rows into buckets.
    """
    assert fold.buckets is not None
    spec, count = fold.spec, fold.buckets
    base = {f.bucket.index: f for f in fold.base if f.bucket}
    task = _BucketTask(write, BucketMerge(spec, fold.splits.storage, base))
    winners = log_winners_in_process(spark, fold)
    if not isinstance(winners, NotLocal):
        rows = {**{bucket: naming([bucket]) for bucket in base}, **by_bucket(winners, spec.key, count)}
        return [*Written.of(run_in_threads(task, rows, parallelism(spark))).rows]
    results = run_on_spark(task, in_buckets(SparkExecutor(spark).log_winners(fold), spec, count))
    if missed := sorted(base.keys() - {*Written.of(results).buckets}):  # the log has no row of theirs
        tasks = min(len(missed), parallelism(spark))
        results += run_on_spark(task, arrow_frame(spark, naming(missed)).repartition(tasks))
    return [*Written.of(results).rows]


@dataclass(frozen=True)
class _BucketTask:
    """Writes the buckets that its pages name, and tells which these are."""

    write: RewriteTask
    merge: BucketMerge

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        rows, done = self.merge.rows(pages), list[int]()
        written = self.write(order, self._merged(rows, done)) if len(rows) else []
        return Written(done, written).results()

    def _merged(self, rows: pa.Table, done: list[int]) -> Iterator[pa.RecordBatch]:
        """Return the rows of each bucket in order of the key, and then its tombstones."""
        for bucket, merged in self.merge.merged(rows):
            live = self.merge.live(merged.winners)
            if merged.file is None:
                yield from live.to_batches()
            else:
                yield from self._interleaved(bucket, merged.file, merged, live)
            yield from self.merge.tombstones(merged.winners).to_batches()
            done.append(bucket)

    def _interleaved(
        self, bucket: int, file: DataFile, merged: MergedBucket, live: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        """Return a base file's rows that stay, with the log's in their places."""
        stays = np.ones(file.rows, bool)
        stays[merged.lost] = False
        if file.deletes:
            stays[file.deletes.positions().to_numpy()] = False
        places = places_among(merged.base, live, self.merge.spec.key)
        first, taken = 0, 0
        for page in stored_pages(file.path, self.merge.storage):
            end = first + page.num_rows
            kept = first + np.flatnonzero(stays[first:end])
            upto = int(np.searchsorted(places, end))
            rows = self._of_base(page.take(pa.array(kept - first)), bucket)
            if upto > taken:
                order = np.argsort(np.concatenate([places[taken:upto], kept]), kind="stable")
                rows = pa.concat_tables([live.slice(taken, upto - taken), rows]).take(order).combine_chunks()
            yield from rows.to_batches()
            first, taken = end, upto
        yield from live.slice(taken).to_batches()

    def _of_base(self, page: pa.RecordBatch, bucket: int) -> pa.Table:
        count = page.num_rows
        buckets = pa.array(np.full(count, bucket, np.int32))
        further = [pa.array(np.zeros(count, bool)), pa.nulls(count, pa.int64()), buckets]
        return pa.Table.from_arrays([*page.columns, *further], schema=self.merge.schema)
