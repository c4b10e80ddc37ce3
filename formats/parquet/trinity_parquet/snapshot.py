"""Versions: manifests and checkpoints to the state of a table."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from trinity.errors import TrinityError
from trinity.secrets import logger
from trinity.spi import HistoryEntry, SplitSource, TableHandle, Tier
from trinity.storage import FileChange, ObjectStore, no_readable_version
from trinity_parquet.commit import LOG, REMEDY, Change, State, checkpoint_name, manifest_name, read_json, version_of
from trinity_parquet.schema import storage_schema

__all__ = ["Snapshots"]

_log = logger(__name__)
_CACHED: Final = 256


class Snapshots:
    """Loads versions, and keeps the states that were used last: a version never changes."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, int, int], State] = OrderedDict()
        self._known: dict[tuple[str, int], int] = {}
        self._mutex = threading.Lock()

    def load(self, table: TableHandle) -> State:
        """The state of the handle's version, or of the newest.

        Raises:
            TrinityError: TABLE_NOT_FOUND, INVALID_ARGUMENTS (no such version, or vacuumed), BAD_DATA;
                TRANSACTION_CONFLICT for a table that was made anew.
        """
        store = ObjectStore(table.location)
        while True:
            born = _born(store, table)
            try:
                return self._load(store, table, born)
            except TrinityError:
                if _born(store, table) == born:  # else it was made anew while it was loaded
                    raise

    def _load(self, store: ObjectStore, table: TableHandle, born: int) -> State:
        newest = self._newest(store, table, born)
        try:
            current = self._state(store, table, born, newest)
        except TrinityError as error:
            if error.code == "BAD_DATA" and table.version is not None and 0 <= table.version < newest:
                return self._state(store, table, born, table.version)  # one that does not need what is damaged
            raise
        table.check_same(current.definition.id)
        if table.version is None or table.version == newest:
            return current
        if not current.oldest <= table.version <= newest:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one "
                f"is {current.oldest}, the newest {newest}.",
            )
        return self._state(store, table, born, table.version)

    def stands_alone(self, table: TableHandle, version: int) -> bool:
        """Whether a version can be read without the manifests before it."""
        store = ObjectStore(table.location)
        return _checkpoint(store, version) is not None or self._change(store, table, version).begins

    def split_source(self, table: TableHandle) -> SplitSource:
        """The version as a read sees it."""
        state = self.load(table)
        names = state.definition.stored_names
        files = [f.moved(f"{table.location}/{f.path}").renamed(names) for f in state.files.values()]
        return SplitSource(
            state.version,
            state.timestamp_ms,
            state.definition,
            storage_schema(state.definition),
            tuple(f for f in files if f.tier is not Tier.SIDECAR),
            tuple(f for f in files if f.tier is Tier.SIDECAR),
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        """The readable versions, oldest first."""
        newest = self.load(replace(table, version=None))
        store = ObjectStore(table.location)
        changes = [self._change(store, table, v) for v in range(newest.oldest, newest.version + 1)]
        return [
            HistoryEntry(
                c.version,
                c.timestamp_ms,
                c.operation,
                {
                    "added_files": len(c.added),
                    "added_rows": sum(f.rows for f in c.added),
                    "removed_files": len(c.removed),
                },
            )
            for c in changes
        ]

    def changes(self, pinned: TableHandle, newest: State) -> list[FileChange] | None:
        """What was committed since a version, compactions left out; None once vacuum has forgotten that version."""
        first = pinned.version or 0
        if first < newest.oldest:
            return None
        store = ObjectStore(pinned.location)
        commits = [self._change(store, pinned, v) for v in range(first + 1, newest.version + 1)]
        return [
            FileChange(c.version, [f.moved(store.path(f.path)).at_commit(c.version) for f in c.added], bool(c.removed))
            for c in commits
            if c.operation != "compact"
        ]

    def newest_readable(self, table: TableHandle) -> tuple[int, State]:
        """(number of the newest version, the newest one that can be read from storage). Raises BAD_DATA if none can."""
        store = ObjectStore(table.location)
        born = _born(store, table)
        with self._mutex:
            for key in [k for k in self._states if k[:2] == (store.root, born)]:
                del self._states[key]
        newest = self._newest(store, table, born)
        for version in range(newest, -1, -1):
            with contextlib.suppress(TrinityError):
                return newest, self._state(store, table, born, version)
        raise no_readable_version(table)

    def _newest(self, store: ObjectStore, table: TableHandle, born: int) -> int:
        """The highest version: counted on from the newest one known, else found by listing.

        A vacuum deletes manifests from the lowest number on, but the first: so where the one that was counted to is
        still there, no higher one was deleted.
        """
        with self._mutex:
            known = self._known.get((store.root, born), 0)
        while store.exists(manifest_name(known + 1)):
            known += 1
        if known == 0 or not store.exists(manifest_name(known)):
            known = max((v for e in store.list(LOG) if (v := version_of(e.path)) is not None), default=0)
        with self._mutex:
            self._known[store.root, born] = known
        return known

    def _state(self, store: ObjectStore, table: TableHandle, born: int, version: int) -> State:
        key = (store.root, born, version)
        with self._mutex:
            if key in self._states:
                self._states.move_to_end(key)
                return self._states[key]
        state = self._replay(store, table, born, version)
        with self._mutex:
            self._states[key] = state
            while len(self._states) > _CACHED:
                self._states.popitem(last=False)
        return state

    def _replay(self, store: ObjectStore, table: TableHandle, born: int, version: int) -> State:
        """From the nearest known state below: a cached one, a checkpoint, or the beginning."""
        changes: list[Change] = []
        state = None
        at = version
        while state is None:
            with self._mutex:
                state = self._states.get((store.root, born, at))
            state = state or _checkpoint(store, at)
            if state is None:
                change = self._change(store, table, at)
                if change.begins:
                    state = State.begun(change)
                else:
                    changes.append(change)
                    at -= 1
        for change in reversed(changes):
            state = state.apply(change)
        return state

    def _change(self, store: ObjectStore, table: TableHandle, version: int) -> Change:
        name = manifest_name(version)
        try:
            return Change.from_dict(read_json(store, name))
        except FileNotFoundError as error:
            raise TrinityError(
                "BAD_DATA",
                f"Manifest '{store.path(name)}' of table '{table.full_name}' is missing; {REMEDY}",
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise TrinityError(
                "BAD_DATA",
                f"Manifest '{store.path(name)}' of table '{table.full_name}' is corrupt ({error!r}); {REMEDY}",
            ) from error


def _checkpoint(store: ObjectStore, version: int) -> State | None:
    """A checkpoint; None where there is none, or a damaged one, which manifests stand in for."""
    name = checkpoint_name(version)
    try:
        return State.from_dict(read_json(store, name))
    except FileNotFoundError:
        return None
    except (TrinityError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, TrinityError) and error.code != "BAD_DATA":
            raise
        _log.warning("Checkpoint '%s' is corrupt; manifests are read instead: %s", store.path(name), error)
        return None


def _born(store: ObjectStore, table: TableHandle) -> int:
    """Tells a table from one that was dropped and made again under its name: when its first manifest was written."""
    try:
        return os.stat(store.path(manifest_name(0))).st_mtime_ns
    except FileNotFoundError as error:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).") from error
