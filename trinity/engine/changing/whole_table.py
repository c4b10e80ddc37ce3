"""Statements on all rows of a table: TRUNCATE, replacing them, and RESTORE to an earlier version."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from trinity.definition.evolve import replaced, restored
from trinity.engine.appending.append import checked_txn, write_rows
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.time_travel import version_at
from trinity.engine.values.check_types import check_types
from trinity.errors import TrinityError
from trinity.spi import CommitResult, SplitSource, TableDefinition, TransactionId
from trinity.storage.foreign import not_ours
from trinity.target import Target


def truncate(table: Target, txn: TransactionId | None = None, seen: SplitSource | None = None) -> CommitResult:
    """Remove all rows, and the tombstones of a keyed table. The result's ``rows`` counts the rows of the removed files.

    With the same or a lower version of a ``txn`` nothing is done (L4). ``seen`` is the version that has to be the
    newest one still; None for any.

    Raises:
        TrinityError: NOT_SUPPORTED for an external table; INVALID_ARGUMENTS for an invalid ``txn``;
            TRANSACTION_CONFLICT where anything was committed to the table since ``seen``.
    """
    definition = table.definition
    if definition.external:
        raise not_ours(str(table.name), "TRUNCATE")
    handle = table.handle if seen is None else table.handle.pinned(seen.version, seen.definition.id)
    done = table.connector.metadata.truncate(handle, *([checked_txn(txn)] if txn is not None else []))
    if done.rows:
        after_commit(table, definition, done)
    return done


def replace_table(table: Target, seen: SplitSource, wanted: TableDefinition, rows: Any) -> CommitResult:
    """Give a table another definition and other rows, as for :func:`~trinity.engine.appending.append.append_rows`.

    The rows may have been read from ``seen``, the version as the statement began.

    Raises:
        TrinityError: TRANSACTION_CONFLICT where anything was committed to the table since; the errors of ingest.
    """
    check_types(wanted, table.session)
    metadata, at = table.connector.metadata, table.handle.pinned(seen.version, seen.definition.id)
    merge = metadata.begin_merge(at, {}, replaced(seen.definition, wanted, seen.version))
    done = metadata.finish_replace(merge, [] if rows is None else write_rows(table, merge.insert, rows))
    after_commit(table, merge.insert.definition, done)
    return done


def restore(table: Target, version: int | None, timestamp: str | dt.datetime | None) -> CommitResult:
    """Make a version the newest one again; the result's rows, files and bytes are those of the version.

    A time means the newest version that was committed by then.

    Raises:
        TrinityError: INVALID_ARGUMENTS unless either a version or a time is given, and for an unreadable version;
            NOT_SUPPORTED for an external table, and for columns whose types have changed since.
    """
    if (version is None) is (timestamp is None):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"restore() of '{table.name}' needs a version or a timestamp; history() shows them."
        )
    definition = table.definition
    if definition.external:
        raise not_ours(str(table.name), "RESTORE")
    if timestamp is not None:
        version = version_at(table, timestamp)
    done = table.connector.metadata.restore(replace(table.handle, version=version), restored)
    after_commit(table, definition, done)
    return done
