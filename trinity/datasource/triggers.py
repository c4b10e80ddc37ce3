"""Triggers of the streaming queries that run. Spark does not tell a data source which one its query has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["reads_all_now"]

_ONCE: Final = ("AvailableNowTrigger", "OneTimeTrigger")


def reads_all_now(spark: SparkSession) -> bool:
    """True while any query runs that is to end when it has read what is there: Spark gives it one batch to do so."""
    state: Any = spark._jsparkSession.sharedState()
    return any(str(query.trigger().toString()) in _ONCE for query in list(state.activeStreamingQueries().values()))
