"""Delta's log as files: the commits that are there, and their actions."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.storage import ObjectStore, Stat
from trinity_delta.actions import LOG, commit_name
from trinity_delta.repair import damaged

__all__ = ["commit_numbers", "commit_stamp", "commits", "earliest", "earliest_commit", "newest_listed", "read_commit"]

_COMMIT: Final = re.compile(r"(\d{20})\.json")


def commit_numbers(store: ObjectStore) -> list[int]:
    """The versions whose commit files are there, in no order."""
    return [int(match[1]) for match in map(_COMMIT.fullmatch, store.names(LOG)) if match]


def read_commit(store: ObjectStore, table: str, version: int) -> list[dict[str, Any]]:
    """The actions of a commit file.

    Raises:
        TrinityError: BAD_DATA naming the file, when it is missing or corrupt.
    """
    path = store.path(commit_name(version))
    try:
        actions = [json.loads(line) for line in store.get(path).splitlines() if line.strip()]
    except FileNotFoundError as error:
        commits(store, table)  # or the table was dropped meanwhile
        raise damaged(table, path, "missing") from error
    except ValueError as error:
        raise damaged(table, path, f"corrupt ({error})") from error
    if not actions or not all(isinstance(a, dict) for a in actions):
        raise damaged(table, path, "corrupt (no action)")
    return actions


def commit_stamp(store: ObjectStore, version: int) -> Stat | None:
    """The facts about a version's commit file; None when it is not there."""
    return store.stat(commit_name(version))


def commits(store: ObjectStore, table: str) -> list[int]:
    """Versions whose commit files are there. Raises TABLE_NOT_FOUND when there is none."""
    found = commit_numbers(store)
    if not found:
        raise _not_found(table)
    return found


def newest_listed(store: ObjectStore, table: str, known: int | None) -> int:
    """The newest version, by one listing from a known one on.

    Args:
        store: the table's folder.
        table: its name, for messages.
        known: a version whose commit file was seen; it is listed again, since the table may be gone.

    Raises:
        TrinityError: TABLE_NOT_FOUND when there is none.
    """
    after = commit_name(known - 1) if known else None
    listed = (_COMMIT.fullmatch(entry.path.removeprefix(f"{LOG}/")) for entry in store.list(LOG, after=after))
    found = [int(match[1]) for match in listed if match]
    if not found:
        raise _not_found(table)
    return max(found)


def earliest_commit(store: ObjectStore, table: str) -> int:
    """The first version from which every commit file up to the newest is there."""
    found = set(commits(store, table))
    at = max(found)
    while at - 1 in found:
        at -= 1
    return at


def earliest(store: ObjectStore, table: str) -> int:
    """The oldest version that can be rebuilt: from the beginning, or from a checkpoint once the log was cleaned up."""
    first = earliest_commit(store, table)
    if first == 0:
        return 0
    names = store.names(LOG)
    checkpoints = [int(n[:20]) for n in names if n[:20].isdigit() and ".checkpoint" in n and n.endswith(".parquet")]
    return min((c for c in checkpoints if c >= first - 1), default=first)


def _not_found(table: str) -> TrinityError:
    return TrinityError("TABLE_NOT_FOUND", f"Table '{table}' does not exist (any more).")
