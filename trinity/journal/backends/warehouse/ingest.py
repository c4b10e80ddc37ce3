"""A data frame as the rows of a table, which it may make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trinity.definition.columns import columns_of
from trinity.definition.define import define_table
from trinity.engine.appending.append import arrow_reader, source_rows

if TYPE_CHECKING:
    from trinity.journal.backends.base import IngestMode
    from trinity.names import TableName
    from trinity.session import Session

__all__ = ["ingest"]


def ingest(session: Session, name: TableName, data: Any, mode: IngestMode) -> int:
    """Store the rows of a data frame by one commit, and return their number.

    Args:
        session: the session of the table.
        name: the table.
        data: Arrow data, a pandas or Polars DataFrame, or rows of Python.
        mode: ``create`` and ``replace`` make the table, a plain one with the columns of the data; ``append`` wants one;
            ``create_append`` makes it if there is none. ``replace`` drops the old table first.

    Raises:
        TrinityError: TABLE_NOT_FOUND, TABLE_ALREADY_EXISTS, TYPE_MISMATCH; as :meth:`trinity.Table.upsert`.
    """
    rows: Any = arrow_reader(data)
    found = session.find_table(name) if session.table_exists(name) else None
    if found is None and mode == "append":
        raise session.table_missing(name)
    if found is not None and mode in ("append", "create_append"):
        return (found.upsert(rows) if found.definition.keyed else found.append(rows)).rows
    if found is not None and mode == "replace":
        rows = source_rows(rows, session.timezone)
        define_table(name, columns_of(rows.schema), (), (), {}, (), {})  # what is refused leaves the old table
        session.drop_table(name)
    return session.create_table(name, rows).count()
