"""Versions: which snapshot a version is, which files it has, and what Trinity carries from commit to commit."""

from __future__ import annotations

import json
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

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
from trinity.spi import Bucket, DataFile, HistoryEntry, SplitSource, TableHandle, Tier, arrival_order
from trinity.storage import ObjectStore, local_path
from trinity_iceberg.external import IcebergScan, check_readable
from trinity_iceberg.partition import from_record
from trinity_iceberg.schema import DEFINITION, column_stats, definition_of, read_schema

__all__ = [
    "INDEX",
    "OPERATION",
    "TXN",
    "FileIndex",
    "Snapshots",
    "carried",
    "lineage",
    "live_manifests",
    "open_index",
    "operation_of",
    "read_entries",
    "read_manifests",
    "sidecar_folder",
    "snapshot_of",
    "version_of",
]

OPERATION: Final = "trinity.operation"
"""Snapshot summary: what Trinity did, as ``history()`` shows it."""
TXN: Final = "trinity.txn"
"""Snapshot summary: JSON object application -> highest recorded version (L4); carried forward."""
INDEX: Final = "trinity.index"
"""Snapshot summary: name of the file index below the table's folder; carried forward."""

CACHED_MANIFESTS: Final = 2000
CACHED_VERSIONS: Final = 32

_Files = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]  # live ones in arrival order, and the sidecar

_K = TypeVar("_K")
_V = TypeVar("_V")


class _Cache(Generic[_K, _V]):
    """The values used last; safe for threads. What it holds never changes: manifests and snapshots are immutable."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[_K, _V] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        with self._mutex:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        value = make()
        with self._mutex:
            self._held[key] = value
            while len(self._held) > self._size:
                self._held.popitem(last=False)
        return value


# -- versions ---------------------------------------------------------------------------------------------


def version_of(snapshot: Snapshot | None) -> int:
    """The version that a snapshot is: its sequence number; 0 for a table without any snapshot."""
    return (snapshot.sequence_number or 0) if snapshot else 0


def lineage(metadata: TableMetadata) -> list[Snapshot]:
    """The snapshots that led to the present one, oldest first, as far as they have not expired."""
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    found = []
    at = metadata.current_snapshot_id
    while at is not None and at in by_id:
        found.append(by_id[at])
        at = by_id[at].parent_snapshot_id
    return found[::-1]


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
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one "
        f"is {oldest}, the newest {version_of(current)}.",
    )


def operation_of(snapshot: Snapshot) -> str:
    """What a commit did: Trinity's word, or Iceberg's for the commits of other engines."""
    summary = snapshot.summary
    if summary is None:
        return "append"
    return summary.additional_properties.get(OPERATION, summary.operation.value)


def carried(metadata: TableMetadata) -> dict[str, str]:
    """What the next commit must carry forward: transactions and file index of the newest Trinity commit.

    Other engines drop unknown keys from their summaries; then the parents have them.
    """
    for snapshot in reversed(lineage(metadata)):
        if found := _carried_by(snapshot):
            return found
    return {}


def _carried_by(snapshot: Snapshot) -> dict[str, str]:
    own = snapshot.summary.additional_properties if snapshot.summary else {}
    return {k: own[k] for k in (TXN, INDEX) if k in own} if OPERATION in own else {}


def _index_of(metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    chain = lineage(metadata)
    known = [s for s in chain if version_of(s) <= version_of(snapshot)]
    for candidate in reversed(known or [snapshot]):
        own = candidate.summary.additional_properties if candidate.summary else {}
        if OPERATION in own:
            return own.get(INDEX)
    return None


# -- the file index: what a manifest cannot say of rewritten files -----------------------------------------


@dataclass(frozen=True)
class FileIndex:
    """Tier, bucket and commit number of the files that compaction wrote, and the sidecar.

    Attributes:
        files: path below the table's folder -> tier, bucket, commit number (K6).
        sidecar: the files with tombstones.
    """

    files: Mapping[str, tuple[Tier, Bucket | None, int | None]] = field(default_factory=dict)
    sidecar: tuple[DataFile, ...] = ()

    def apply(self, file: DataFile, name: str) -> DataFile:
        """A file of a manifest as compaction wrote it; files that no compaction wrote stay as they are."""
        if name not in self.files:
            return file
        tier, bucket, commit = self.files[name]
        return replace(file, tier=tier, bucket=bucket, commit=file.commit if commit is None else commit)

    def save(self, store: ObjectStore) -> str:
        """Writes the index beside the sidecar and returns its name below the table's folder."""
        name = f"{SIDECAR_FOLDER}/index-{uuid.uuid4().hex}.json"
        data = {
            "files": {
                n: [tier.value, [bucket.index, bucket.count, bucket.types] if bucket else None, commit]
                for n, (tier, bucket, commit) in self.files.items()
            },
            "sidecar": [f.moved(store.relative(f.path)).to_dict() for f in self.sidecar],
        }
        store.put_if_absent(name, json.dumps(data, separators=(",", ":")).encode())
        return name


SIDECAR_FOLDER: Final = "_trinity"


def sidecar_folder(location: str) -> str:
    """Absolute folder of the table's sidecar and file index."""
    return f"{location}/{SIDECAR_FOLDER}"


def open_index(store: ObjectStore, name: str | None) -> FileIndex:
    """Reads a file index. Raises BAD_DATA naming it."""
    if name is None:
        return FileIndex()
    with bad_data(store.path(name)):
        data = json.loads(store.get(name))
        files = {n: (Tier(t), Bucket(*b) if b else None, c) for n, (t, b, c) in data["files"].items()}
        sidecar = (DataFile.from_dict(d) for d in data["sidecar"])
        return FileIndex(files, tuple(f.moved(store.path(f.path)) for f in sidecar))


