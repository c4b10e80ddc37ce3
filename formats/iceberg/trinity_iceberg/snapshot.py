"""Versions: their files and their entries in ``history()``, and a cache of the versions that were read."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from trinity.spi import CommitOperation, DataFile, HistoryEntry, SplitSource, TableHandle, arrival_order
from trinity.storage import Cache, FileChange, ObjectStore
from trinity.storage.location import local_path
from trinity_iceberg.adopt import check_own_readable, check_partition_values
from trinity_iceberg.carried import DEFINITION, OPERATION, appended, index_of, indexes, lineage, order_of, version_of
from trinity_iceberg.deletes import deletes_of, with_deletes
from trinity_iceberg.deletes_of_others import with_deletes_of_others
from trinity_iceberg.external import IcebergScan, external_storage
from trinity_iceberg.index import open_index
from trinity_iceberg.manifests import Columns, WrittenEntries, data_file, delete_files, live_manifests, read_manifests
from trinity_iceberg.partition import from_record
from trinity_iceberg.schema import read_schema
from trinity_iceberg.state import State

CACHED_MANIFESTS: Final = 2000
CACHED_VERSIONS: Final = 32

_Files = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]  # live files in arrival order, and the sidecar


class Snapshots:
    """A reader of versions, which keeps them in memory.

    Attributes:
        entries: the entries of manifests that this process has written.
    """

    def __init__(self) -> None:
        self.entries = WrittenEntries()
        self._manifests: Cache[tuple[str, int], tuple[DataFile, ...]] = Cache(CACHED_MANIFESTS)
        self._lists: Cache[str, list[ManifestFile]] = Cache(CACHED_VERSIONS)
        self._versions: Cache[tuple[str, int, int], _Files] = Cache(CACHED_VERSIONS)

    def manifest_list(self, table: Table, snapshot: Snapshot | None) -> list[ManifestFile]:
        """Return the manifests of a snapshot that still have files."""
        if snapshot is None:
            return []
        return self._lists.get(snapshot.manifest_list, lambda: live_manifests(read_manifests(table.io, snapshot)))

    def remember(self, location: str, manifests: list[ManifestFile]) -> None:
        """Remember the list of manifests that a commit has written, so that it is not read back."""
        self._lists.put(location, live_manifests(manifests))

    def split_source(self, handle: TableHandle, newest: State) -> SplitSource:
        """Return the handle's version as a read needs it; ``newest`` is the newest version."""
        state, metadata, table = newest.at(handle), newest.metadata, newest.loaded
        snapshot, storage = state.snapshot, read_schema(metadata, state.schema)
        state.check_readable(handle)
        native = None
        if state.definition.external:
            storage = external_storage(table, state.schema)
            manifests = partial(self.manifest_list, table, snapshot)
            native = IcebergScan(handle, table, snapshot, state.schema, storage, manifests)
        files, sidecar = self.files(handle, state)
        return SplitSource(
            version=state.version,
            timestamp_ms=snapshot.timestamp_ms if snapshot else metadata.last_updated_ms,
            definition=state.definition,
            storage=storage,
            files=files,
            sidecar=sidecar,
            native=native,
            order=order_of(metadata, snapshot),
            commit=_commit_of(snapshot),
        )

    def history(self, table: Table) -> list[HistoryEntry]:
        """Return the entries of the readable versions, oldest first."""
        entries = [_history_entry(snapshot) for snapshot in lineage(table.metadata)]
        made_ms = table.metadata.last_updated_ms
        return entries or [HistoryEntry(0, made_ms, CommitOperation.CREATE, commit=_commit_of(None))]

    def changes(self, pinned: TableHandle, newest: State) -> list[FileChange] | None:
        """Return the commits since a version, without compactions; None if the version expired, or was rolled back.

        Each commit is given as the difference of two snapshots, so other engines' commits are exact too.
        """
        chain = lineage(newest.metadata)
        versions = [version_of(s) for s in chain]
        if not chain:
            return [] if not pinned.version else None
        if pinned.version not in versions:
            return None
        return [
            self._file_change(pinned, newest, before, after)
            for before, after in pairwise(chain[versions.index(pinned.version) :])
            if not _history_entry(after).keeps_rows
        ]

    def _file_change(self, pinned: TableHandle, newest: State, before: Snapshot, after: Snapshot) -> FileChange:
        table = newest.loaded
        was, now = (self.files(pinned, replace(newest, snapshot=s))[0] for s in (before, after))
        known, live = ({f.path for f in files} for files in (was, now))
        removed = not known <= live or delete_files(table, before) != delete_files(table, after)
        return FileChange(version_of(after), [f for f in now if f.path not in known], removed)

    def files(self, handle: TableHandle, state: State) -> _Files:
        """Return live files and the sidecar, with the column names of the state's schema."""
        if (snapshot := state.snapshot) is None:
            return (), ()
        key = (str(state.metadata.table_uuid), snapshot.snapshot_id, state.schema.schema_id)
        return self._versions.get(key, lambda: self._read(handle, state.loaded, snapshot, state.schema))

    def _read(self, handle: TableHandle, table: Table, snapshot: Snapshot, schema: Schema) -> _Files:
        store = ObjectStore(handle.location)
        index = open_index(store, index_of(table.metadata, snapshot))
        found = []
        manifests = self.manifest_list(table, snapshot)
        check_own_readable(table, schema, manifests, snapshot)
        for manifest in manifests:
            if manifest.content != ManifestContent.DATA:
                continue
            found += [index.apply(f, store.relative(f.path)) for f in self.manifest_files(table, manifest, schema)]
        if DEFINITION in table.properties:
            check_partition_values(table, schema, found)
            found = with_deletes(found, deletes_of(table, manifests))
        else:
            found = with_deletes_of_others(table, schema, manifests, found, external_storage(table, schema))
        return tuple(sorted(found, key=arrival_order)), index.sidecar

    def manifest_files(self, table: Table, manifest: ManifestFile, schema: Schema) -> tuple[DataFile, ...]:
        """Return the live files of one manifest, without the facts of the file index."""

        def read() -> tuple[DataFile, ...]:
            columns, spec = Columns(schema), table.specs()[manifest.partition_spec_id]
            snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
            known = appended(table.metadata)
            return tuple(
                replace(
                    data_file(e, columns, snapshots.get(e.snapshot_id or 0), known),
                    partition=from_record(spec, schema, e.data_file.partition),
                )
                for e in self.entries.of(table.io, manifest)
            )

        return self._manifests.get((manifest.manifest_path, schema.schema_id), read)

    def referenced(self, handle: TableHandle, table: Table) -> set[str]:
        """Return the absolute paths of all files, data and metadata, that the table's remaining snapshots need."""
        metadata = table.metadata
        store = ObjectStore(handle.location)
        needed = {local_path(table.metadata_location)}
        needed |= {local_path(e.metadata_file) for e in metadata.metadata_log}
        needed |= {local_path(s.statistics_path) for s in metadata.statistics if s.snapshot_id > 0}
        manifests: dict[str, ManifestFile] = {}
        for snapshot in metadata.snapshots:
            needed.add(local_path(snapshot.manifest_list))
            manifests.update((m.manifest_path, m) for m in read_manifests(table.io, snapshot))
        for manifest in manifests.values():
            needed.add(local_path(manifest.manifest_path))
            needed.update(f.path for f in self.manifest_files(table, manifest, table.schema()))
        for name in indexes(metadata):
            needed.add(store.path(name))
            needed.update(f.path for f in open_index(store, name).sidecar)
        return needed


