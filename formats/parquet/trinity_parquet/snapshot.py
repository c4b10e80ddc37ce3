"""Versions: manifests and checkpoints to the state of a table."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from trinity.errors import TrinityError
from trinity.spi import HistoryEntry, SplitSource, TableHandle, Tier
from trinity.storage import ObjectStore
from trinity_parquet.commit import LOG, Change, State, checkpoint_name, manifest_name, read_json
from trinity_parquet.schema import storage_schema

__all__ = ["Snapshots"]

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
            TrinityError: TABLE_NOT_FOUND, INVALID_ARGUMENTS (no such version, or vacuumed), BAD_DATA.
        """
        store = ObjectStore(table.location)
        born = _born(store, table)
        newest = self._newest(store, table, born)
        current = self._state(store, table, born, newest)
        if table.version is None or table.version == newest:
            return current
        if not current.oldest <= table.version <= newest:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one "
                f"is {current.oldest}, the newest {newest}.",
            )
        return self._state(store, table, born, table.version)

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

    def _newest(self, store: ObjectStore, table: TableHandle, born: int) -> int:
        """The highest version: counted on from the newest one known, else found by listing."""
        with self._mutex:
            known = self._known.get((store.root, born))
        if known is None:
            names = [e.path for e in store.list(LOG) if _is_manifest(e.path)]
            known = max((int(n[len(LOG) + 1 :].split(".")[0]) for n in names), default=0)
        while store.exists(manifest_name(known + 1)):
            known += 1
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
                if change.version == 0 and change.definition:
                    state = State(0, change.timestamp_ms, change.definition)
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
                f"Manifest '{store.path(name)}' of table '{table.full_name}' is missing; restore it from a copy.",
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise TrinityError(
                "BAD_DATA", f"Manifest '{store.path(name)}' of table '{table.full_name}' is corrupt: {error!r}."
            ) from error


def _is_manifest(name: str) -> bool:
    stem = name[len(LOG) + 1 :]
    return stem.endswith(".json") and not stem.endswith(".checkpoint.json") and not stem.startswith(".")


def _checkpoint(store: ObjectStore, version: int) -> State | None:
    try:
        return State.from_dict(read_json(store, checkpoint_name(version)))
    except FileNotFoundError:
        return None


def _born(store: ObjectStore, table: TableHandle) -> int:
    """Tells a table from one that was dropped and made again under its name: when its first manifest was written."""
    try:
        return os.stat(store.path(manifest_name(0))).st_mtime_ns
    except FileNotFoundError as error:
        raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).") from error
