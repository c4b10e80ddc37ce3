"""Rewrites the rows of a compaction by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trinity.engine.compacting.bucket_merge import in_buckets
from trinity.engine.compacting.compactor import Resolve
from trinity.engine.compacting.partitions import grouped_scan
from trinity.engine.compacting.spark.bucket_rewrite import rewritten_in_buckets
from trinity.engine.compacting.spark.resolve import write_resolve
from trinity.engine.compacting.spark.rows import distributed, with_tombstones
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.scan import log_scan, plain_scan
from trinity.engine.writing.run_sinks import RewriteTask, run_on_spark
from trinity.hidden import ARRIVAL, DELETED
from trinity.merge.sql.fold import is_deleted, winners
from trinity.spark_names import DataFrame, F
from trinity.spi import ColumnStats, DataFile, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkCompactor"]

_UNKNOWN: Final = ColumnStats()


@dataclass(frozen=True)
class SparkCompactor:
    """See :class:`~trinity.engine.compacting.compactor.Compactor`."""

    spark: SparkSession

    def fold(self, fold: FoldPlan, write: RewriteTask, buckets: int | None) -> list[bytes]:
        splits, spec = fold.splits, fold.spec

        def run(rows: DataFrame, in_log: bool = False) -> list[bytes]:
            rows = distributed(rows, splits, spec, splits.files, buckets)
            if buckets:
                rows = in_buckets(rows, spec, buckets)
            return run_on_spark(replace(write, in_log=in_log), rows)

        if buckets and fold.in_buckets_by_arrow(buckets):
            return rewritten_in_buckets(self.spark, fold, write)
        if spec.by_column:
            return by_column.rewritten(by_column.versions(self.spark, splits, spec), splits, spec, run)
        return run(with_tombstones(SparkExecutor(self.spark).winners(fold), spec))

    def fold_log(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes]:
        splits, spec, log = fold.splits, fold.spec, fold.log
        versions = log_scan(self.spark, splits, spec, log, stamps=True)
        if not spec.by_column:
            versions = winners(versions, spec)
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
        rows = winners(without_null_keys(versions, splits, spec), spec)
        if nullable := [k for k in spec.key if any(f.stats.get(k, _UNKNOWN).nulls != 0 for f in splits.files)]:
            rows = rows.unionByName(versions.where(" OR ".join(f"{quoted(k)} IS NULL" for k in nullable)))
        rows = distributed(rows.withColumn(DELETED, F.lit(False)), splits, spec, splits.files, count)
        names = zip(splits.storage.names, write.target.storage.names, strict=True)  # the latter under column mapping
        rows = rows.selectExpr(*[f"{quoted(name)} AS {quoted(stored)}" for name, stored in names], DELETED)
        return run_on_spark(write, rows)

    def resolve(self, resolve: Resolve) -> tuple[list[bytes], list[bytes]]:
        return write_resolve(self.spark, resolve)
