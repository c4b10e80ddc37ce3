"""Versions: the state of a table, from manifests and checkpoints."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spi import KEEPS_ROWS, HistoryEntry, TableHandle
from trinity.storage import Cache, FileChange, Location, ObjectStore, Stat, TableVersion, no_table, version_at
from trinity_parquet.manifest import (
    LOG,
    NEWEST,
    REMEDY,
    Manifest,
    begins,
    checkpoint_name,
    from_checkpoint,
    manifest_name,
    number_of,
    read_json,
)

_log = logger("trinity.parquet")
_CACHED: Final = 256
_ENTRIES: Final = 10_000
"""How many history entries are remembered."""
_LISTED_BACK: Final = 400
"""How many versions back manifests and checkpoints are listed first."""


def is_table(folder: Location) -> bool:
    """Return whether a folder has a manifest of Trinity."""
    return ObjectStore(folder).exists(manifest_name(0))


@dataclass(frozen=True)
class _Known:
    """The newest version of a table that a process knows, with the ``stat`` of its manifest and of the first one.

    The ``stat`` of the newest manifest has changed if the table was put back to an earlier state.
    """

    born: Stat
    newest: int
    stamp: Stat | None


class Snapshots:
    """A loader of versions, which keeps the last ones used: a version never changes.

    A table that was dropped and made again under its name has another first manifest. A table that was put back to an
    earlier state has another manifest of the newest version.
    """

    def __init__(self) -> None:
        self._versions: Cache[tuple[str, Stat, int], TableVersion] = Cache(_CACHED)
        self._entries: Cache[tuple[str, Stat, int], HistoryEntry] = Cache(_ENTRIES)
        self._known: dict[str, _Known] = {}
        self._mutex = threading.Lock()

    def load(self, table: TableHandle) -> TableVersion:
        """Return the handle's version, or the newest.

        Raises:
            TrinityError: TABLE_NOT_FOUND, INVALID_ARGUMENTS (no such version, or vacuumed), BAD_DATA;
                TRANSACTION_CONFLICT for a table that was made anew.
        """
        store = ObjectStore(table.location)
        while True:
            born = _born(store, table)
            try:
                return version_at(table, self._newest(store, table, born), partial(self._version, store, table, born))
            except TrinityError:
                if _born(store, table) == born:  # else it was made anew while it was loaded
                    raise

    def newest(self, table: TableHandle) -> int:
        """Return the number of the newest version. Raises TABLE_NOT_FOUND."""
        store = ObjectStore(table.location)
        return self._newest(store, table, _born(store, table))

    def read(self, table: TableHandle, number: int) -> TableVersion:
        """Return a version by its number. Raises TABLE_NOT_FOUND, BAD_DATA."""
        store = ObjectStore(table.location)
        return self._version(store, table, _born(store, table), number)

    def history(self, table: TableHandle, oldest: int, newest: int) -> list[HistoryEntry]:
        """Return the history entries of a range of versions, oldest first."""
        store = ObjectStore(table.location)
        born = _born(store, table)

        def read(number: int) -> HistoryEntry:
            return _history_entry(_change(store, table, number))

        return [
            self._entries.get((store.root, born, number), partial(read, number)) for number in range(oldest, newest + 1)
        ]

    def changes(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        """Return the commits since a version, without compactions; None once vacuum has forgotten that version."""
        first = pinned.version or 0
        if first < newest.oldest:
            return None
        store = ObjectStore(pinned.location)
        commits = [_change(store, pinned, number) for number in range(first + 1, newest.number + 1)]
        return [
            FileChange(c.number, [f.at_commit(c.number) for f in c.added], bool(c.removed))
            for c in commits
            if c.operation not in KEEPS_ROWS
        ]

    def stands_alone(self, table: TableHandle, number: int) -> bool:
        """Return whether a version can be read without the manifests before it."""
        store = ObjectStore(table.location)
        return _checkpoint(store, number) is not None or begins(_change(store, table, number))

    def keep(self, table: TableHandle, version: TableVersion) -> None:
        """Remember a version that this process has committed, so that it is not read back."""
        store = ObjectStore(table.location)
        born = _stat(store)
        if born is not None:
            self._versions.put((store.root, born, version.number), version)
            if store.on_disk:  # in a bucket a stat is a request
                known = _Known(born, version.number, store.stat(manifest_name(version.number)))
                with self._mutex:
                    self._known[store.root] = known

    def forget(self, table: TableHandle) -> None:
        """Forget what is remembered of a table's versions."""
        root = ObjectStore(table.location).root
        self._versions.drop(lambda key: key[0] == root)
        self._entries.drop(lambda key: key[0] == root)

    def _newest(self, store: ObjectStore, table: TableHandle, born: Stat) -> int:
        """Return the newest version: on a disk by counting on from the newest known one, in a bucket by a listing.

        A vacuum deletes manifests from the lowest number on, except the first. So while the newest known manifest
        exists, no higher one was deleted.
        """
        with self._mutex:
            known = self._known.get(store.root)
        if known is not None and known.born != born:
            # if a table under this name is put back, its first manifest may have the ``stat`` that the cache has
            self.forget(table)
            known = None
        look = _count_on if store.on_disk else _list_newest
        found = look(store, table, born, known)
        if found is None:  # the known version has another manifest: the table was put back to an earlier state
            self.forget(table)
            found = look(store, table, born, None)
        assert found is not None
        with self._mutex:
            self._known[store.root] = found
        return found.newest

    def _version(self, store: ObjectStore, table: TableHandle, born: Stat, number: int) -> TableVersion:
        return self._versions.get((store.root, born, number), lambda: self._replay(store, table, born, number))

    def _replay(self, store: ObjectStore, table: TableHandle, born: Stat, number: int) -> TableVersion:
        """Build a version from the nearest known one at or below it: a cached one, a checkpoint, or the beginning."""
        changes: list[Manifest] = []
        found, at = None, number
        checkpoints = _Checkpoints(store, number)
        while found is None:
            found = self._versions.peek((store.root, born, at))
            if found is None and (at < number or not self._versions.peek((store.root, born, at - 1))):
                found = checkpoints.read(at)
            if found is None:
                change = _change(store, table, at)
                if begins(change):
                    found = change.applied(None)
                else:
                    changes.append(change)
                    at -= 1
        if not changes and found.operation == "":  # read from a checkpoint, and no manifest checked against it yet
            _check_same(store, table, found)
        for change in reversed(changes):
            _check_follows(store, table, found, change)
            found = change.applied(found)
        if not found.commit:  # a checkpoint of an older release lacks it
            found = replace(found, commit=_commit_of(store, table, number))
        return found


