"""Files of the Julian calendar, by which Spark wrote until version 3: their old days are others than shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.errors import TrinityError

__all__ = ["OldDays", "check_days", "is_julian"]

_MARKS: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_VERSION: Final = b"org.apache.spark.version"
_DAY: Final = dt.date(1582, 10, 15)
_MOMENT: Final = dt.datetime(1900, 1, 1)
"""The first values that both calendars have alike; local times of places changed until then."""


class OldDays(TrinityError):
    """The error of a value that only Spark converts."""


def is_julian(footer: pq.FileMetaData) -> bool:
    """Return whether a file says that it was written by the Julian calendar."""
    about = footer.metadata or {}
    version = about.get(_VERSION, b"")
    return any(mark in about for mark in _MARKS) or version.startswith((b"2.", b"3.0."))


def check_days(path: str, column: str, values: pa.Array) -> None:
    """Refuse days and times of a Julian file that are others in today's calendar.

    Raises:
        OldDays: NOT_SUPPORTED naming the file and the column.
    """
    for part in _parts(values):
        first = _DAY if pa.types.is_date(part.type) else _MOMENT
        least = pc.min(part).cast(pa.date32() if first is _DAY else pa.timestamp("us"))
        if least.is_valid and pc.less(least, pa.scalar(first, least.type)).as_py():
            raise OldDays(
                "NOT_SUPPORTED",
                f"'{path}' was written by the Julian calendar, and column '{column}' has a value before {first}, which "
                "only Spark converts: read the table by to_arrow() with engine='auto', by to_df(), or with "
                "engine='spark'.",
            )


def _parts(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the days and times within a column."""
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield values
    elif pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _parts(part)
    elif pa.types.is_map(kind):
        yield from _parts(values.keys)
        yield from _parts(values.items)
    elif pa.types.is_list(kind):
        yield from _parts(values.flatten())
