"""Merged reads by Spark, for a table's users and for the engine itself (architecture.md, A read)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trinity.engine.reading.plan import ReadPlan, plan_read
from trinity.engine.reading.predicate import Where
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.spark.remote import analysed, runs_in_process
from trinity.spark.settings import pinned
from trinity.spi import SplitSource
from trinity.syntax.operands import with_plain_comparisons
from trinity.target import Host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def merged_read(
    spark: SparkSession, splits: SplitSource, where: Where | None = None, keys: DataFrame | None = None
) -> DataFrame:
    """Return the rows of a version: visible columns, logical types, one row per live key.

    A condition on key columns may leave out files and rows below the fold (L9). ``keys`` has values of key columns,
    few enough to be broadcast: rows with other values are left out, too.
    """
    return SparkExecutor(spark, keys).rows(merged_plan(spark, splits, where, some_keys=keys is not None))


def merged_plan(spark: SparkSession, splits: SplitSource, where: Where | None, *, some_keys: bool = False) -> ReadPlan:
    """Return the plan of :func:`merged_read`."""

    def timezone() -> str:
        return str(spark.conf.get("spark.sql.session.timeZone"))

    return plan_read(splits, where, timezone=timezone, some_keys=some_keys, looks_keys_up=runs_in_process(spark))


def filtered_read(session: Host, splits: SplitSource, where: str | None) -> DataFrame:
    """Return the rows of :func:`merged_read` that match a predicate; all without one. Raises as ``Table.to_df``."""
    return planned_read(session, lambda spark: merged_plan(spark, splits, where), where)


def planned_read(session: Host, plan: Callable[[SparkSession], ReadPlan], where: str | None = None) -> DataFrame:
    """Return the rows of a plan that match its predicate, which is checked before. Raises as ``Table.to_df``."""
    with _checked_predicate(session, where):
        rows = SparkExecutor(session.spark).rows(plan(session.spark))
        return analysed(rows.where(with_plain_comparisons(where)) if where else rows)


def check_predicate(session: Host, where: str) -> None:
    """Refuse a predicate that is none, or that reaches beyond rows. Raises as ``Table.to_df``."""
    with _checked_predicate(session, where):
        pass


@contextmanager
def _checked_predicate(session: Host, where: str | None) -> Iterator[None]:
    """Check what a user's predicate reads, and raise Spark's errors as Trinity's."""
    from trinity.calls import spark_errors
    from trinity.engine.sql_permissions import guard_predicate

    with pinned(session.spark), spark_errors():
        if where is not None:
            guard_predicate(session, where)
        yield
