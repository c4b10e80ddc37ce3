"""Archival: the subsequent versions of superseded rows are filled in, and old rows may be dropped.

A row with a subsequent version is never live, so reads are the same with and without it. Dropped rows are missing only
from reads of the past.
"""

from __future__ import annotations

from typing import Any

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable


def archive_statements(table: JournalTable, retention: str | None) -> list[tuple[str, list[Any]]]:
    """Return the statements that archive a journal in PostgreSQL, each with its parameters.

    Args:
        table: the table.
        retention: drop versions that were superseded, and deletions, longer ago than this: an interval such as
            ``30 days`` for TIMESTAMP versions, a number of versions for BIGINT. None drops nothing.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a retention that does not fit the version type.
    """
    journal = trees.journal(table).sql(dialect="postgres")
    version, subsequent = (trees.column(c).sql(dialect="postgres") for c in (table.version, table.subsequent))
    keys = [trees.column(k).sql(dialect="postgres") for k in table.key]
    same = " AND ".join(f"j.{k} = n.{k}" for k in keys)
    listed = ", ".join(keys)
    fill = (
        f"UPDATE {journal} AS j SET {subsequent} = n.next FROM (SELECT {listed}, {version} AS v, lead({version}) OVER "
        f"(PARTITION BY {listed} ORDER BY {version}) AS next FROM {journal}) AS n "
        f"WHERE {same} AND j.{version} = n.v AND n.next IS NOT NULL AND j.{subsequent} IS NULL"
    )
    if retention is None:
        return [(fill, [])]
    if table.version_type == "TIMESTAMP":
        drop = f"DELETE FROM {journal} WHERE {subsequent} < now() - $1::interval"
        return [(fill, []), (drop, [retention])]
    if not retention.strip().isdigit():
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Retention '{retention}' of {table}: versions are counted, so give a number of versions.",
        )
    newest = f"(SELECT max(n.{version}) FROM {journal} AS n WHERE {same})"
    drop = f"DELETE FROM {journal} AS j WHERE {subsequent} IS NOT NULL AND {subsequent} <= {newest} - $1::bigint"
    return [(fill, []), (drop, [int(retention)])]
