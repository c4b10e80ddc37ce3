"""Executors of plans: Spark, or this process without Spark.

Who executes is decided by a plan's ``not_local``, and here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from trinity.engine.reading.local.executor import LocalExecutor
from trinity.engine.reading.local.limits import NotLocal
from trinity.engine.reading.local.search import Search
from trinity.engine.reading.plan import FoldPlan, ReadPlan
from trinity.engine.spark.remote import runs_in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Executor", "log_winners_in_process"]

Rows = TypeVar("Rows", covariant=True)
"""A DataFrame, or Arrow data."""


class Executor(Protocol[Rows]):
    """What executes plans; :class:`NotLocal` stands for what it leaves to Spark."""

    def rows(self, plan: ReadPlan) -> Rows | NotLocal:
        """Return the merged rows: visible columns in their logical types, one row for each live key."""
        ...

    def log_winners(self, fold: FoldPlan) -> Rows | NotLocal:
        """Return the winner of each key of log, sidecar and runs, in storage form with ``DELETED`` and ``SINCE``."""
        ...

    def search(self, search: Search, table: str) -> list[bytes] | None:
        """Return the fragments of a search for hidden rows; None where that fails."""
        ...


def log_winners_in_process(spark: SparkSession, fold: FoldPlan) -> pa.Table | NotLocal:
    """Return the winners of the log as this process finds them, where it is all that there is of Spark.

    No row then goes through the JVM, and no job runs.
    """
    if not runs_in_process(spark):
        return NotLocal("Spark has executors of its own")
    return LocalExecutor().log_winners(fold)
