"""A data frame as the rows of a table, which it may make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.definition.columns import columns_of
from trinity.definition.define import define_table
from trinity.engine.appending.append import arrow_reader, source_rows
from trinity.errors import TrinityError

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
    rows = arrow_reader(data)
    found = session.find_table(name) if session.table_exists(name) else None
    if mode == "append" and found is None:
        raise session.table_missing(name)
    if found is None or mode == "create":
        return _created(session, name, rows)
    if mode != "replace":
        return (found.upsert(rows) if found.definition.keyed else found.append(rows)).rows
    rows = source_rows(rows, session.timezone).to_reader()
    define_table(name, columns_of(rows.schema), (), (), {}, (), {})  # what is refused leaves the old table
    session.drop_table(name)
    return _created(session, name, rows)


def _created(session: Session, name: TableName, rows: pa.RecordBatchReader) -> int:
    table = session.create_table(name, rows.schema)
    try:
        return table.append(rows).rows
    except BaseException as error:
        if not (isinstance(error, TrinityError) and error.code == "COMMIT_STATE_UNKNOWN"):  # its rows may be there
            session.drop_table(name)
        raise
