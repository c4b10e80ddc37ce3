"""The entries of ``history()`` for an Iceberg table."""

from __future__ import annotations

from typing import Final

from pyiceberg.table.snapshots import Operation, Snapshot

from trinity.spi import HistoryEntry
from trinity_iceberg.carried import OPERATION, version_of

__all__ = ["commit_of", "history_entry", "is_compaction"]

_COUNTED: Final = {
    "added_files": "added-data-files",
    "added_rows": "added-records",
    "removed_files": "deleted-data-files",
}
"""Name in ``history()`` -> name in a snapshot's summary."""


def history_entry(snapshot: Snapshot) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit."""
    details = {"snapshot_id": snapshot.snapshot_id, **_details(snapshot)}
    commit = commit_of(snapshot)
    return HistoryEntry(version_of(snapshot), snapshot.timestamp_ms, _operation(snapshot), details, commit)


def commit_of(snapshot: Snapshot | None) -> str:
    """Return the id of a commit's snapshot, which identifies it; 0 before the first one."""
    return str(snapshot.snapshot_id if snapshot else 0)


def _operation(snapshot: Snapshot) -> str:
    """Return the operation of a commit: Trinity's name, or Iceberg's for commits of other engines."""
    summary = snapshot.summary
    if summary is None:
        return "append"
    return summary.additional_properties.get(OPERATION, summary.operation.value)


def is_compaction(snapshot: Snapshot) -> bool:
    """Return whether a commit, of any engine, left the rows as they were."""
    replaces = snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE
    return replaces or _operation(snapshot) == "compact"


def _details(snapshot: Snapshot) -> dict[str, int]:
    """Return what a commit added and removed, under Trinity's names; the snapshot's summary has more."""
    own = snapshot.summary.additional_properties if snapshot.summary else {}
    return {name: int(own.get(key, 0)) for name, key in _COUNTED.items()}
