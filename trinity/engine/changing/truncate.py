"""TRUNCATE: removes all rows of a table in one commit, unread (M12)."""

from __future__ import annotations

from trinity.engine.appending.append import checked_txn
from trinity.engine.compacting.after_commit import after_commit
from trinity.engine.target import Target
from trinity.spi import CommitResult, TransactionId
from trinity.storage import not_ours

__all__ = ["truncate"]


def truncate(table: Target, txn: TransactionId | None = None) -> CommitResult:
    """Remove all rows, and of a keyed table its tombstones; the result's ``rows`` counts those of the removed files.

    Args:
        table: the table.
        txn: (application, version): with the same or a lower version nothing is done (L4).

    Raises:
        TrinityError: NOT_SUPPORTED for an external table; INVALID_ARGUMENTS for an invalid ``txn``.
    """
    definition = table.definition
    if definition.external:
        raise not_ours(str(table.name), "TRUNCATE")
    done = table.connector.metadata.truncate(table.handle, *([checked_txn(txn)] if txn is not None else []))
    if done.rows:
        after_commit(table, definition, done)
    return done
