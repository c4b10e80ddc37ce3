"""Versions: manifests and checkpoints to the state of a table."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from trinity.errors import TrinityError
from trinity.spi import HistoryEntry, TableHandle
from trinity.storage import KEEPS_ROWS, Cache, FileChange, Location, ObjectStore, Stat, TableVersion, logger, version_at
from trinity_parquet.history import history_entry
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

__all__ = ["Snapshots", "is_table"]

_log = logger(__name__)
_CACHED: Final = 256
_ENTRIES: Final = 10_000
"""Commits whose deeds are remembered."""
_LISTED_BACK: Final = 400
"""Versions whose manifests and checkpoints are listed first."""


def is_table(folder: Location) -> bool:
    """True for a folder with a manifest of Trinity's."""
    return ObjectStore(folder).exists(manifest_name(0))


@dataclass(frozen=True)
class _Known:
    """The memory of a table.

    Attributes:
        born: facts about its first manifest.
        newest: the newest version seen.
        stamp: facts about the manifest of that version: another one is there once the table was put back.
    """

    born: Stat
    newest: int
    stamp: Stat | None


class Snapshots:
    """Loads versions, and keeps those that were used last: a version never changes.

    A table that was dropped and made again under its name is told from the one before by its first manifest, one that
    was put back to an earlier state by the manifest of the newest version.
    """

    def __init__(self) -> None:
        self._versions: Cache[tuple[str, Stat, int], TableVersion] = Cache(_CACHED)
        self._entries: Cache[tuple[str, Stat, int], HistoryEntry] = Cache(_ENTRIES)
        self._known: dict[str, _Known] = {}
        self._mutex = threading.Lock()

    def load(self, table: TableHandle) -> TableVersion:
        """The handle's version, or the newest.

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
        """Number of the newest version. Raises TABLE_NOT_FOUND."""
        store = ObjectStore(table.location)
        return self._newest(store, table, _born(store, table))

    def read(self, table: TableHandle, number: int) -> TableVersion:
        """A version by its number. Raises TABLE_NOT_FOUND, BAD_DATA."""
        store = ObjectStore(table.location)
        return self._version(store, table, _born(store, table), number)

    def history(self, table: TableHandle, oldest: int, newest: int) -> list[HistoryEntry]:
        """The deeds of some versions, oldest first."""
        store = ObjectStore(table.location)
        born = _born(store, table)

        def read(number: int) -> HistoryEntry:
            return history_entry(_change(store, table, number))

        return [
            self._entries.get((store.root, born, number), partial(read, number)) for number in range(oldest, newest + 1)
        ]

    def changes(self, pinned: TableHandle, newest: TableVersion) -> list[FileChange] | None:
        """The commits since a version, compactions left out; None once vacuum has forgotten that version."""
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
        """True when a version can be read without the manifests before it."""
        store = ObjectStore(table.location)
        return _checkpoint(store, number) is not None or begins(_change(store, table, number))

    def keep(self, table: TableHandle, version: TableVersion) -> None:
        """Remembers a version that this process has committed, so that it is not read back."""
        store = ObjectStore(table.location)
        born = _stat(store)
        if born is not None:
            self._versions.put((store.root, born, version.number), version)
            if store.on_disk:  # elsewhere a look is a request
                known = _Known(born, version.number, store.stat(manifest_name(version.number)))
                with self._mutex:
                    self._known[store.root] = known

    def forget(self, table: TableHandle) -> None:
        """Drops what is remembered of a table's versions."""
        root = ObjectStore(table.location).root
        self._versions.drop(lambda key: key[0] == root)
        self._entries.drop(lambda key: key[0] == root)

    def _newest(self, store: ObjectStore, table: TableHandle, born: Stat) -> int:
        """The highest version: counted on from the newest one known, else found by listing.

        A vacuum deletes manifests from the lowest number on, but the first: so where the one that was counted to is
        still there, no higher one was deleted.
        """
        with self._mutex:
            known = self._known.get(store.root)
        if known is not None and known.born != born:
            known = None
        look = _counted if store.on_disk else _listed
        found = look(store, table, born, known)
        if found is None:  # another manifest is where the newest one was: the table was put back to an earlier state
            self.forget(table)
            found = look(store, table, born, None)
        assert found is not None
        with self._mutex:
            self._known[store.root] = found
        return found.newest

    def _version(self, store: ObjectStore, table: TableHandle, born: Stat, number: int) -> TableVersion:
        return self._versions.get((store.root, born, number), lambda: self._replay(store, table, born, number))

    def _replay(self, store: ObjectStore, table: TableHandle, born: Stat, number: int) -> TableVersion:
        """From the nearest known version below: a cached one, a checkpoint, or the beginning."""
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
        if not changes and found.operation == "":  # a checkpoint by itself
            _check_same(store, table, found)
        for change in reversed(changes):
            _check_follows(store, table, found, change)
            found = change.applied(found)
        if not found.commit:  # a checkpoint of an older release does not say it
            found = replace(found, commit=_commit_of(store, table, number))
        return found


