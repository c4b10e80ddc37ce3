"""The compactor by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trinity.engine.compacting.bucket_merge import BucketMerge, BucketTask, Written, bucket_markers
from trinity.engine.compacting.compactor import Resolve
from trinity.engine.compacting.rewrite_task import RewriteTask
from trinity.engine.compacting.spark.by_column import rewritten
from trinity.engine.compacting.spark.driver_merge import by_bucket, log_winners_in_process, run_in_threads
from trinity.engine.compacting.spark.resolve import write_resolve
from trinity.engine.compacting.spark.rows import distributed, grouped_scan, in_buckets, with_tombstones
from trinity.engine.executes import NotLocal
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.fold_by_column import versions as versions_by_column
from trinity.engine.reading.spark.scan import log_scan, plain_scan
from trinity.engine.writing.spark.run_sinks import run_on_spark
from trinity.hidden import ARRIVAL, DELETED
from trinity.merge.sidecar import Retention
from trinity.merge.sql.fold import is_deleted, winners
from trinity.spark.remote import parallelism
from trinity.spark.types import arrow_frame
from trinity.spark_names import DataFrame, F
from trinity.spi import ColumnStats, DataFile, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNKNOWN: Final = ColumnStats()


@dataclass(frozen=True)
class SparkCompactor:
    """The :class:`~trinity.engine.compacting.compactor.Compactor` that runs Spark jobs."""

    spark: SparkSession

    def fold(self, fold: FoldPlan, write: RewriteTask, buckets: int | None, retention: Retention) -> list[bytes]:
        splits, spec = fold.splits, fold.spec

        def run(rows: DataFrame, in_log: bool = False) -> list[bytes]:
            rows = distributed(rows, splits, spec, splits.files, buckets)
            if buckets:
                rows = in_buckets(rows, spec, buckets)
            return run_on_spark(replace(write, in_log=in_log), rows)

        if buckets and fold.in_buckets_by_arrow(buckets):
            return _rewritten_in_buckets(self.spark, fold, write, retention)
        if spec.by_column:
            return rewritten(versions_by_column(self.spark, splits, spec), splits, spec, run, retention)
        return run(with_tombstones(SparkExecutor(self.spark).winners(fold), retention))

    def fold_log(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes]:
        splits, spec, log = fold.splits, fold.spec, fold.log
        versions = log_scan(self.spark, splits, spec, log, stamps=True)
        if not spec.by_column:
            versions = winners(spec, versions)
        stored = [quoted(f.name) for f in splits.storage]
        rows = versions.selectExpr(*stored, f"{is_deleted(spec, versions)} AS {DELETED}", ARRIVAL)
        return run_on_spark(write, distributed(rows, splits, spec, log, count))

    def concatenate(self, splits: SplitSource, groups: Sequence[Sequence[DataFile]], write: RewriteTask) -> list[bytes]:
        if splits.definition.partition_by:
            rows = grouped_scan(self.spark, groups, splits)
        else:
            files = [file for group in groups for file in group]
            rows = plain_scan(self.spark, files, splits.storage).coalesce(len(groups))
        return run_on_spark(write, rows.withColumn(DELETED, F.lit(False)))

    def winners_of_others(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes]:
        splits, spec = fold.splits, fold.spec
        versions = log_scan(self.spark, splits, spec, splits.files)
        rows = winners(spec, without_null_keys(versions, splits, spec))
        if nullable := [k for k in spec.key if any(f.stats.get(k, _UNKNOWN).nulls != 0 for f in splits.files)]:
            rows = rows.unionByName(versions.where(" OR ".join(f"{quoted(k)} IS NULL" for k in nullable)))
        rows = distributed(rows.withColumn(DELETED, F.lit(False)), splits, spec, splits.files, count)
        names = zip(splits.storage.names, write.target.storage.names, strict=True)  # they differ under column mapping
        rows = rows.selectExpr(*[f"{quoted(name)} AS {quoted(stored)}" for name, stored in names], DELETED)
        return run_on_spark(write, rows)

    def resolve(self, work: Resolve) -> tuple[list[bytes], list[bytes]]:
        return write_resolve(self.spark, work)


def _rewritten_in_buckets(spark: SparkSession, fold: FoldPlan, write: RewriteTask, retention: Retention) -> list[bytes]:
    """Rewrite base, log and sidecar, bucket by bucket, and return the fragments.

    Each task merges the log's winners with the base files of its buckets in Arrow.
    """
    assert fold.buckets is not None
    spec, count = fold.spec, fold.buckets
    base = {f.bucket.index: f for f in fold.base if f.bucket}
    task = BucketTask(write, BucketMerge(spec, fold.splits.storage, base, retention))
    winners = log_winners_in_process(spark, fold)
    if not isinstance(winners, NotLocal):
        rows = {**{bucket: bucket_markers([bucket]) for bucket in base}, **by_bucket(winners, spec.key, count)}
        return [*Written.of(run_in_threads(task, rows, parallelism(spark))).rows]
    results = run_on_spark(task, in_buckets(SparkExecutor(spark).log_winners(fold), spec, count))
    if missed := sorted(base.keys() - {*Written.of(results).buckets}):  # the log has no row in these buckets
        tasks = min(len(missed), parallelism(spark))
        results += run_on_spark(task, arrow_frame(spark, bucket_markers(missed)).repartition(tasks))
    return [*Written.of(results).rows]
