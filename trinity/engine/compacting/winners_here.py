"""The log's winners found by this process, where it is all that there is of Spark: no job, no row through the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from trinity.engine.appending.run_sinks import BUCKET, DELETED, Task
from trinity.engine.reading.by_place import may_go_by_place
from trinity.engine.reading.scan import tiers
from trinity.engine.reading.spark_hash import in_bucket_order
from trinity.engine.reading.superseded import Search, Stored
from trinity.engine.spark.remote import is_alone
from trinity.merge.fold import SINCE
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, SplitSource, arrival_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["parted", "run_here", "winners_here"]

_MOST_BYTES: Final = 128 * 1024 * 1024
"""Bytes of files whose rows the process holds."""


def winners_here(
    spark: SparkSession, splits: SplitSource, spec: MergeSpec, runs: Sequence[DataFile]
) -> pa.Table | None:
    """The winning row versions of sidecar, runs and log, in storage form with :data:`DELETED` and :data:`SINCE`.

    Args:
        spark: the session.
        splits: the version.
        spec: its options.
        runs: base files that are folded with the log.

    Returns:
        them; None where they are left to Spark.

    Raises:
        TrinityError: BAD_DATA naming a file that is missing or corrupt.
    """
    base, log = tiers(splits.files)
    files = [*splits.sidecar, *runs, *sorted(log, key=arrival_order)]
    few = sum(f.size for f in files) <= _MOST_BYTES
    if not (files and few and is_alone(spark) and may_go_by_place(splits, spec, base, log, least=0)):
        return None
    storage = splits.storage.append(pa.field(SINCE, pa.int64()))
    stored = tuple(Stored(number, f.path, f.rows, f.deletes) for number, f in enumerate(files, 1))
    try:
        winners = Search(spec, storage, (), stored, {}).folded(0).winners
    except pa.ArrowException:  # texts of more than two gigabytes
        return None
    return winners.select([*splits.storage.names, DELETED, SINCE])


def parted(winners: pa.Table, key: Sequence[str], count: int) -> dict[int, pa.Table]:
    """The winners of each of so many buckets that has some, with :data:`BUCKET`."""
    order, edges = in_bucket_order(winners, key, count)
    sizes = np.diff(edges)
    rows = winners.take(order).append_column(BUCKET, pa.array(np.repeat(np.arange(count, dtype=np.int32), sizes)))
    return {int(bucket): rows.slice(edges[bucket], sizes[bucket]) for bucket in np.flatnonzero(sizes)}


def run_here(task: Task, rows: Mapping[int, pa.Table], threads: int) -> Iterable[bytes]:
    """The task's results for rows by their order in the commit, in threads. Raises what the task raises."""
    with ThreadPoolExecutor(threads) as pool:
        for found in pool.map(lambda order: task(order, rows[order].to_batches()), rows):
            yield from found