class _Checkpoints:
    """The checkpoints of a table: asked for one by one on a disk, and of all at once where a question is a request.

    Args:
        store: the table.
        number: the version up to which they are asked for.
    """

    def __init__(self, store: ObjectStore, number: int) -> None:
        self._store = store
        self._listed = max(0, number - _LISTED_BACK)

    def read(self, number: int) -> TableVersion | None:
        """A version's checkpoint; None where there is none."""
        if self._store.on_disk:
            return _checkpoint(self._store, number)
        names = self._newest if number > self._listed else self._all
        return _checkpoint(self._store, number) if checkpoint_name(number) in names else None

    @cached_property
    def _newest(self) -> frozenset[str]:
        """The names behind a version near by, which one request lists however many there are before."""
        return frozenset(entry.path for entry in self._store.list(LOG, after=manifest_name(self._listed)))

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(entry.path for entry in self._store.list(LOG))


def _hinted(store: ObjectStore) -> int:
    """A version that is there, or was before a vacuum; 0 where nothing says so."""
    try:
        number = json.loads(store.get(NEWEST))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
    return number if isinstance(number, int) and number > 0 else 0


def _counted(store: ObjectStore, table: TableHandle, born: Stat, known: _Known | None) -> _Known | None:
    """The newest version of a table on a disk; None where the manifest of the one known is another by now."""
    at = start = known.newest if known else _hinted(store)
    stamp = store.stat(manifest_name(at))
    if known and stamp != known.stamp:
        return None
    while (behind := store.stat(manifest_name(at + 1))) is not None:
        at, stamp = at + 1, behind
    if at == start and (at == 0 or stamp is None):
        at = max(_stamps(store), default=0)
        stamp = store.stat(manifest_name(at))
    return _Known(born, at, stamp)


def _listed(store: ObjectStore, table: TableHandle, born: Stat, known: _Known | None) -> _Known | None:
    """The newest version by one listing, which begins with the newest one known: it is gone with its table.

    None where the manifest of that one is another by now.
    """
    start = known.newest if known else _hinted(store)
    found = _stamps(store, manifest_name(start - 1) if start else None)
    if known and found.get(start) != known.stamp:
        return None
    if not found and start and store.exists(manifest_name(0)):  # a hint that says too much
        found = _stamps(store)
    if not found:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).")
    newest = max(found)
    return _Known(born, newest, found[newest])


def _stamps(store: ObjectStore, after: str | None = None) -> dict[int, Stat]:
    """The versions whose manifests are there -> facts about these, as a listing has them."""
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
    """Refuse a manifest that was made behind another version than the one that is there. Raises BAD_DATA."""
    if change.parent and before.commit and change.parent != before.commit:
        raise _two_histories(store, table, change.number)


def _check_same(store: ObjectStore, table: TableHandle, checkpoint: TableVersion) -> None:
    """Refuse a checkpoint of another version than that of the manifest beside it. Raises BAD_DATA."""
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
    """A checkpoint; None where there is none, or a damaged one, which manifests stand in for."""
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
    """The facts about the table's first manifest. Raises TABLE_NOT_FOUND."""
    found = _stat(store)
    if found is None:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).")
    return found


def _stat(store: ObjectStore) -> Stat | None:
    """The facts that tell the table from one before it: none in an object store, where each has a place of its own."""
    return store.stat(manifest_name(0)) if store.on_disk else Stat(0, 0, "")
