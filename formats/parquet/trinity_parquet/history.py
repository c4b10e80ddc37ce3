"""What commits of a Parquet table did, as ``history()`` shows it."""

from __future__ import annotations

from trinity.spi import HistoryEntry
from trinity_parquet.manifest import Change

__all__ = ["history_entry"]


def history_entry(change: Change) -> HistoryEntry:
    """What ``history()`` shows of a commit."""
    details = {
        "added_files": len(change.added),
        "added_rows": sum(f.rows for f in change.added),
        "removed_files": len(change.removed),
    }
    return HistoryEntry(change.number, change.timestamp_ms, change.operation, details)
