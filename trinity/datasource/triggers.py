"""Triggers of the running streaming queries. Spark does not tell a data source the trigger of its query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["reads_all_now"]

_ONCE: Final = ("AvailableNowTrigger", "OneTimeTrigger")


def reads_all_now(spark: SparkSession) -> bool:
    """Return True while a query runs that ends once all present data is read: it has one batch to read it."""
    state: Any = spark._jsparkSession.sharedState()
    return any(str(query.trigger().toString()) in _ONCE for query in list(state.activeStreamingQueries().values()))
