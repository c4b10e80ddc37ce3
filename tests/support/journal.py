"""The results and effects of a statement of the database API."""

from __future__ import annotations

from typing import Any

from trinity import dbapi

Rows = list[tuple[Any, ...]]


def rows(connection: dbapi.Connection, text: str = "SELECT * FROM depts ORDER BY 1", *values: Any) -> Rows:
    return connection.execute(text, values).fetchall()


def count(connection: dbapi.Connection, text: str, *values: Any) -> int:
    return connection.execute(text, values).rowcount