_COUNTED: Final = {
    "added_files": "added-data-files",
    "added_rows": "added-records",
    "removed_files": "deleted-data-files",
}
"""Name in ``history()`` -> name in a snapshot's summary."""


def _history_entry(snapshot: Snapshot) -> HistoryEntry:
    """Return the entry of ``history()`` for a commit."""
    details = {"snapshot_id": snapshot.snapshot_id, **_details(snapshot)}
    commit = _commit_of(snapshot)
    same_rows = snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE
    return HistoryEntry(version_of(snapshot), snapshot.timestamp_ms, _operation(snapshot), details, commit, same_rows)


def _commit_of(snapshot: Snapshot | None) -> str:
    """Return the id of a commit's snapshot, which identifies it; 0 before the first one."""
    return str(snapshot.snapshot_id if snapshot else 0)


def _operation(snapshot: Snapshot) -> str:
    """Return the operation of a commit: Trinity's name, or Iceberg's for commits of other engines."""
    summary = snapshot.summary
    if summary is None:
        return CommitOperation.APPEND
    return summary.additional_properties.get(OPERATION, summary.operation.value)


def _details(snapshot: Snapshot) -> dict[str, int]:
    """Return a commit's counts of added and removed files and rows, under the names that ``history()`` has."""
    own = snapshot.summary.additional_properties if snapshot.summary else {}
    return {name: int(own.get(key, 0)) for name, key in _COUNTED.items()}
