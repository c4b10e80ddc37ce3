"""The Spark that runs in this process, if any, whoever started it and whatever other threads do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


def running_context() -> SparkContext | None:
    """Return the context of this process; None without one, also while another thread imports pyspark or starts Spark.

    Spark Connect has no context: its Spark runs elsewhere.
    """
    # while pyspark is being imported it lacks names; while a context is being made it lacks its JVM's side
    context_type = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    context: SparkContext | None = getattr(context_type, "_active_spark_context", None)
    return context if getattr(context, "_jsc", None) is not None else None


def running_session() -> SparkSession | None:
    """Return the session that ``getOrCreate`` finds in this process; None without a Spark."""
    if running_context() is None:
        return None
    from trinity.spark_names import SparkSession

    return SparkSession.builder.getOrCreate()


def spark_runs() -> bool:
    """Return True when this process has a Spark."""
    return running_context() is not None
