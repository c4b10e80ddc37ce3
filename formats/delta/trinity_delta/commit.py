"""The commit: one transaction on the log, within the shared loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TypeVar

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import CommitRaced, Location, after_commit, commit_loop, commit_timeout_s, logger
from trinity_delta.features import KEPT
from trinity_delta.jvm import DeltaJvm, DeltaTransaction
from trinity_delta.logs import Logs
from trinity_delta.own_log import OwnTransaction, catch_up
from trinity_delta.restored import in_force
from trinity_delta.schema import recorded
from trinity_delta.settings import are_kept
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import State
from trinity_delta.transaction import Transaction

__all__ = ["commit_change", "record_definition"]

_T = TypeVar("_T")
_log = logger(__name__)


def commit_change(
    snapshots: Snapshots,
    logs: Logs,
    table: TableHandle,
    change: Callable[[State, Transaction], _T],
    *,
    described: bool,
) -> _T:
    """Reload, check, commit, until no other writer comes between.

    Args:
        snapshots: the versions of the catalog's tables.
        logs: their logs.
        table: the table.
        change: one attempt, told the newest state and a transaction that has read it.
        described: whether it changes columns or settings: on a disk Delta's own classes say what that calls for.

    Raises:
        TrinityError: TABLE_NOT_FOUND; TRANSACTION_CONFLICT; and whatever ``change`` raises.
    """
    first = snapshots.load(replace(table, version=None))
    newest = table.pinned(None, first.definition.id)
    on_disk = Location.of(table.location).on_disk
    seen = [] if on_disk else [first]  # looking costs a request there

    def attempt() -> _T:
        state = seen.pop() if seen else None
        if state is None or snapshots.is_behind(newest, state):
            state = snapshots.load(newest)
        if on_disk and (described or not _keeps_to(state)):
            done = change(state, _of_delta(logs.jvm(), newest, state))
            after_commit(f"Version {state.version} has no checkpoint", lambda: catch_up(newest, state))
            return done
        if state.definition.external:
            _warn_of_others(table.location)
        return change(state, OwnTransaction(newest, state, snapshots, in_force(newest, state)))

    return commit_loop(table.location, attempt, commit_timeout_s(first.definition.properties))


def record_definition(state: State, started: Transaction) -> None:
    """Put on record what other engines changed of the definition."""
    if state.changed:
        started.alter({"configuration": {**state.metadata["configuration"], **recorded(state.definition)}})


@cache
def _warn_of_others(location: str) -> None:
    """Says once of a table in an object store who must not write to it meanwhile."""
    _log.warning(
        "A commit to '%s' is put if nobody else has put that version. Spark's Delta puts without that condition, and "
        "may put its own over one of Trinity's or of delta-rs: let no such writer run at the time.",
        location,
    )


def _keeps_to(state: State) -> bool:
    """True for a table of Trinity's on a disk that needs nothing of a writer that Trinity does not do."""
    if state.definition.external:
        return False
    features = set(state.protocol.get("writerFeatures") or ())
    return bool(features) and features <= KEPT and are_kept(state.metadata["configuration"])


def _of_delta(jvm: DeltaJvm, table: TableHandle, state: State) -> DeltaTransaction:
    """A transaction of Delta's own on a version that is the newest.

    Raises:
        TrinityError: TABLE_NOT_FOUND.
        CommitRaced: the version is the newest no more.
    """
    started = jvm.start(table.full_name, table.location)
    if started.read_version < 0:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).")
    if state.definition.id != started.table_id:  # Delta remembers the table that was dropped elsewhere
        jvm.forget(table.location)
        raise CommitRaced(f"'{table.location}' holds another table now")
    if state.version != started.read_version:
        raise CommitRaced(f"version {started.read_version} came while version {state.version} was read")
    started.memory = in_force(table, state)
    return started
