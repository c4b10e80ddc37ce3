"""Dates and timestamps that Spark wrote to Parquet by the calendar before today's: Julian until October 1582."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow.parquet as pq

from trinity.spi import ColumnStats
from trinity.storage.parquet_sink import footer_statistics

_VERSION: Final = b"org.apache.spark.version"
_DAYS: Final = "days"
_INT96: Final = "INT96"
_RULES: Final[Mapping[str, tuple[bytes, bytes]]] = {
    _DAYS: (b"3.0.0", b"org.apache.spark.legacyDateTime"),
    _INT96: (b"3.1.0", b"org.apache.spark.legacyINT96"),
}
"""Kind of values -> the first version of Spark that writes them by today's calendar, and the key by which a later one
marks a file where it does not. Spark reads files by the same rules (``DataSourceUtils``)."""


def julian_columns(footer: pq.FileMetaData) -> frozenset[str]:
    """Return the paths of columns whose dates and timestamps are of the Julian calendar, as their file says."""
    about = footer.metadata or {}
    kinds = {kind for kind, (since, mark) in _RULES.items() if mark in about or about.get(_VERSION, since) < since}
    columns = map(footer.schema.column, range(footer.num_columns) if kinds else ())
    return frozenset(column.path for column in columns if _kind(column) in kinds)


def statistics_of_others(
    footer: pq.FileMetaData, columns: Sequence[str], group: int | None = None
) -> dict[str, ColumnStats]:
    """Return what :func:`footer_statistics` does, without bounds of dates and timestamps of the Julian calendar."""
    julian = julian_columns(footer)
    found = footer_statistics(footer, columns, group)
    return {name: ColumnStats(nulls=stats.nulls) if name in julian else stats for name, stats in found.items()}


def _kind(column: pq.ColumnSchema) -> str | None:
    if column.physical_type == _INT96:
        return _INT96
    return _DAYS if column.logical_type.type in ("DATE", "TIMESTAMP") else None
