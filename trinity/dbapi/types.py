"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Iterable
from typing import Final

from trinity.dbapi.errors import DataError, api
from trinity.spi import DATETIMES, FLOATS, INTEGERS, TEXTS


class TypeObject:
    """PEP 249's type object, equal to the type codes of its columns: PostgreSQL's type oids, Trinity's type names."""

    def __init__(self, name: str, oids: Iterable[int], names: Iterable[str]) -> None:
        self._name = name
        self._codes = frozenset([*oids, *names])

    def __repr__(self) -> str:
        return f"trinity.dbapi.{self._name}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._codes == other._codes
        code = other.split("(")[0].split("<")[0] if isinstance(other, str) else other
        return code in self._codes

    def __hash__(self) -> int:
        return hash(self._codes)


STRING: Final = TypeObject("STRING", (18, 19, 25, 114, 142, 705, 1042, 1043, 2950, 3802), (*TEXTS, "variant"))
"""Texts, and types that are returned as text: JSON, UUID, VARIANT."""
BINARY: Final = TypeObject("BINARY", (17,), ("binary",))
"""Bytes."""
NUMBER: Final = TypeObject(
    "NUMBER",
    (16, 20, 21, 23, 700, 701, 790, 1700),
    ("boolean", *INTEGERS, *FLOATS, "decimal"),
)
"""Numbers, and BOOLEAN."""
DATETIME: Final = TypeObject("DATETIME", (1082, 1083, 1114, 1184, 1186, 1266), (*DATETIMES, "time", "interval"))
"""Dates, times of day, timestamps and intervals."""
ROWID: Final = TypeObject("ROWID", (26, 27), ())
"""PostgreSQL's oid and tid; no column of a Trinity table."""

Date = dt.date
"""A date of year, month and day."""
Time = dt.time
"""A time of day of hour, minute and second."""
Timestamp = dt.datetime
"""A timestamp of year, month, day, hour, minute and second."""


@api
def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 - PEP 249's name
    """Return the local date of a number of seconds since the epoch."""
    return dt.date(*_local(ticks)[:3])


@api
def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802 - PEP 249's name
    """Return the local time of day of a number of seconds since the epoch."""
    return dt.time(*_local(ticks)[3:6])


@api
def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802 - PEP 249's name
    """Return the local date and time of a number of seconds since the epoch."""
    return dt.datetime(*_local(ticks)[:6])


def _local(ticks: float) -> time.struct_time:
    if not math.isfinite(ticks):
        raise DataError("NUMERIC_VALUE_OUT_OF_RANGE", f"{ticks} seconds since the epoch are no time.")
    return time.localtime(ticks)


@api
def Binary(value: str | bytes | bytearray | memoryview) -> bytes:  # noqa: N802 - PEP 249's name
    """Return a value for a binary column: bytes, or text encoded as UTF-8."""
    return value.encode() if isinstance(value, str) else bytes(value)
