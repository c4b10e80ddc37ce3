"""Full compaction of a base in buckets: Spark folds the log alone, and each task reads its base file itself.

So base rows become no rows of Spark's: what loses is left out, what wins is put in its place, all in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trinity.engine.appending.run_sinks import RewriteTask, run_on_spark
from trinity.engine.compacting.met_in_buckets import BucketMeeting, Met, Written, in_buckets, naming
from trinity.engine.compacting.winners_here import parted, run_here, winners_here
from trinity.engine.reading.arrow_keys import places_among
from trinity.engine.reading.base_buckets import layers, well_bucketed
from trinity.engine.reading.by_place import is_told_in_arrow
from trinity.engine.reading.merged_read import newest_versions, with_key
from trinity.engine.reading.scan import log_scan, tiers
from trinity.engine.spark.remote import parallelism
from trinity.engine.spark.types import arrow_frame
from trinity.merge.quoting import quoted
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, SplitSource
from trinity.storage import stored_pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["base_by_bucket", "rewritten_in_buckets"]


def base_by_bucket(splits: SplitSource, spec: MergeSpec, buckets: int | None) -> dict[int, DataFile] | None:
    """The base file of each of so many buckets that has one; None for a version that is not compacted so."""
    if buckets is None or spec.by_column or splits.native is not None:
        return None
    inside, _ = layers(tiers(splits.files)[0], splits.definition)
    if well_bucketed(inside, splits.definition) != buckets or not is_told_in_arrow(splits, spec, inside):
        return None
    return {f.bucket.index: f for f in inside if f.bucket}


def rewritten_in_buckets(
    spark: SparkSession, splits: SplitSource, spec: MergeSpec, base: Mapping[int, DataFile], write: RewriteTask
) -> list[bytes]:
    """Base, log and sidecar, bucket by bucket, as a task writes them. Returns its fragments.

    Args:
        spark: the session.
        splits: the version.
        spec: its options.
        base: see :func:`base_by_bucket`.
        write: writes rows into buckets.
    """
    assert write.buckets is not None
    count = write.buckets.count
    stands, log = tiers(splits.files)
    runs = [f for f in stands if f.path not in {b.path for b in base.values()}]
    task = _BucketTask(write, BucketMeeting(spec, splits.storage, base))
    if (here := winners_here(spark, splits, spec, runs)) is not None:
        rows = {**{bucket: naming([bucket]) for bucket in base}, **parted(here, spec.key, count)}
        return [*Written.of(run_here(task, rows, parallelism(spark))).rows]
    versions = with_key(log_scan(spark, splits, spec, log, splits.sidecar, runs=runs), splits, spec)
    newest = newest_versions(versions.repartition(count, *map(quoted, spec.key)), spec, splits.storage)
    results = run_on_spark(task, in_buckets(newest, spec, count))
    if missed := sorted(base.keys() - {*Written.of(results).buckets}):  # the log has no row of theirs
        tasks = min(len(missed), parallelism(spark))
        results += run_on_spark(task, arrow_frame(spark, naming(missed)).repartition(tasks))
    return [*Written.of(results).rows]


@dataclass(frozen=True)
class _BucketTask:
    """Writes the buckets that its pages name, and tells which these are."""

    write: RewriteTask
    meeting: BucketMeeting

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        rows, done = self.meeting.rows(pages), list[int]()
        written = self.write(order, self._merged(rows, done)) if len(rows) else []
        return Written(done, written).results()

    def _merged(self, rows: pa.Table, done: list[int]) -> Iterator[pa.RecordBatch]:
        """The rows of each bucket in order of the key, and then its tombstones."""
        for bucket, met in self.meeting.met(rows):
            live = self.meeting.live(met.winners)
            if met.file is None:
                yield from live.to_batches()
            else:
                yield from self._interleaved(bucket, met.file, met, live)
            yield from self.meeting.tombstones(met.winners).to_batches()
            done.append(bucket)

    def _interleaved(self, bucket: int, file: DataFile, met: Met, live: pa.Table) -> Iterator[pa.RecordBatch]:
        """A base file's rows that stay, with the log's in their places."""
        stays = np.ones(file.rows, bool)
        stays[met.lost] = False
        if file.deletes:
            stays[file.deletes.positions().to_numpy()] = False
        places = places_among(met.base, live, self.meeting.spec.key)
        first, taken = 0, 0
        for page in stored_pages(file.path, self.meeting.storage):
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
        return pa.Table.from_arrays([*page.columns, *further], schema=self.meeting.schema)
