"""Full compaction of a base in buckets: Spark folds the log alone, and each task reads its base file itself.

So base rows become no rows of Spark's: what loses is left out, what wins is put in its place, all in Arrow.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.appending.run_sinks import BUCKET, DELETED, RewriteTask, in_storage_form, run_on_spark
from trinity.engine.reading.arrow_fold import columns_to_meet, met, narrow_rows
from trinity.engine.reading.arrow_keys import Keys, compared_alike, places_among
from trinity.engine.reading.merged_read import newest_versions, with_key
from trinity.engine.reading.scan import layers, log_scan, tiers, well_bucketed
from trinity.engine.spark.remote import parallelism
from trinity.engine.spark.types import arrow_frame
from trinity.merge.fold import SINCE
from trinity.merge.quoting import quoted
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, Origin, SplitSource
from trinity.storage import stored_pages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["base_by_bucket", "rewritten_in_buckets"]

_FRAGMENT: Final = b"f"
_DONE: Final = b"b"
_BUCKET_OF: Final = struct.Struct("<i")


def base_by_bucket(splits: SplitSource, spec: MergeSpec, buckets: int | None) -> dict[int, DataFile] | None:
    """The base file of each of so many buckets that has one; None for a version that is not compacted bucket by bucket.

    Base files of others may be sorted in other ways, and keys of some types Arrow compares otherwise than Spark.
    """
    if buckets is None or spec.by_column or splits.native is not None:
        return None
    inside, _ = layers(tiers(splits.files)[0], splits.definition)
    if well_bucketed(inside, splits.definition) != buckets or any(f.origin is not Origin.OWN for f in inside):
        return None
    if not compared_alike(splits.definition, (*spec.key, *spec.ordering)):
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
        write: writes rows with :data:`BUCKET`, :data:`DELETED` and :data:`SINCE` into the buckets.
    """
    assert write.buckets is not None
    count = write.buckets.count
    stands, log = tiers(splits.files)
    runs = [f for f in stands if f.path not in {b.path for b in base.values()}]
    versions = with_key(log_scan(spark, splits, spec, log, splits.sidecar, runs=runs), splits, spec)
    newest = newest_versions(versions.repartition(count, *map(quoted, spec.key)), spec, splits.storage)
    task = _BucketTask(write, spec, splits.storage, base)
    found, done = _sorted_out(run_on_spark(task, _in_buckets(newest, spec, count)))
    if missed := sorted(base.keys() - done):  # the log has no row of theirs
        found += _sorted_out(run_on_spark(task, _no_rows_of(spark, missed)))[0]
    return found


def _in_buckets(rows: DataFrame, spec: MergeSpec, count: int) -> DataFrame:
    key = ", ".join(map(quoted, spec.key))
    return rows.selectExpr("*", f"CAST(pmod(hash({key}), {count}) AS INT) AS {BUCKET}")


def _no_rows_of(spark: SparkSession, buckets: list[int]) -> DataFrame:
    """A row for each bucket that says nothing else: its :data:`DELETED` is NULL."""
    numbers = pa.table({BUCKET: pa.array(buckets, pa.int32())})
    return arrow_frame(spark, numbers).repartition(min(len(buckets), parallelism(spark)))


@dataclass(frozen=True)
class _BucketTask:
    """Writes the buckets that its pages have rows of, and tells which these are.

    Attributes:
        write: writes the rows.
        spec: the table's options.
        storage: columns of base and log.
        base: bucket -> its base file.
        now_ms: the time since when new tombstones are aside, milliseconds since the epoch.
    """

    write: RewriteTask
    spec: MergeSpec
    storage: pa.Schema
    base: Mapping[int, DataFile]
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        schema = self._schema
        rows = pa.Table.from_batches([in_storage_form(page, schema) for page in pages], schema)
        done = sorted(rows.column(BUCKET).unique().to_pylist())
        written = self.write(order, self._merged(rows, done)) if done else []
        return [*(_DONE + _BUCKET_OF.pack(bucket) for bucket in done), *(_FRAGMENT + f for f in written)]

    @property
    def _schema(self) -> pa.Schema:
        further = pa.schema([(DELETED, pa.bool_()), (SINCE, pa.int64()), (BUCKET, pa.int32())])
        return pa.schema([*self.storage, *further])

    def _merged(self, rows: pa.Table, buckets: Iterable[int]) -> Iterator[pa.RecordBatch]:
        for bucket in buckets:
            mine = pc.and_(pc.equal(rows.column(BUCKET), bucket), pc.is_valid(rows.column(DELETED)))
            yield from self._bucket(bucket, rows.filter(mine).combine_chunks())

    def _bucket(self, bucket: int, winners: pa.Table) -> Iterator[pa.RecordBatch]:
        """The bucket's rows in order of the key, and then its tombstones."""
        file = self.base.get(bucket)
        narrow = narrow_rows(file.path, self.storage, columns_to_meet(self.spec)) if file else None
        if file and narrow is not None:
            keys, numbers = Keys.of(winners, self.spec.key)
            lost, beaten = met(self.spec, narrow, keys, winners.take(np.argsort(numbers)), file.deletes)
            winners = winners.filter(np.isin(numbers, beaten, invert=True))
        live = winners.filter(pc.invert(winners.column(DELETED)))
        live = live.take(pc.sort_indices(live, sort_keys=[(name, "ascending") for name in self.spec.key]))
        if file and narrow is not None:
            places = places_among(narrow, live, self.spec.key)
            yield from self._interleaved(bucket, file, lost, live, places)
        else:
            yield from live.to_batches()
        yield from self._remembered(winners.filter(winners.column(DELETED))).to_batches()

    def _interleaved(
        self, bucket: int, file: DataFile, lost: np.ndarray, live: pa.Table, places: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """A base file's rows that stay, with others before those at their places."""
        stays = np.ones(file.rows, bool)
        stays[lost] = False
        if file.deletes:
            stays[file.deletes.positions().to_numpy()] = False
        first, taken = 0, 0
        for page in stored_pages(file.path, self.storage):
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
        return pa.Table.from_arrays([*page.columns, *further], schema=self._schema)

    def _remembered(self, tombstones: pa.Table) -> pa.Table:
        """As :func:`trinity.engine.compacting.rewriting.with_tombstones`."""
        since = pc.fill_null(tombstones.column(SINCE), self.now_ms)
        tombstones = tombstones.set_column(tombstones.schema.get_field_index(SINCE), SINCE, since)
        if self.spec.tombstone_retention_ms is None:
            return tombstones
        return tombstones.filter(pc.greater_equal(since, self.now_ms - self.spec.tombstone_retention_ms))


def _sorted_out(results: Iterable[bytes]) -> tuple[list[bytes], set[int]]:
    """(fragments, buckets that are done)."""
    results = list(results)
    done = {_BUCKET_OF.unpack(r[1:])[0] for r in results if r.startswith(_DONE)}
    return [r[1:] for r in results if r.startswith(_FRAGMENT)], done
