"""A table's commits as a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinity.engine.spark.frames import local_frame
from trinity.spi import HistoryEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["commits"]


def commits(spark: SparkSession, entries: Sequence[HistoryEntry]) -> DataFrame:
    """Return the commits, newest first, as of :meth:`trinity.Table.history`."""
    rows = [
        (
            e.version,
            dt.datetime.fromtimestamp(e.timestamp_ms / 1000, dt.UTC),
            e.operation,
            [(k, str(v)) for k, v in e.details.items()],
        )
        for e in reversed(entries)
    ]
    columns = {"version": "bigint", "timestamp": "timestamp", "operation": "string", "details": "map<string,string>"}
    return local_frame(spark, columns, rows)
