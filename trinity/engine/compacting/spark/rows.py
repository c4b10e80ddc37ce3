"""Rows that several of Spark's compactions need: how they are laid out, and what goes into the sidecar."""

from __future__ import annotations

import time
from collections.abc import Sequence

from trinity.engine.compacting.partitions import by_partition
from trinity.engine.compacting.sizes import FILE_BYTES
from trinity.hidden import ARRIVAL, DELETED, SINCE
from trinity.merge.spec import MergeSpec
from trinity.spark_names import DataFrame, F
from trinity.spi import DataFile, SplitSource
from trinity.syntax.quoting import quoted

__all__ = ["distributed", "with_tombstones"]


def distributed(
    rows: DataFrame, splits: SplitSource, spec: MergeSpec, files: Sequence[DataFile], tasks: int | None
) -> DataFrame:
    """Return the rows sorted by key, distributed to tasks by the key's hash; by partition where ``tasks`` is None."""
    if tasks is None:
        return by_partition(rows, splits.definition, spec, files, FILE_BYTES)
    key = [quoted(k) for k in spec.key]
    ties = [ARRIVAL] if ARRIVAL in rows.columns else []
    return rows.repartition(tasks, *key).sortWithinPartitions(*key, *ties)


def with_tombstones(winners: DataFrame, spec: MergeSpec) -> DataFrame:
    """Return winning versions, tombstones with the time since when they are in the sidecar, unless it is over.

    Without a watermark every later row wins: nothing has to be remembered, unless the table asks for it.
    """
    now = int(time.time() * 1000)
    rows = winners.withColumn(SINCE, F.coalesce(SINCE, F.lit(now)))
    if spec.tombstone_retention_ms is not None:  # its age counts from the compaction that moved it to the sidecar
        rows = rows.where(~F.col(DELETED) | (F.col(SINCE) >= now - spec.tombstone_retention_ms))
    return rows
