"""Faults that only writers in several processes show: a format whose versions are objects, which each process opens.

Within one process nothing is wrong with these adapters.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Final

from trinity.spi import (
    EVERYTHING,
    TRANSFORMS,
    Capability,
    Connector,
    ConnectorContext,
    Format,
    SplitSource,
    TableDefinition,
    TableHandle,
    Tier,
)
from trinity.storage import (
    AlreadyExists,
    CommitRaced,
    FolderCatalog,
    FolderMetadata,
    ObjectStore,
    ParquetSinkProvider,
    TableVersion,
    VersionedMetadata,
    identity_only,
)

_LOG: Final = "_versions"
_SNAPSHOT: Final = "_snapshot"


class SharedMetadata(FolderMetadata, VersionedMetadata):
    """The metadata of a catalog of folders. A version is an object, which is put if it is absent."""

    keeps_deletes = True

    def __init__(self, catalog: str, warehouse: str) -> None:
        super().__init__(FolderCatalog(catalog, warehouse, lambda folder: ObjectStore(folder).exists(_LOG)))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "the suite's own format")
        return self.make_table(self._folders.new_table(definition.schema, definition.name), definition)

    def newest_version(self, table: TableHandle) -> int:
        return max(int(name) for name in ObjectStore(table.location).names(_LOG) if name.isdecimal())

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        store = ObjectStore(table.location)
        found: TableVersion = pickle.loads(store.get(f"{_LOG}/{number}"))
        return replace(found, files=tuple(file.moved(store.path(file.path)) for file in found.files))

    def encoded(self, table: TableHandle, version: TableVersion) -> bytes:
        """Return a version as it is stored; its paths are relative, since a new name is a new folder."""
        store = ObjectStore(table.location)
        files = tuple(file.moved(store.relative(file.path)) for file in version.files)
        return pickle.dumps(replace(version, files=files))

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        data = self.encoded(table, version)
        try:
            ObjectStore(table.location).put_if_absent(f"{_LOG}/{version.number}", data)
        except AlreadyExists as taken:
            raise CommitRaced(f"version {version.number} was taken") from taken


class SharedFormat(Format):
    """The format of these catalogs. Its one option is ``warehouse``."""

    metadata: ClassVar[type[SharedMetadata]] = SharedMetadata

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - TRANSFORMS - {Capability.EXTERNAL_TABLES, Capability.COMMITS_IN_STORAGE}

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        return Connector(self.metadata(catalog, str(options["warehouse"])), ParquetSinkProvider())


class _LookedForFirst(SharedMetadata):
    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        store, name = ObjectStore(table.location), f"{_LOG}/{version.number}"
        if store.exists(name):
            raise CommitRaced(f"version {version.number} was taken")
        store.make_folder(_LOG)
        store.put(name, self.encoded(table, version))


class VersionsAreLookedForFirst(SharedFormat):
    """A version is put after a look that it is absent, and not only if it is (against L7)."""

    metadata = _LookedForFirst


class _TakenDeleted(SharedMetadata):
    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        store, name = ObjectStore(table.location), f"{_LOG}/{version.number}"
        if store.exists(name):
            store.delete([store.path(name)])
        super().write_version(table, version)


class TakenVersionsAreDeleted(SharedFormat):
    """A version of another writer that has the number of the next one is deleted (against L7)."""

    metadata = _TakenDeleted


class _FirstInPlace(SharedMetadata):
    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        if version.number == 1:
            ObjectStore(table.location).put(f"{_LOG}/1", self.encoded(table, version))
        else:
            super().write_version(table, version)


class FirstCommitOverwrites(SharedFormat):
    """The first commit of a new table is put in place of another writer's first one (against L7)."""

    metadata = _FirstInPlace


class _LockedByThread(_LookedForFirst):
    _lock: ClassVar = threading.Lock()

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        with self._lock:
            super().write_version(table, version)


class LockOfThreads(SharedFormat):
    """Writers are kept apart by a lock that other processes do not see (against L7)."""

    metadata = _LockedByThread


class _OwnNewest(SharedMetadata):
    def __init__(self, catalog: str, warehouse: str) -> None:
        super().__init__(catalog, warehouse)
        self._known: dict[str, int] = {}

    def newest_version(self, table: TableHandle) -> int:
        if table.location not in self._known:
            self._known[table.location] = super().newest_version(table)
        return self._known[table.location]

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        self._known.pop(table.location, None)
        super().write_version(table, version)


class NewestOfThisProcess(SharedFormat):
    """The newest version is remembered, until this process commits the next one (against L7)."""

    metadata = _OwnNewest


class _SnapshotFirst(SharedMetadata):
    def get_splits(self, table: TableHandle) -> SplitSource:
        splits = super().get_splits(table)
        with suppress(FileNotFoundError):
            snapshot: TableVersion = pickle.loads(ObjectStore(table.location).get(_SNAPSHOT))
            if table.version is None and snapshot.number > splits.version:
                files = tuple(file for file in snapshot.files if file.tier is not Tier.SIDECAR)
                return replace(splits, files=files)
        return splits

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        if version.number:
            ObjectStore(table.location).put(_SNAPSHOT, pickle.dumps(version))
        super().write_version(table, version)


class SnapshotsBeforeVersions(SharedFormat):
    """A snapshot, by which tables are read, is put before the version that it is of (against L7)."""

    metadata = _SnapshotFirst


SHARED: Final[tuple[type[SharedFormat], ...]] = (
    VersionsAreLookedForFirst, TakenVersionsAreDeleted, FirstCommitOverwrites, LockOfThreads, NewestOfThisProcess,
    SnapshotsBeforeVersions,
)  # fmt: skip
"""The formats with a fault each."""
