"""Full compaction of a base in buckets: Spark folds the log alone, and each task reads its base file itself.

So base rows become no rows of Spark's: what loses is left out, what wins is put in its place, all in Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity.engine.compacting.bucket_merge import BucketMerge, Written, in_buckets, naming
from trinity.engine.compacting.bucket_task import BucketTask
from trinity.engine.compacting.spark.in_threads import by_bucket, log_winners_in_process, run_in_threads
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.spark.remote import parallelism
from trinity.engine.spark.types import arrow_frame
from trinity.engine.writing.run_sinks import RewriteTask, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["rewritten_in_buckets"]


def rewritten_in_buckets(spark: SparkSession, fold: FoldPlan, write: RewriteTask) -> list[bytes]:
    """Rewrite base, log and sidecar, bucket by bucket, and return the fragments.

    Args:
        spark: the session.
        fold: the plan of a version whose base tasks compare with the log in Arrow.
        write: writes rows into buckets.
    """
    assert fold.buckets is not None
    spec, count = fold.spec, fold.buckets
    base = {f.bucket.index: f for f in fold.base if f.bucket}
    task = BucketTask(write, BucketMerge(spec, fold.splits.storage, base))
    winners = log_winners_in_process(spark, fold)
    if not isinstance(winners, NotLocal):
        rows = {**{bucket: naming([bucket]) for bucket in base}, **by_bucket(winners, spec.key, count)}
        return [*Written.of(run_in_threads(task, rows, parallelism(spark))).rows]
    results = run_on_spark(task, in_buckets(SparkExecutor(spark).log_winners(fold), spec, count))
    if missed := sorted(base.keys() - {*Written.of(results).buckets}):  # the log has no row of theirs
        tasks = min(len(missed), parallelism(spark))
        results += run_on_spark(task, arrow_frame(spark, naming(missed)).repartition(tasks))
    return [*Written.of(results).rows]
