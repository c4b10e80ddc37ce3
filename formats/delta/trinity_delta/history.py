"""The entries of ``history()`` for Delta's log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trinity.spi import HistoryEntry
from trinity_delta.actions import TAG_OPERATION, TAG_TIER, VACUUM_DOMAIN, by_kind, commit_id, committed_ms
from trinity_delta.file_values import rows_of

__all__ = ["history_entry"]

_ALTERS: Final = frozenset({"RENAME COLUMN", "SET TBLPROPERTIES", "UPDATE SCHEMA"})


def history_entry(version: int, actions: list[dict[str, Any]]) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit, from its number and its actions. The time is the commit's."""
    found = by_kind(actions)
    info = found.get("commitInfo", [{}])[0]
    added, removed = found.get("add", []), found.get("remove", [])
    known = [rows for action in added if (rows := rows_of(action.get("stats"))) is not None]
    return HistoryEntry(
        version,
        committed_ms(info),
        _operation(version, found, str(info.get("operation", ""))),
        {
            "added_files": len(added),
            **({} if len(known) < len(added) else {"added_rows": sum(known)}),
            "removed_files": len(removed),
        },
        commit_id(found),
    )


def _operation(version: int, found: Mapping[str, list[Any]], operation: str) -> str:
    """Return Trinity's name for what a commit did; Delta's own name for a commit of another engine."""
    if version == 0:
        return "create"
    if operation == "WRITE" and "remove" not in found:
        return "append"
    added = found.get("add", [])
    if operation == "UPDATE" and all(map(_by_trinity, added)):  # an UPDATE of Delta's own adds files
        return "merge"
    tags = found.get("commitInfo", [{}])[0].get("tags")
    if isinstance(tags, dict) and (named := tags.get(TAG_OPERATION)) is not None:
        return str(named)
    if operation == "OPTIMIZE" and ("domainMetadata" in found or any(map(_by_trinity, added))):
        return "compact"
    if operation in _ALTERS:
        return "alter"
    if any(d["domain"] == VACUUM_DOMAIN for d in found.get("domainMetadata", [])):
        return "vacuum"
    return operation.lower()


def _by_trinity(added: Mapping[str, Any]) -> bool:
    return TAG_TIER in (added.get("tags") or {})
