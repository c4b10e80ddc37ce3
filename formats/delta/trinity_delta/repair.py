"""The repair of a table with damaged newest commits, or whose log has lost what Trinity keeps there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trinity.errors import TrinityError
from trinity.spi import CommitOperation, CommitResult, NewerMetadata, RepairResult, TableHandle
from trinity.storage import commit_loop, commit_result, repair_preview, repair_result
from trinity_delta.actions import TAG_OPERATION
from trinity_delta.adopt import is_own, on_record
from trinity_delta.damaged_log import move_damaged
from trinity_delta.own_log import OwnTransaction
from trinity_delta.protocol import DOMAIN_METADATA, SUPPORTED
from trinity_delta.schema import DEFINITION, TABLE
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import Forgotten, State, domains_in_force


def repair(snapshots: Snapshots, table: TableHandle, version: int | None, *, dry_run: bool) -> RepairResult:
    """Repair a table; arguments and errors are those of :meth:`~trinity.spi.ConnectorMetadata.repair`.

    If it is not damaged, the definition and the domain metadata are put back.
    """
    state, lost = snapshots.newest_readable(table)
    if not lost:
        return repair_result(_put_back(snapshots, table, dry_run=dry_run), state.version, ())
    if preview := repair_preview(table, state.version, lost, version, dry_run=dry_run):
        return preview
    done = commit_result(state.version, state.files.values())
    move_damaged(table.location, state.version, state.version + len(lost))
    return repair_result(done, state.version, lost)


def _put_back(snapshots: Snapshots, table: TableHandle, *, dry_run: bool) -> CommitResult:
    """Put back the definition and the domain metadata of a table by one commit, which leaves all rows as they are.

    Returns:
        the version that holds them again; ``skipped`` where nothing is missing.

    Raises:
        TrinityError: NOT_SUPPORTED where the log does not have them any more, or the table is unreadable otherwise.
    """
    newest = replace(table, version=None)

    def attempt() -> CommitResult:
        state = snapshots.state(newest)
        if state.refusal is None and state.forgotten is None:
            return CommitResult(state.version, skipped=True)
        if state.forgotten in (Forgotten.UNKNOWN, Forgotten.COPIED):
            raise state.forgotten.error(table)
        settings = {**state.metadata["configuration"], f"{SUPPORTED}{DOMAIN_METADATA}": "supported"}
        if state.refusal:
            settings |= _definition(snapshots, newest, state, state.refusal)
        replace(state, refusal=None, forgotten=None).check_readable(table)
        if dry_run:
            return CommitResult(state.version)
        started = OwnTransaction(newest, state, snapshots, domains_in_force(newest, state))
        started.update({"configuration": settings})
        done = commit_result(state.version, state.files.values())
        version = started.commit((), operation="Optimize", tags={TAG_OPERATION: CommitOperation.REPAIR.value})
        return replace(done, version=version)

    return commit_loop(table.location, attempt)


def _definition(snapshots: Snapshots, table: TableHandle, state: State, refusal: TrinityError) -> Mapping[str, str]:
    """Return the settings with the definition from the newest version that has it. Raises ``refusal`` without one."""
    for version in range(state.version - 1, state.oldest - 1, -1):
        before = snapshots.state(replace(table, version=version)).metadata
        if before["id"] != state.metadata["id"] or not is_own([{"metaData": before}]):
            break
        try:
            on_record(table, before)
        except NewerMetadata:
            raise
        except TrinityError:
            continue
        written = {key: before["configuration"][key] for key in (DEFINITION, TABLE) if key in before["configuration"]}
        if written.items() <= state.metadata["configuration"].items():  # they are there: the refusal has another reason
            break
        return written
    raise refusal
