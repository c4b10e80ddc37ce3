"""INSERT without ON CONFLICT: an append whose keys must not be live."""

from __future__ import annotations

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.locks import is_locked
from trinity.journal.reading import latest_of_key
from trinity.journal.returning import expand, of_target
from trinity.journal.sources import Computed, source_of
from trinity.journal.tables import JournalTable
from trinity.journal.versions import inserted_version
from trinity.journal.writing import RewrittenChange, append

_NEW, _OLD = "new", "old"


def insert(
    node: exp.Insert, table: JournalTable, alias: exp.Identifier, dialect: str, computed: Computed
) -> RewrittenChange:
    """Rewrite an INSERT; references in its source have been replaced already."""
    source = source_of(node, table, dialect, computed)
    key = [trees.column(k, _NEW) for k in table.key]
    lock = source.lock(_NEW, node, table)
    version = inserted_version(table, trees.column(table.version, _OLD), trees.column(table.subsequent, _OLD))
    wanted = [is_locked(table, key)] if lock.keys is not None and not source.constant else []
    query = trees.select([trees.all_of(_NEW), version], source.as_table(_NEW), wanted)
    query.append("joins", trees.join_lateral(latest_of_key(table, key), _OLD))  # an index lookup for each new row
    returning = expand(node, table, alias) or []
    if not all(of_target(e, table, alias) for e in returning):
        raise TrinityError("COLUMN_NOT_FOUND", f"RETURNING of INSERT INTO {table} names a column that it lacks.")
    columns = [*(c.name for c in source.columns), table.version]
    body = append(table, columns, query, returning, alias if returning else None)
    return RewrittenChange(body, lock, unique=table if table.unique_keys else None)
