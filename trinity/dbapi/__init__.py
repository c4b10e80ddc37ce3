"""Python's database API (PEP 249) on journalled PostgreSQL tables and on Trinity tables."""

from __future__ import annotations

from typing import Final

from trinity.dbapi.connection import Connection, Cursor, connect
from trinity.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - PEP 249's name
)
from trinity.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "apilevel", "paramstyle", "threadsafety", "connect", "Connection", "Cursor",
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING",
    "Binary", "Date", "DateFromTicks", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks",
    "DataError", "DatabaseError", "Error", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "Warning",
]  # fmt: skip

apilevel: Final = "2.0"
"""The version of PEP 249."""
threadsafety: Final = 1
"""Threads may share the module, not connections."""
paramstyle: Final = "qmark"
"""Parameters are question marks."""
