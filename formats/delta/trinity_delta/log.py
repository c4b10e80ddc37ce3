"""Delta's log as files: the commits that exist, and their actions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from trinity.clock import now_ms
from trinity.storage import ObjectStore, Stat, no_table
from trinity_delta.actions import LAST_CHECKPOINT, LOG, commit_name
from trinity_delta.checkpoint_files import checkpoints_of
from trinity_delta.damaged_log import damaged
from trinity_delta.shapes import action_fault

_AT_ONCE: Final = 16
"""How many commit files are read in parallel."""
_GAPS: Final = (*range(2, 17), *(1 << n for n in range(5, 14)))
"""Distances after the newest commit found at which further ones are looked for: one in between may be missing."""
_COMMIT: Final = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class Listing:
    """The contents of a log, or of its end: the ``stat`` of each commit file, and the versions with a checkpoint."""

    commits: dict[int, Stat]
    checkpoints: frozenset[int]

    @property
    def first(self) -> int | None:
        """The oldest version that can be read; 0 also where a commit is missing, None if there is no table (any more).

        A checkpoint replaces the commits before it; the commit file of its version is kept with it.
        """
        first = _unbroken(self.commits) if self.commits else 0
        if first and first - 1 not in self.checkpoints:
            first = min((n for n in self.checkpoints if n >= first), default=0)
        return first if first in self.commits else None


def _commit_numbers(store: ObjectStore) -> list[int]:
    """Return the versions that have commit files, in no particular order."""
    return [int(match[1]) for match in map(_COMMIT.fullmatch, store.names(LOG)) if match]


def has_commits(store: ObjectStore) -> bool:
    """Return whether a folder has a commit: the first one, that of the newest checkpoint, or any other in its log."""
    if store.on_disk:  # in a bucket each ``stat`` is a request, and one request lists the log
        known = (0, checkpoint_hint(store).get("version"))
        if any(number is not None and store.stat(commit_name(number)) for number in known):
            return True
    return bool(_commit_numbers(store))


def read_commit(store: ObjectStore, table: str, version: int) -> list[dict[str, Any]]:
    """Return the actions of a commit file. Raises BAD_DATA naming the file, when it is missing or corrupt."""
    path = store.path(commit_name(version))
    try:
        actions = [_present(json.loads(line)) for line in store.get(path).splitlines() if line.strip()]
    except FileNotFoundError as error:
        commits(store, table)  # raises TABLE_NOT_FOUND if the table was dropped meanwhile
        raise damaged(table, path, "missing") from error
    except ValueError as error:
        raise damaged(table, path, f"corrupt ({error})") from error
    if not actions or not all(isinstance(a, dict) for a in actions):
        raise damaged(table, path, "corrupt (no action)")
    if fault := next(filter(None, map(action_fault, actions)), None):
        raise damaged(table, path, f"malformed: {fault}")
    return actions


def _present(action: Any) -> Any:
    """Return an action without its null entries; a ``commitInfo`` that is no object becomes an empty one."""
    if not isinstance(action, dict):
        return action
    found = {kind: body for kind, body in action.items() if body is not None}
    return found if isinstance(found.get("commitInfo", {}), dict) else {**found, "commitInfo": {}}


def read_commits(store: ObjectStore, table: str, versions: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Return the actions of commit files; in an object store, where each is a request, they are read in parallel.

    Raises:
        TrinityError: BAD_DATA naming the first one that is missing or corrupt.
    """
    if store.on_disk:
        return [read_commit(store, table, version) for version in versions]
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        return list(readers.map(lambda version: read_commit(store, table, version), versions))


def commits(store: ObjectStore, table: str) -> list[int]:
    """Return the versions that have commit files. Raises TABLE_NOT_FOUND when there is none."""
    found = _commit_numbers(store)
    if not found:
        raise no_table(table)
    return found


def checkpoint_hint(store: ObjectStore) -> Mapping[str, int]:
    """Return the hint at the newest checkpoint: its ``version``, and its ``size`` in actions; empty without one."""
    try:
        found = json.loads(store.get(LAST_CHECKPOINT))
        return {"version": int(found["version"]), "size": int(found["size"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def newest_commit(store: ObjectStore, table: str) -> int:
    """Return the newest version: count on from the newest checkpoint, else list the whole log.

    The log is also listed where a commit is missing on the way, with others after it.

    Raises:
        TrinityError: TABLE_NOT_FOUND when there is none.
    """
    at = checkpoint_hint(store).get("version")
    if at is not None and store.stat(commit_name(at)):
        while store.stat(commit_name(at + 1)):
            at += 1
        if not any(store.stat(commit_name(at + gap)) for gap in _GAPS):
            return at
    return max(commits(store, table))


def listed(store: ObjectStore, known: int | None = None) -> Listing:
    """List the log: all of it, or from a known version on."""
    commits, others = dict[int, Stat](), list[str]()
    for entry in store.list(LOG, after=commit_name(known - 1) if known else None):
        name = entry.path.removeprefix(f"{LOG}/")
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = entry.stat
        else:
            others.append(name)
    return Listing(commits, frozenset(checkpoints_of(others)))


def names_and_times(store: ObjectStore) -> tuple[Collection[str], Callable[[str], int]]:
    """Return the names of a log's objects, and a function from name to time, milliseconds since the epoch."""
    if store.on_disk:
        return store.names(LOG), lambda name: _modified_ms(store.stat(f"{LOG}/{name}"))
    found = {entry.path.removeprefix(f"{LOG}/"): entry.modified_ms for entry in store.list(LOG)}
    return found, found.__getitem__


def _modified_ms(found: Stat | None) -> int:
    """Return the time of an object; the present time if it was removed meanwhile."""
    return found.modified_ns // 10**6 if found else now_ms()


def earliest_commit(store: ObjectStore, table: str) -> int:
    """Return the first version from which on every commit file up to the newest exists."""
    return _unbroken(set(commits(store, table)))


def _unbroken(found: Collection[int]) -> int:
    """Return the first of the numbers that lead to the highest one without a gap."""
    at = max(found)
    while at - 1 in found:
        at -= 1
    return at


def earliest(store: ObjectStore, table: str) -> int:
    """Return the oldest version that can be rebuilt: from the first commit, or from a checkpoint after a clean-up."""
    first = earliest_commit(store, table)
    if first == 0:
        return 0
    return min((c for c in checkpoints_of(store.names(LOG)) if c >= first - 1), default=first)
