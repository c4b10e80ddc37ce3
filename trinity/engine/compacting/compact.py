"""Compaction: replaces files by fewer files that mean the same (K6, L3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trinity.engine.compacting.bucket_merge import in_buckets
from trinity.engine.compacting.bucket_rewrite import is_rewritten_in_buckets, rewritten_in_buckets
from trinity.engine.compacting.levels import LEVELLED_SHARE, newest_runs
from trinity.engine.compacting.partitions import grouped_scan
from trinity.engine.compacting.resolve import resolve
from trinity.engine.compacting.rewriting import distributed, highest_commit, sidecar_schema, with_tombstones
from trinity.engine.compacting.sizes import FILE_BYTES, crowded
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.reading.layout import bucket_types, tiers, well_bucketed
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.scan import log_scan, plain_scan
from trinity.engine.spark.settings import pinned
from trinity.engine.writing.run_sinks import RewriteTask, run_on_spark, sidecar_target
from trinity.errors import TrinityError
from trinity.hidden import ARRIVAL, DELETED
from trinity.merge.options import keeps_versions
from trinity.merge.parse import merge_spec
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.fold import is_deleted, winners
from trinity.merge.strength import Strength
from trinity.spark_names import DataFrame, F
from trinity.spi import (
    Bucket,
    ColumnStats,
    CommitResult,
    Connector,
    DataFile,
    RewriteTableHandle,
    SplitSource,
    TableHandle,
    Tier,
)
from trinity.storage import OWN_ENDING, is_sink_file
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]

_BUCKET_BYTES: Final = 64 * 1024 * 1024
_FULL_SHARE: Final = 0.3
"""A log of at least this share of the base is folded into it; a smaller one is folded by itself."""
_UNKNOWN: Final = ColumnStats()


def compact(
    spark: SparkSession,
    connector: Connector,
    table: TableHandle,
    splits: SplitSource,
    strength: Strength,
    every: int | None = None,
) -> CommitResult:
    """Compact the pinned version; commits that come meanwhile stay in the log.

    Args:
        spark: the session.
        connector: the table's connector.
        table: the table.
        splits: the version to fold.
        strength: how much is folded; of a table that has no log to resolve, a resolve folds as a minor one does.
        every: commits from which a minor one folds the newest part of the log, by levels; None to fold all of it.
    """
    table = table.pinned(splits.version, splits.definition.id)
    from trinity.calls.spark import spark_errors

    with pinned(spark), reporting_dropped_table(connector, table), spark_errors():
        return _compact(spark, connector, table, splits, strength, every)


def _compact(
    spark: SparkSession,
    connector: Connector,
    table: TableHandle,
    splits: SplitSource,
    strength: Strength,
    every: int | None,
) -> CommitResult:
    base, log = tiers(splits.files)
    full = strength is Strength.FULL
    if splits.definition.external:
        if strength is Strength.RESOLVE:
            raise TrinityError(
                "NOT_SUPPORTED", f"Table '{table.full_name}' is external, and not resolved; use compact(full=True)."
            )
        return _winners_only(spark, connector, table, splits)
    if not splits.definition.keyed:
        plain = _concatenate_partitions if splits.definition.partition_by else _concatenate
        return plain(spark, connector, table, splits, purges=full)
    if keeps_versions(splits.definition.properties):
        return CommitResult(splits.version, skipped=True)
    spec = merge_spec(splits.definition)
    if strength is Strength.RESOLVE:
        return resolve(spark, connector, table, splits, spec) or _full(spark, connector, table, splits, spec)
    if not log and not (full and _is_worth_it(splits, spec)):
        return CommitResult(splits.version, skipped=True)
    runs, share = (log, _FULL_SHARE) if every is None else (newest_runs(splits.files, every), LEVELLED_SHARE)
    if full or (len(runs) == len(log) and sum(f.rows for f in log) >= share * sum(f.rows for f in base)):
        return _full(spark, connector, table, splits, spec)
    if len(runs) < 2:
        return CommitResult(splits.version, skipped=True)
    return _fold_log(spark, connector, table, splits, spec, runs)


def _is_worth_it(splits: SplitSource, spec: MergeSpec) -> bool:
    """Return True where a full compaction changes the files of a table without a log.

    Older releases gave the sidecar names by which other readers of a table's folder take it for rows.
    """
    old = any(is_sink_file(file.name) and not file.name.endswith(OWN_ENDING) for file in splits.sidecar)
    return bool(splits.files) and (old or not _is_compact(splits, spec))


def _is_compact(splits: SplitSource, spec: MergeSpec) -> bool:
    if any(f.deletes for f in splits.files):
        return False
    if splits.definition.partition_by:
        return True
    buckets = well_bucketed(splits.files, splits.definition)
    return buckets is not None and spec.buckets in (None, buckets)


def _full(
    spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource, spec: MergeSpec
) -> CommitResult:
    """Fold base, log and sidecar into a new base and a new sidecar, in one pass.

    A partitioned table's base has files by partition instead of buckets, and is read as a base without buckets.
    """
    partitioned = bool(splits.definition.partition_by)
    buckets = None if partitioned else spec.buckets or _buckets_for(sum(f.size for f in splits.files))
    rewrite = connector.metadata.begin_rewrite(table, splits.files)
    storage = rewrite.target.storage
    storage = by_column.sidecar_schema(storage) if spec.by_column else sidecar_schema(storage, spec)
    aside = sidecar_target(rewrite.target, f"{table.location}/_trinity", storage)
    task = RewriteTask(
        connector.sinks,
        rewrite.target,
        Tier.BASE,
        highest_commit(splits.files),
        Bucket(0, buckets, bucket_types(splits.definition)) if buckets else None,
        aside if by_column.needs_sidecar(spec) or spec.keeps_tombstones else None,
    )

    def run(rows: DataFrame, in_log: bool = False) -> list[bytes]:
        rows = distributed(rows, splits, spec, splits.files, buckets)
        if buckets:
            rows = in_buckets(rows, spec, buckets)
        return run_on_spark(replace(task, in_log=in_log), rows)

    fold = FoldPlan.of(splits, spec)
    if buckets and is_rewritten_in_buckets(fold, buckets):
        fragments = rewritten_in_buckets(spark, fold, task)
    elif spec.by_column:
        fragments = by_column.rewritten(by_column.versions(spark, splits, spec), splits, spec, run)
    else:
        fragments = run(with_tombstones(SparkExecutor(spark).winners(fold), spec))
    return connector.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def _fold_log(
    spark: SparkSession,
    connector: Connector,
    table: TableHandle,
    splits: SplitSource,
    spec: MergeSpec,
    log: Sequence[DataFile],
) -> CommitResult:
    """Fold adjacent commits of the log into one sorted run of winners, tombstones among them; base and sidecar stay.

    Of an engine that folds by column all versions stay, in fewer files.
    """
    rewrite = connector.metadata.begin_rewrite(table, log)
    versions = log_scan(spark, splits, spec, log, stamps=True)
    if not spec.by_column:
        versions = winners(versions, spec)
    stored = [quoted(f.name) for f in splits.storage]
    rows = versions.selectExpr(*stored, f"{is_deleted(spec, versions)} AS {DELETED}", ARRIVAL)
    partitioned = bool(splits.definition.partition_by)
    runs = None if partitioned else math.ceil(sum(f.size for f in log) / FILE_BYTES)
    rows = distributed(rows, splits, spec, log, runs)
    return _to_log(connector, rewrite, rows)


def _winners_only(spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource) -> CommitResult:
    """Fold the files of a table of others into as few, with the winning version of each key, deleted ones included.

    There is no sidecar to put those in. Rows without a key are no versions of anything, and stay (K1).
    """
    spec = _foldable(table, splits)
    if not splits.files:
        return CommitResult(splits.version, skipped=True)
    rewrite = connector.metadata.begin_rewrite(table, splits.files)
    versions = log_scan(spark, splits, spec, splits.files)
    rows = winners(without_null_keys(versions, splits, spec), spec)
    if nullable := [k for k in spec.key if any(f.stats.get(k, _UNKNOWN).nulls != 0 for f in splits.files)]:
        rows = rows.unionByName(versions.where(" OR ".join(f"{quoted(k)} IS NULL" for k in nullable)))
    rows = rows.withColumn(DELETED, F.lit(False))
    partitioned = bool(splits.definition.partition_by)
    tasks = None if partitioned else max(1, math.ceil(sum(f.size for f in splits.files) / FILE_BYTES))
    rows = distributed(rows, splits, spec, splits.files, tasks)
    names = zip(splits.storage.names, rewrite.target.storage.names, strict=True)  # the latter under column mapping
    rows = rows.selectExpr(*[f"{quoted(name)} AS {quoted(stored)}" for name, stored in names], DELETED)
    return _to_log(connector, rewrite, rows)


def _foldable(table: TableHandle, splits: SplitSource) -> MergeSpec:
    """Return the merge options of a table of others. Raises NOT_SUPPORTED where all row versions have to stay."""
    definition = splits.definition
    spec = merge_spec(definition) if definition.keyed else None
    if spec and not spec.by_column and not keeps_versions(definition.properties):
        return spec
    why = "has no key" if spec is None else f"keeps all row versions (merge-engine={spec.engine.value})"
    raise TrinityError(
        "NOT_SUPPORTED",
        f"Table '{table.full_name}' is external and {why}: there is nothing that a compaction could leave out. To have "
        "fewer files, use the engine that made it (OPTIMIZE, rewrite_data_files).",
    )


def _to_log(connector: Connector, rewrite: RewriteTableHandle, rows: DataFrame) -> CommitResult:
    """Replace files by log files of some rows; base and sidecar stay."""
    task = RewriteTask(connector.sinks, rewrite.target, Tier.LOG, highest_commit(rewrite.replaced))
    return connector.metadata.finish_rewrite(rewrite, run_on_spark(task, rows), replace_sidecar=False)


def _concatenate(
    spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource, *, purges: bool
) -> CommitResult:
    """Rewrite a plain table's files as fewer of a good size, in arrival order; or also to purge deleted rows."""
    size = sum(f.size for f in splits.files)
    wanted = max(1, math.ceil(size / FILE_BYTES))
    if len(splits.files) <= wanted and not (purges and any(f.deletes for f in splits.files)):
        return CommitResult(splits.version, skipped=True)
    rewrite = connector.metadata.begin_rewrite(table, splits.files)
    rows = plain_scan(spark, splits.files, splits.storage).withColumn(DELETED, F.lit(False)).coalesce(wanted)
    return _to_log(connector, rewrite, rows)


def _concatenate_partitions(
    spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource, *, purges: bool
) -> CommitResult:
    """Rewrite the files of each partition that has too many as fewer; if told to, also files with deleted rows."""
    groups = crowded(splits.files, FILE_BYTES)
    known = {f.path for group in groups for f in group}
    groups += [[f] for f in splits.files if purges and f.deletes and f.path not in known]
    if not groups:
        return CommitResult(splits.version, skipped=True)
    replaced = tuple(f for group in groups for f in group)
    rewrite = connector.metadata.begin_rewrite(table, replaced)
    rows = grouped_scan(spark, groups, splits).withColumn(DELETED, F.lit(False))
    return _to_log(connector, rewrite, rows)


def _buckets_for(size: int) -> int:
    """Return a power of two, so that a table that grows splits its buckets and does not shuffle them."""
    return min(1024, 1 << max(0, math.ceil(math.log2(max(1.0, size / _BUCKET_BYTES)))))
