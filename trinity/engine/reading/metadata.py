"""``history()`` and DESCRIBE DETAIL: facts from a table's log, its definition and the statistics of its files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa

from trinity.spark.frames import small_table
from trinity.spi import HistoryEntry
from trinity.target import Target


def commits(entries: Sequence[HistoryEntry]) -> pa.Table:
    """Return the commits, newest first, for :meth:`trinity.Table.history`."""
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


_COLUMNS = {
    "name": "string", "format": "string", "location": "string", "version": "bigint", "last_modified": "timestamp",
    "primary_key": "array<string>", "partition_by": "array<string>", "num_files": "bigint", "size_in_bytes": "bigint",
    "num_row_versions": "bigint", "properties": "map<string,string>",
}  # fmt: skip


def detail(table: Target, provider: str, properties: Mapping[str, str]) -> pa.Table:
    """Return the one row of DESCRIBE DETAIL. ``num_row_versions`` counts stored rows, before a read merges them.

    It is NULL where the format's metadata do not have it.
    """
    splits = table.splits()
    definition, files = splits.definition, (*splits.files, *splits.sidecar)
    row = (
        str(table.name),
        provider,
        table.location,
        splits.version,
        dt.datetime.fromtimestamp(splits.timestamp_ms / 1000, dt.UTC),
        list(definition.primary_key),
        list(definition.partition_by),
        len(files),
        sum(f.size for f in files),
        sum(f.live_rows for f in splits.files) if all(f.rows_known for f in splits.files) else None,
        sorted(properties.items()),
    )
    return small_table(_COLUMNS, [row])