class _Checkpoints:
    """The checkpoints of a table: looked up one by one on a disk, listed in a bucket, where a look is a request."""

    def __init__(self, store: ObjectStore, number: int) -> None:
        self._store = store
        self._list_newest = max(0, number - _LISTED_BACK)

    def read(self, number: int) -> TableVersion | None:
        """Return a version's checkpoint; None where there is none."""
        if self._store.on_disk:
            return _checkpoint(self._store, number)
        names = self._newest if number > self._list_newest else self._all
        return _checkpoint(self._store, number) if checkpoint_name(number) in names else None

    @cached_property
    def _newest(self) -> frozenset[str]:
        """The names of the last versions; one request lists them, however many come before."""
        return frozenset(entry.path for entry in self._store.list(LOG, after=manifest_name(self._list_newest)))

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(entry.path for entry in self._store.list(LOG))


def _hinted_version(store: ObjectStore) -> int:
    """Return a version that exists, or did before a vacuum; 0 without a hint."""
    try:
        number = json.loads(store.get(NEWEST))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
    return number if isinstance(number, int) and number > 0 else 0


def _count_on(store: ObjectStore, table: TableHandle, born: Stat, known: _Known | None) -> _Known | None:
    """Return the newest version on a disk; None if the manifest of the known one has changed."""
    at = start = known.newest if known else _hinted_version(store)
    stamp = store.stat(manifest_name(at))
    if known and stamp != known.stamp:
        return None
    while (following := store.stat(manifest_name(at + 1))) is not None:
        at, stamp = at + 1, following
    if at == start and (at == 0 or stamp is None):
        at = max(_stamps(store), default=0)
        stamp = store.stat(manifest_name(at))
    return _Known(born, at, stamp)


