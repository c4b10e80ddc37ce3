"""Compactions in this process, for a Spark that runs within it: no job, and no row through the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.executes import NotLocal
from trinity.engine.reading.files import tiers
from trinity.engine.reading.plan import FoldPlan, why_not_by_position
from trinity.engine.reading.row_arrival import RowArrival
from trinity.engine.reading.search import Search, SearchedFile
from trinity.engine.reading.spark_hash import in_bucket_order
from trinity.engine.writing.spark.run_sinks import Task
from trinity.hidden import BUCKET, DELETED, SINCE
from trinity.limits import Limit
from trinity.spark.remote import runs_in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_LOCAL_BYTES: Final = Limit(128 * 1024 * 1024)
"""Most bytes of files whose rows the driver folds without a Spark job."""


def log_winners_in_process(spark: SparkSession, fold: FoldPlan) -> pa.Table | NotLocal:
    """Return the winners of the log, with ``DELETED`` and ``SINCE``, or why a Spark job has to find them."""
    if not runs_in_process(spark):
        return NotLocal("Spark has executors of its own")
    splits = fold.splits
    files = [*splits.sidecar, *fold.runs, *splits.in_arrival_order(fold.log)]
    if not files:
        return NotLocal("it has no log")
    if sum(f.size for f in files) > MOST_LOCAL_BYTES.value:
        return NotLocal(f"its log has more than {MOST_LOCAL_BYTES.value:,} bytes")
    if (why := why_not_by_position(splits, fold.spec, *tiers(splits.files))) is not None:
        return why
    storage = splits.storage.append(pa.field(SINCE, pa.int64()))
    searched = tuple(SearchedFile.of(number, file) for number, file in enumerate(files, 1))
    arrival = RowArrival.of(splits, fold.spec)
    try:
        winners = Search(fold.spec, storage, (), searched, {}, arrival=arrival).folded(0).winners
    except pa.ArrowException:
        return NotLocal("its log has texts of more than two gigabytes")
    return winners.select([*splits.storage.names, DELETED, SINCE])


def by_bucket(winners: pa.Table, key: Sequence[str], count: int) -> dict[int, pa.Table]:
    """Return number of a bucket -> its winners, with :data:`BUCKET`; buckets without winners are absent."""
    order, edges = in_bucket_order(winners, key, count)
    sizes = np.diff(edges)
    rows = winners.take(order).append_column(BUCKET, as_arrow(np.repeat(np.arange(count, dtype=np.int32), sizes)))
    return {int(bucket): rows.slice(edges[bucket], sizes[bucket]) for bucket in np.flatnonzero(sizes)}


def run_in_threads(task: Task, rows: Mapping[int, pa.Table], threads: int) -> Iterable[bytes]:
    """Run a task in threads, on rows by their order in the commit, and return its results. Raises what it raises."""
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda order: task(order, rows[order].to_batches()), rows))
    return [fragment for fragments in found for fragment in fragments]