# -- manifests --------------------------------------------------------------------------------------------


@contextmanager
def bad_data(path: str) -> Iterator[None]:
    """Maps whatever a decoder raises on a missing or damaged metadata file to BAD_DATA, naming the file."""
    try:
        yield
    except TrinityError:
        raise
    except PermissionError as error:
        raise TrinityError("PERMISSION_DENIED", f"No permission to read '{path}'.") from error
    except Exception as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise TrinityError(
            "BAD_DATA",
            f"Metadata file '{path}' {what}; restore it from a backup, or read a version that does not need it.",
        ) from error


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
        self._manifests: _Cache[tuple[str, int], tuple[DataFile, ...]] = _Cache(CACHED_MANIFESTS)
        self._versions: _Cache[tuple[str, int, int], _Files] = _Cache(CACHED_VERSIONS)

    def splits(self, handle: TableHandle, table: Table) -> SplitSource:
        """All that a read of the handle's version needs."""
        metadata = table.metadata
        snapshot = snapshot_of(handle, metadata)
        schema = schema_of(metadata, snapshot)
        definition, storage = definition_of(table.name(), metadata, schema), read_schema(metadata, schema)
        native = None
        if definition.external:
            check_readable(handle, metadata)
            native = IcebergScan(
                handle, table, snapshot, storage.names, lambda: live_manifests(read_manifests(table.io, snapshot))
            )
        files, sidecar = self.files(handle, table, snapshot, schema)
        return SplitSource(
            version=version_of(snapshot),
            timestamp_ms=snapshot.timestamp_ms if snapshot else metadata.last_updated_ms,
            definition=definition,
            storage=storage,
            files=files,
            sidecar=sidecar,
            native=native,
        )

    def files(self, handle: TableHandle, table: Table, snapshot: Snapshot | None, schema: Schema) -> _Files:
        """Live files and the sidecar, by the column names of a schema."""
        if snapshot is None:
            return (), ()
        key = (str(table.metadata.table_uuid), snapshot.snapshot_id, schema.schema_id)
        return self._versions.get(key, lambda: self._read(handle, table, snapshot, schema))

    def _read(self, handle: TableHandle, table: Table, snapshot: Snapshot, schema: Schema) -> _Files:
        store = ObjectStore(handle.location)
        index = open_index(store, _index_of(table.metadata, snapshot))
        found = []
        for manifest in live_manifests(read_manifests(table.io, snapshot)):
            if manifest.content != ManifestContent.DATA:
                if DEFINITION not in table.properties:  # the native scan of an external table honours them
                    continue
                raise TrinityError(
                    "NOT_SUPPORTED",
                    f"Version {version_of(snapshot)} of table '{handle.full_name}' has delete files of another engine "
                    f"('{manifest.manifest_path}'); rewrite its data files there, with copy-on-write deletes.",
                )
            found += [index.apply(f, store.relative(f.path)) for f in self.manifest_files(table, manifest, schema)]
        return tuple(sorted(found, key=arrival_order)), index.sidecar

    def manifest_files(self, table: Table, manifest: ManifestFile, schema: Schema) -> tuple[DataFile, ...]:
        """The live files of one manifest, without what the file index says of them."""

        def read() -> tuple[DataFile, ...]:
            columns, spec = _Columns(schema), table.specs()[manifest.partition_spec_id]
            return tuple(
                replace(_to_file(e, columns), partition=from_record(spec, schema, e.data_file.partition))
                for e in read_entries(table.io, manifest)
            )

        return self._manifests.get((manifest.manifest_path, schema.schema_id), read)

    def referenced(self, handle: TableHandle, table: Table) -> set[str]:
        """Absolute paths of all files, data and metadata, that the table's remaining snapshots need."""
        metadata = table.metadata
        store = ObjectStore(handle.location)
        needed = {local_path(table.metadata_location)}
        needed |= {local_path(e.metadata_file) for e in metadata.metadata_log}
        needed |= {local_path(s.statistics_path) for s in metadata.statistics}
        manifests: dict[str, ManifestFile] = {}
        indexes: set[str] = set()
        for snapshot in metadata.snapshots:
            needed.add(local_path(snapshot.manifest_list))
            manifests.update((m.manifest_path, m) for m in read_manifests(table.io, snapshot))
            indexes.update(filter(None, [_index_of(metadata, snapshot)]))
        for manifest in manifests.values():
            needed.add(local_path(manifest.manifest_path))
            needed.update(f.path for f in self.manifest_files(table, manifest, table.schema()))
        for name in indexes:
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


def _to_file(entry: ManifestEntry, columns: _Columns) -> DataFile:
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
    )


def _stats(file: IcebergFile, columns: _Columns) -> dict[str, Any]:
    low, high, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    known = columns.top.keys() & (low.keys() | nulls.keys())
    return {columns.top[i][0]: column_stats(columns.top[i][1], low.get(i), high.get(i), nulls.get(i)) for i in known}


def history_of(metadata: TableMetadata) -> list[HistoryEntry]:
    """The readable commits, oldest first."""
    chain = lineage(metadata)
    if not chain:
        return [HistoryEntry(0, metadata.last_updated_ms, "create")]
    return [
        HistoryEntry(version_of(s), s.timestamp_ms, operation_of(s), {"snapshot_id": s.snapshot_id, **_details(s)})
        for s in chain
    ]


def _details(snapshot: Snapshot) -> dict[str, str]:
    own = snapshot.summary.additional_properties if snapshot.summary else {}
    return {k: v for k, v in own.items() if k.startswith(("added-", "deleted-", "total-"))}