def _list_newest(store: ObjectStore, table: TableHandle, born: Stat, known: _Known | None) -> _Known | None:
    """Return the newest version, by one listing that begins at the newest known one; None if its manifest has changed.

    A vacuum does not delete the newest known version, so an empty listing means that the table is gone.
    """
    start = known.newest if known else _hinted_version(store)
    found = _stamps(store, manifest_name(start - 1) if start else None)
    if known and found.get(start) != known.stamp:
        return None
    if not found and start and store.exists(manifest_name(0)):  # a hint that names too high a version
        found = _stamps(store)
    if not found:
        raise no_table(table.full_name)
    newest = max(found)
    return _Known(born, newest, found[newest])


def _stamps(store: ObjectStore, after: str | None = None) -> dict[int, Stat]:
    """Return the versions that have manifests -> ``stat`` of these, from a listing."""
    listed = ((number_of(entry.path), entry) for entry in store.list(LOG, after=after))
    return {n: entry.stat for n, entry in listed if n is not None}


def _change(store: ObjectStore, table: TableHandle, number: int) -> Manifest:
    name = manifest_name(number)
    try:
        return Manifest.from_dict(store, read_json(store, name))
    except FileNotFoundError as error:
        raise TrinityError(
            "BAD_DATA",
            f"Manifest '{store.path(name)}' of table '{table.full_name}' is missing; {REMEDY}",
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise TrinityError(
            "BAD_DATA",
            f"Manifest '{store.path(name)}' of table '{table.full_name}' is corrupt ({error}); {REMEDY}",
        ) from error


def _check_follows(store: ObjectStore, table: TableHandle, before: TableVersion, change: Manifest) -> None:
    """Refuse a manifest whose parent is not the version before it. Raises BAD_DATA."""
    if change.parent and before.commit and change.parent != before.commit:
        raise _two_histories(store, table, change.number)


def _check_same(store: ObjectStore, table: TableHandle, checkpoint: TableVersion) -> None:
    """Refuse a checkpoint that was made from another commit than the manifest of its version. Raises BAD_DATA."""
    if checkpoint.commit and _commit_of(store, table, checkpoint.number) not in ("", checkpoint.commit):
        raise _two_histories(store, table, checkpoint.number)


def _two_histories(store: ObjectStore, table: TableHandle, number: int) -> TrinityError:
    return TrinityError(
        "BAD_DATA",
        f"Manifest '{store.path(manifest_name(number))}' of table '{table.full_name}' does not follow the version that "
        "lies beside it: the folder holds versions of two histories, or of two tables, as when a copy is put over a "
        f"table that went on; {REMEDY}",
    )


def _commit_of(store: ObjectStore, table: TableHandle, number: int) -> str:
    """Return the id of a version's commit, as its manifest has it; empty where that is damaged."""
    try:
        return _change(store, table, number).commit
    except TrinityError as error:
        if error.code != "BAD_DATA":
            raise
        return ""


def _checkpoint(store: ObjectStore, number: int) -> TableVersion | None:
    """Return a checkpoint; None where it is missing or damaged, in which case manifests are read."""
    name = checkpoint_name(number)
    try:
        return from_checkpoint(store, read_json(store, name))
    except FileNotFoundError:
        return None
    except (TrinityError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, TrinityError) and error.code != "BAD_DATA":
            raise
        _log.warning("Checkpoint '%s' is corrupt; manifests are read instead: %s", store.path(name), error)
        return None


def _born(store: ObjectStore, table: TableHandle) -> Stat:
    """Return ``stat`` of the table's first manifest. Raises TABLE_NOT_FOUND."""
    found = _stat(store)
    if found is None:
        raise no_table(table.full_name)
    return found


def _stat(store: ObjectStore) -> Stat | None:
    """Return what tells a table from others that had its name: its first manifest's ``stat``; None without a table.

    In a bucket it is a constant: there each table has a folder of its own.
    """
    return store.stat(manifest_name(0)) if store.on_disk else Stat(0, 0, "")


def _history_entry(change: Manifest) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit."""
    details = {
        "added_files": len(change.added),
        "added_rows": sum(f.rows for f in change.added),
        "removed_files": len(change.removed),
    }
    return HistoryEntry(change.number, change.timestamp_ms, change.operation, details, change.commit)
