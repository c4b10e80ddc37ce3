"""The winning row versions of wanted keys, tombstones too, found by Spark (M4, M9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.hidden import SINCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stored_winners(spark: SparkSession, fold: FoldPlan, keys: DataFrame | None) -> DataFrame:
    """Return the winners of given keys, or all, in storage form with ``DELETED``."""
    return SparkExecutor(spark, keys, few=False).winners(fold).drop(SINCE)
