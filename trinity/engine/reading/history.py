"""A table's commits as rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa

from trinity.engine.spark.frames import small_table
from trinity.spi import HistoryEntry

__all__ = ["commits"]


def commits(entries: Sequence[HistoryEntry]) -> pa.Table:
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
    return small_table(columns, rows)
