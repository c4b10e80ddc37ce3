"""Versions: which snapshot a version is, which files it has, and what Trinity carries from commit to commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import parquet_path_to_id_mapping
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import FileFormat, ManifestContent, ManifestEntry, ManifestFile, read_manifest_list
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import IcebergType

from trinity.errors import TrinityError
from trinity.spi import DataFile, HistoryEntry, SplitSource, TableHandle, arrival_order
from trinity.storage import Cache, FileChange, ObjectStore, local_path, no_such_version
from trinity_iceberg.adopt import check_own_readable
from trinity_iceberg.carried import index_of, indexes, lineage, version_of
from trinity_iceberg.external import IcebergScan, check_readable
from trinity_iceberg.history import history_entry, is_compaction
from trinity_iceberg.index import bad_data, open_index
from trinity_iceberg.order import order_of, origin_of
from trinity_iceberg.partition import from_record
from trinity_iceberg.schema import column_stats, definition_of, read_schema

__all__ = [
    "Snapshots",
    "delete_files",
    "live_manifests",
    "read_entries",
    "read_manifests",
    "snapshot_of",
]

CACHED_MANIFESTS: Final = 2000
CACHED_VERSIONS: Final = 32

_Files = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]  # live ones in arrival order, and the sidecar


# -- versions ---------------------------------------------------------------------------------------------


def snapshot_of(table: TableHandle, metadata: TableMetadata) -> Snapshot | None:
    """The snapshot of a handle's version, or the newest; None for a table without any.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that is not readable, naming the readable ones.
    """
    current = metadata.current_snapshot()
    if table.version is None or table.version == version_of(current):
        return current
    readable = lineage(metadata)
    for snapshot in readable:
        if version_of(snapshot) == table.version:
            return snapshot
    oldest = version_of(readable[0]) if readable else 0
    raise no_such_version(table, oldest, version_of(current))


# -- manifests --------------------------------------------------------------------------------------------


def read_manifests(io: FileIO, snapshot: Snapshot | None) -> list[ManifestFile]:
    """The manifests of a snapshot, newest first."""
    if snapshot is None:
        return []
    with bad_data(snapshot.manifest_list):
        return list(read_manifest_list(io.new_input(snapshot.manifest_list)))


def live_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """The manifests that still have files."""
    return [m for m in manifests if m.has_added_files() or m.has_existing_files()]


def read_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """The live entries of a manifest, with their sequence numbers."""
    with bad_data(manifest.manifest_path):
        return manifest.fetch_manifest_entry(io, discard_deleted=True)


def delete_files(table: Table, snapshot: Snapshot | None) -> frozenset[str]:
    """The manifests of delete files that a snapshot has."""
    found = read_manifests(table.io, snapshot)
    return frozenset(m.manifest_path for m in found if m.content != ManifestContent.DATA)


class _Columns:
    """Names and types of a schema's columns by field id, for statistics."""

    def __init__(self, schema: Schema) -> None:
        self.top: dict[int, tuple[str, IcebergType]] = {
            f.field_id: (f.name, f.field_type) for f in schema.fields if f.field_type.is_primitive
        }
        self.paths = {field_id: path for path, field_id in parquet_path_to_id_mapping(schema).items()}


