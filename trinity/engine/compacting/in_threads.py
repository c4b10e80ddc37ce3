"""Tasks of a compaction that run in threads of this process, bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from trinity.engine.appending.run_sinks import Task
from trinity.engine.reading.spark_hash import in_bucket_order
from trinity.hidden import BUCKET

__all__ = ["by_bucket", "run_in_threads"]


def by_bucket(winners: pa.Table, key: Sequence[str], count: int) -> dict[int, pa.Table]:
    """Return the winners of each of so many buckets that has some, with :data:`BUCKET`."""
    order, edges = in_bucket_order(winners, key, count)
    sizes = np.diff(edges)
    rows = winners.take(order).append_column(BUCKET, pa.array(np.repeat(np.arange(count, dtype=np.int32), sizes)))
    return {int(bucket): rows.slice(edges[bucket], sizes[bucket]) for bucket in np.flatnonzero(sizes)}


def run_in_threads(task: Task, rows: Mapping[int, pa.Table], threads: int) -> Iterable[bytes]:
    """Return a task's results for rows by their order in the commit. Raises what the task raises."""
    with ThreadPoolExecutor(threads) as pool:
        for found in pool.map(lambda order: task(order, rows[order].to_batches()), rows):
            yield from found
