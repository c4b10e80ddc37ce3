"""Upserts as a statement of SQLAlchemy."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column
from sqlalchemy.sql.base import _generative
from sqlalchemy.sql.dml import Insert


class Upsert(Insert):
    """An INSERT whose rows take the place of those with the same key. :func:`upsert` makes one."""

    inherit_cache = False

    _trinity_on: tuple[str, ...] = ()

    @_generative
    def on(self, *columns: str | Column[Any]) -> Upsert:
        """Match rows by columns, as MERGE does: a stored row keeps its values in columns that the new row lacks.

        Args:
            *columns: names of the columns, or the columns.
        """
        self._trinity_on = tuple(c if isinstance(c, str) else c.name for c in columns)
        return self


def upsert(table: Any) -> Upsert:
    """Return a statement that stores rows in a table: a new row replaces the stored row with its key.

    Without :meth:`Upsert.on` it is Trinity's own upsert: whole rows, by the table's key, many of them in one commit.

    Args:
        table: a Table, or a mapped class.
    """
    return Upsert(table)
