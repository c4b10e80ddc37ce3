"""Rows of compactions by Spark: their distribution to tasks, by key or by partition, and tombstones of the sidecar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.compacting.sizes import by_partition_values
from trinity.engine.reading.spark.scan import plain_scan
from trinity.hidden import ARRIVAL, BUCKET, DELETED, FILE, FILE_NUMBER, SINCE
from trinity.limits import Limit
from trinity.merge.sidecar import Retention
from trinity.merge.spec import MergeSpec
from trinity.spark_names import DataFrame, F
from trinity.spi import DataFile, SplitSource, TableDefinition
from trinity.storage.merge_sinks import FILE_BYTES
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def distributed(
    rows: DataFrame, splits: SplitSource, spec: MergeSpec, files: Sequence[DataFile], tasks: int | None
) -> DataFrame:
    """Return the rows sorted by key, distributed to tasks by the key's hash; by partition where ``tasks`` is None."""
    ties = [ARRIVAL] if ARRIVAL in rows.columns else []
    if tasks is None:
        rows, order = _by_partition(rows, splits.definition, spec, files)
        return rows.sortWithinPartitions(*order, *ties)
    key = [quoted(k) for k in spec.key]
    return rows.repartition(tasks, *key).sortWithinPartitions(*key, *ties)


def in_buckets(rows: DataFrame, spec: MergeSpec, count: int) -> DataFrame:
    """Add :data:`BUCKET`, by the hash of the key, to rows. After a window by key a bucket's rows are in one task."""
    key = ", ".join(map(quoted, spec.key))
    return rows.selectExpr("*", f"CAST(pmod(hash({key}), {count}) AS INT) AS {BUCKET}")


def with_tombstones(winners: DataFrame, retention: Retention) -> DataFrame:
    """Return winners; tombstones get the time since when they are in the sidecar, and expired ones are dropped."""
    rows = winners.where(f"NOT {DELETED} OR {retention.keeps_sql}")
    return rows.withColumn(SINCE, F.expr(retention.since_sql))


TASK_BYTES: Final = Limit(64 * 1024 * 1024)
_MOST_TASKS: Final = 1024


def _by_partition(
    rows: DataFrame, definition: TableDefinition, spec: MergeSpec, files: Sequence[DataFile]
) -> tuple[DataFrame, Sequence[str]]:
    """Return the rows of a keyed table, each partition in one task, and the columns to sort by: partition and key.

    If a partition is too large for one file, the table is split into ranges of partition and key instead; so is a table
    partitioned by transforms, since those of dates, numbers and texts keep the order of their column.
    """
    columns = [quoted(c) for c in definition.partition_columns]
    order = list(dict.fromkeys((*columns, *map(quoted, spec.key))))
    sizes = [sum(f.size for f in found) for found in by_partition_values(files).values()]
    tasks = min(_MOST_TASKS, max(1, math.ceil(sum(sizes) / TASK_BYTES.value)))
    if spec.buckets:
        part = F.expr(f"pmod(hash({', '.join(map(quoted, spec.key))}), {spec.buckets})")
        rows = rows.repartition(min(_MOST_TASKS, len(sizes) * spec.buckets), *columns, part)
    elif all(f.identity for f in definition.partition_fields) and max(sizes, default=0) <= 2 * FILE_BYTES.value:
        rows = rows.repartition(min(tasks, len(sizes)), *columns)
    else:
        rows = rows.repartitionByRange(tasks, *order)
    return rows, order


def grouped_scan(spark: SparkSession, groups: Sequence[Sequence[DataFile]], splits: SplitSource) -> DataFrame:
    """Return the rows of groups of files in storage form, each group in one task."""
    files = [f for group in groups for f in group]
    lines = ",".join(f"({text_literal(f.name)},{number})" for number, group in enumerate(groups) for f in group)
    numbers = spark.sql(f"SELECT col1 AS {FILE}, col2 AS {FILE_NUMBER} FROM VALUES {lines}")
    rows = plain_scan(spark, files, splits.storage)
    found = rows.selectExpr("*", f"_metadata.file_name AS {FILE}").join(F.broadcast(numbers), FILE)
    tasks = max(1, math.ceil(sum(f.size for f in files) / TASK_BYTES.value))
    return found.repartition(min(tasks, len(groups)), FILE_NUMBER).select(*map(quoted, rows.columns))