class Snapshots:
    """Reads versions, and remembers what it read."""

    def __init__(self) -> None:
        self._manifests: Cache[tuple[str, int], tuple[DataFile, ...]] = Cache(CACHED_MANIFESTS)
        self._lists: Cache[str, list[ManifestFile]] = Cache(CACHED_VERSIONS)
        self._versions: Cache[tuple[str, int, int], _Files] = Cache(CACHED_VERSIONS)

    def manifest_list(self, table: Table, snapshot: Snapshot | None) -> list[ManifestFile]:
        """The manifests of a snapshot that still have files."""
        if snapshot is None:
            return []
        return self._lists.get(snapshot.manifest_list, lambda: live_manifests(read_manifests(table.io, snapshot)))

    def split_source(self, handle: TableHandle, table: Table) -> SplitSource:
        """The version as a read sees it."""
        metadata = table.metadata
        snapshot = snapshot_of(handle, metadata)
        schema = schema_of(metadata, snapshot)
        definition, storage = definition_of(table.name(), metadata, schema), read_schema(metadata, schema)
        native = None
        if definition.external:
            check_readable(handle, metadata)
            native = IcebergScan(handle, table, snapshot, storage.names, lambda: self.manifest_list(table, snapshot))
        files, sidecar = self.files(handle, table, snapshot, schema)
        return SplitSource(
            version=version_of(snapshot),
            timestamp_ms=snapshot.timestamp_ms if snapshot else metadata.last_updated_ms,
            definition=definition,
            storage=storage,
            files=files,
            sidecar=sidecar,
            native=native,
            order=order_of(metadata, snapshot),
        )

    def history(self, table: Table) -> list[HistoryEntry]:
        """The readable versions, oldest first."""
        entries = [history_entry(snapshot) for snapshot in lineage(table.metadata)]
        return entries or [HistoryEntry(0, table.metadata.last_updated_ms, "create")]

    def changes(self, pinned: TableHandle, table: Table) -> list[FileChange] | None:
        """The commits since a version, compactions left out; None once it has expired, or was rolled back.

        Those of two snapshots compared, whoever made the second one.
        """
        chain = lineage(table.metadata)
        versions = [version_of(s) for s in chain]
        if not chain:
            return [] if not pinned.version else None
        if pinned.version not in versions:
            return None
        return [
            self._file_change(pinned, table, before, after)
            for before, after in pairwise(chain[versions.index(pinned.version) :])
            if not is_compaction(after)
        ]

    def _file_change(self, pinned: TableHandle, table: Table, before: Snapshot, after: Snapshot) -> FileChange:
        was, now = (self.files(pinned, table, s, table.schema())[0] for s in (before, after))
        known, live = ({f.path for f in files} for files in (was, now))
        removed = not known <= live or delete_files(table, before) != delete_files(table, after)
        return FileChange(version_of(after), [f for f in now if f.path not in known], removed)

    def files(self, handle: TableHandle, table: Table, snapshot: Snapshot | None, schema: Schema) -> _Files:
        """Live files and the sidecar, by the column names of a schema."""
        if snapshot is None:
            return (), ()
        key = (str(table.metadata.table_uuid), snapshot.snapshot_id, schema.schema_id)
        return self._versions.get(key, lambda: self._read(handle, table, snapshot, schema))

    def live(self, handle: TableHandle, table: Table) -> tuple[DataFile, ...]:
        """The live files of the newest version."""
        return self.files(handle, table, table.metadata.current_snapshot(), table.schema())[0]

    def _read(self, handle: TableHandle, table: Table, snapshot: Snapshot, schema: Schema) -> _Files:
        store = ObjectStore(handle.location)
        index = open_index(store, index_of(table.metadata, snapshot))
        found = []
        manifests = self.manifest_list(table, snapshot)
        check_own_readable(table, schema, manifests, snapshot)
        for manifest in manifests:
            if manifest.content != ManifestContent.DATA:  # the native scan of an external table honours them
                continue
            found += [index.apply(f, store.relative(f.path)) for f in self.manifest_files(table, manifest, schema)]
        return tuple(sorted(found, key=arrival_order)), index.sidecar

    def manifest_files(self, table: Table, manifest: ManifestFile, schema: Schema) -> tuple[DataFile, ...]:
        """The live files of one manifest, without what the file index says of them."""

        def read() -> tuple[DataFile, ...]:
            columns, spec = _Columns(schema), table.specs()[manifest.partition_spec_id]
            snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
            return tuple(
                replace(
                    _to_file(e, columns, snapshots.get(e.snapshot_id or 0)),
                    partition=from_record(spec, schema, e.data_file.partition),
                )
                for e in read_entries(table.io, manifest)
            )

        return self._manifests.get((manifest.manifest_path, schema.schema_id), read)

    def referenced(self, handle: TableHandle, table: Table) -> set[str]:
        """Absolute paths of all files, data and metadata, that the table's remaining snapshots need."""
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


def schema_of(metadata: TableMetadata, snapshot: Snapshot | None) -> Schema:
    """The schema to read a version with.

    The table's own for the newest, which other engines change without making a version; else the one under which
    the version was committed.
    """
    if snapshot is None or snapshot.snapshot_id == metadata.current_snapshot_id or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema_by_id(snapshot.schema_id) or metadata.schema()


def _to_file(entry: ManifestEntry, columns: _Columns, snapshot: Snapshot | None) -> DataFile:
    file = entry.data_file
    if file.file_format != FileFormat.PARQUET:
        raise TrinityError("NOT_SUPPORTED", f"Data file '{file.file_path}' is not Parquet, which is all Trinity reads.")
    sizes = file.column_sizes or {}
    return DataFile(
        path=local_path(file.file_path),
        size=file.file_size_in_bytes,
        rows=file.record_count,
        commit=entry.sequence_number,
        stats=_stats(file, columns),
        column_sizes={columns.paths[i]: size for i, size in sizes.items() if i in columns.paths},
        origin=origin_of(entry, snapshot),
    )


def _stats(file: IcebergFile, columns: _Columns) -> dict[str, Any]:
    low, high, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    known = columns.top.keys() & (low.keys() | nulls.keys())
    return {columns.top[i][0]: column_stats(columns.top[i][1], low.get(i), high.get(i), nulls.get(i)) for i in known}
