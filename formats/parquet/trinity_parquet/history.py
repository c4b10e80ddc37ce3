"""The entries of ``history()`` for a Parquet table."""

from __future__ import annotations

from trinity.spi import HistoryEntry
from trinity_parquet.manifest import Manifest

__all__ = ["history_entry"]


def history_entry(change: Manifest) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit."""
    details = {
        "added_files": len(change.added),
        "added_rows": sum(f.rows for f in change.added),
        "removed_files": len(change.removed),
    }
    return HistoryEntry(change.number, change.timestamp_ms, change.operation, details, change.commit)
