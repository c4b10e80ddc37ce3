"""CREATE OR REPLACE TABLE: another table takes the place of one, with its rows, in one commit (L13)."""

from __future__ import annotations

from typing import Any

from trinity.definition.evolve import replaced
from trinity.engine.appending.append import write_rows
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.target import Target
from trinity.engine.values.check_types import check_types
from trinity.spi import CommitResult, SplitSource, TableDefinition

__all__ = ["replace_table"]


def replace_table(table: Target, seen: SplitSource, wanted: TableDefinition, rows: Any = None) -> CommitResult:
    """Give a table another definition and other rows.

    Args:
        table: the table, one that Trinity made.
        seen: its version when the statement began; the rows may have been read from it.
        wanted: the new definition.
        rows: the new rows, as for :func:`~trinity.engine.appending.append.append_rows`; None for none.

    Raises:
        TrinityError: TRANSACTION_CONFLICT where anything was committed to the table since; the errors of ingest.
    """
    check_types(wanted, table.session)
    metadata, at = table.connector.metadata, table.handle.pinned(seen.version, seen.definition.id)
    merge = metadata.begin_merge(at, {}, replaced(seen.definition, wanted, seen.version))
    done = metadata.finish_replace(merge, [] if rows is None else write_rows(table, merge.insert, rows))
    after_commit(table, merge.insert.definition, done)
    return done
