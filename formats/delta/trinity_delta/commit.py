"""The commit: one transaction of Delta's, within the shared loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import CommitRaced, commit_loop, commit_timeout_s
from trinity_delta.jvm import DeltaJvm, DeltaTransaction
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import State

__all__ = ["commit_change"]

_T = TypeVar("_T")


def commit_change(
    snapshots: Snapshots,
    jvm: Callable[[], DeltaJvm],
    table: TableHandle,
    change: Callable[[State, DeltaTransaction], _T],
) -> _T:
    """Reload, check, commit, until no other writer comes between.

    Args:
        snapshots: the versions of the catalog's tables.
        jvm: Delta.
        table: the table.
        change: one attempt, told the newest state and a transaction that has read it.

    Raises:
        TrinityError: TABLE_NOT_FOUND; TRANSACTION_CONFLICT; and whatever ``change`` raises.
    """
    first = snapshots.load(replace(table, version=None)).definition
    newest = table.pinned(None, first.id)

    def attempt() -> _T:
        snapshots.load(newest)  # TABLE_NOT_FOUND before Delta makes a folder for its log
        started = jvm().start(table.full_name, table.location)
        if started.read_version < 0:
            raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).")
        state = snapshots.load(newest)
        if state.definition.id != started.table_id:  # Delta remembers the table that was dropped elsewhere
            jvm().forget(table.location)
            raise CommitRaced(f"'{table.location}' holds another table now")
        if state.version != started.read_version:
            raise CommitRaced(f"version {state.version} came while version {started.read_version} was read")
        return change(state, started)

    return commit_loop(table.location, attempt, commit_timeout_s(first.properties))
