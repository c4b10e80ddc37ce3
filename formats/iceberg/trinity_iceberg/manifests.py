"""Manifests, their lists and their entries: those of a snapshot, and those that a commit writes."""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, cast

from pyiceberg import types as it
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.types import IcebergType
from pyiceberg.utils.truncate import truncate_upper_bound_binary_string

from trinity.errors import TrinityError
from trinity.spi import ColumnStats, DataFile, Origin
from trinity.storage import Cache, Location
from trinity.storage.location import local_path
from trinity.storage.parquet_sink import is_sink_file, upper_bound
from trinity_iceberg.index import bad_data
from trinity_iceberg.partition import to_record
from trinity_iceberg.schema import column_paths, python_value
from trinity_iceberg.swap import writing

BOUND_LENGTH: Final = 64
"""Longer bounds of strings and binaries are shortened, as Iceberg writers do; they stay bounds."""

_MOST_KEPT: Final = 100
"""Entries of the largest manifest that is remembered."""


def read_manifests(io: FileIO, snapshot: Snapshot | None) -> list[ManifestFile]:
    """Return the manifests of a snapshot, newest first."""
    if snapshot is None:
        return []
    with bad_data(snapshot.manifest_list):
        return list(read_manifest_list(io.new_input(snapshot.manifest_list)))


def manifests_of_commit(io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
    """Return the manifests that a snapshot's own commit wrote."""
    return [m for m in read_manifests(io, snapshot) if m.added_snapshot_id == snapshot.snapshot_id]


def live_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests that still have files."""
    return [m for m in manifests if m.has_added_files() or m.has_existing_files()]


def read_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the live entries of a manifest, with their sequence numbers."""
    with bad_data(manifest.manifest_path):
        return manifest.fetch_manifest_entry(io, discard_deleted=True)


def removed_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the entries of files that a manifest marks as removed; it is not read where it counts none."""
    if manifest.deleted_files_count == 0:
        return []
    with bad_data(manifest.manifest_path):
        entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    return [entry for entry in entries if entry.status == ManifestEntryStatus.DELETED]


def schema_with(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """Return the newest schema that has the columns of a partition spec, which a replaced table may have left."""
    sources = {field.source_id for field in spec.fields}
    schemas = (metadata.schema(), *reversed(metadata.schemas))
    return next((s for s in schemas if sources <= s.field_ids), metadata.schema())


def delete_files(table: Table, snapshot: Snapshot | None) -> frozenset[str]:
    """Return the paths of a snapshot's manifests of delete files."""
    found = read_manifests(table.io, snapshot)
    return frozenset(m.manifest_path for m in found if m.content != ManifestContent.DATA)


def _numbered(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    """Return the entry with sequence numbers inherited from its manifest, as a reader does."""
    if entry.status != ManifestEntryStatus.ADDED:
        return entry
    own, of_file = entry.sequence_number, entry.file_sequence_number
    return ManifestEntry.from_args(
        status=entry.status,
        snapshot_id=entry.snapshot_id,
        sequence_number=manifest.sequence_number if own is None else own,
        file_sequence_number=manifest.sequence_number if of_file is None else of_file,
        data_file=entry.data_file,
    )


class WrittenEntries:
    """A cache of the live entries of written manifests, so that they are not read back: decoding them is slow."""

    def __init__(self) -> None:
        self._known: Cache[str, list[ManifestEntry]] = Cache(_MOST_KEPT * 100, lambda entries: len(entries) + 1)

    def put(self, path: str, entries: list[ManifestEntry]) -> None:
        """Remember the entries of a manifest, unless there are many: then a commit takes long anyway."""
        if len(entries) <= _MOST_KEPT:
            self._known.put(path, entries)

    def of(self, io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return the live entries of a manifest, with their sequence numbers."""
        known = self._known.peek(manifest.manifest_path)
        return read_entries(io, manifest) if known is None else [_numbered(entry, manifest) for entry in known]


class NewManifests:
    """The manifests that a commit writes, and removes when it fails."""

    def __init__(self, table: Table, snapshot_id: int, entries: WrittenEntries) -> None:
        self._table = table
        self._entries = entries
        self._snapshot_id = snapshot_id
        self._paths: list[str] = []

    def manifest(
        self,
        entries: Iterable[ManifestEntry],
        spec: PartitionSpec | None = None,
        writer: Callable[..., ManifestWriter] | None = None,
        schema: Schema | None = None,
    ) -> ManifestFile:
        """Write a manifest: by default of data files, with the table's partition spec and a schema that fits it.

        Raises:
            TrinityError: FILESYSTEM_ERROR, PERMISSION_DENIED.
        """
        output, own = self._table.io.new_output(self._new_path("m")), spec or self._table.spec()
        version, codec = self._table.metadata.format_version, self._compression()
        arguments = (own, schema or schema_with(self._table.metadata, own), output, self._snapshot_id, codec)
        written = write_manifest(version, *arguments) if writer is None else writer(*arguments)
        live = list[ManifestEntry]()
        with writing(self._table), written as opened:
            for entry in entries:
                opened.add_entry(entry)
                if entry.status != ManifestEntryStatus.DELETED:
                    live.append(entry)
        found = opened.to_manifest_file()
        if writer is None and version > 1:
            self._entries.put(found.manifest_path, live)
        return found

    def manifest_list(
        self, manifests: list[ManifestFile], parent: Snapshot | None, sequence: int
    ) -> tuple[str, list[ManifestFile]]:
        """Write the list of a snapshot's manifests. Return its location, and the list. Raises as :meth:`manifest`."""
        path = self._new_path(f"snap-{self._snapshot_id}")
        output, version = self._table.io.new_output(path), self._table.metadata.format_version
        parent_id = parent.snapshot_id if parent else None
        opened = write_manifest_list(version, output, self._snapshot_id, parent_id, sequence, self._compression())
        with writing(self._table), opened as writer:
            listed = [writer.prepare_manifest(manifest) for manifest in manifests]  # with sequence numbers for new ones
            writer.add_manifests(listed)
        return path, listed

    def discard(self) -> None:
        """Remove the files that were written."""
        for path in self._paths:
            with contextlib.suppress(OSError, TrinityError):
                self._table.io.delete(path)

    def _compression(self) -> AvroCompressionCodec:
        # "gzip" is Iceberg's name for Avro's deflate; PyIceberg's types know only the latter
        return cast(AvroCompressionCodec, self._table.properties.get("write.avro.compression-codec", "gzip"))

    def _new_path(self, prefix: str) -> str:
        path = self._table.location_provider().new_metadata_location(f"{prefix}-{uuid.uuid4()}.avro")
        self._paths.append(path)
        return path


def existing(entry: ManifestEntry) -> ManifestEntry:
    """Return the entry of a file that stays."""
    return _with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id)


def deleted(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """Return the entry of a file that a snapshot removes, with that snapshot's id."""
    return _with_status(entry, ManifestEntryStatus.DELETED, snapshot_id)


def _with_status(entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def iceberg_file(file: DataFile, schema: Schema, paths: Mapping[str, int], spec: PartitionSpec) -> IcebergFile:
    """Return a file of a sink as Iceberg lists it. ``paths`` maps column paths to field ids."""
    fields = {f.name: f for f in schema.fields}
    stats = {fields[name]: s for name, s in file.stats.items() if name in fields}
    limits = {f.field_id: _bounds(f.field_type, s) for f, s in stats.items()}
    found = IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=Location.of(file.path).format_uri,
        file_format=FileFormat.PARQUET,
        partition=to_record(spec, schema, file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        column_sizes={paths[p]: size for p, size in file.column_sizes.items() if p in paths},
        value_counts={f.field_id: file.rows for f in stats},
        null_value_counts={f.field_id: s.nulls for f, s in stats.items() if s.nulls is not None},
        nan_value_counts={},
        lower_bounds={i: low for i, (low, _) in limits.items() if low is not None},
        upper_bounds={i: high for i, (_, high) in limits.items() if high is not None},
    )
    found.spec_id = spec.spec_id
    return found


class Columns:
    """The names and types of a schema's columns by field id, for statistics."""

    def __init__(self, schema: Schema) -> None:
        self.top: dict[int, tuple[str, IcebergType]] = {
            f.field_id: (f.name, f.field_type) for f in schema.fields if f.field_type.is_primitive
        }
        self.paths = {field_id: path for path, field_id in column_paths(schema).items()}


def data_file(entry: ManifestEntry, columns: Columns, snapshot: Snapshot | None, appended: Collection[int]) -> DataFile:
    """Return a live file of a manifest, without its partition.

    Args:
        entry: its entry, with both sequence numbers.
        columns: the columns of the schema under which it is read.
        snapshot: the snapshot that added it; None if that has expired.
        appended: the versions of expired snapshots that are known to have added rows.

    Raises:
        TrinityError: NOT_SUPPORTED for a file that is not Parquet.
    """
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
        origin=origin_of(entry, snapshot, appended),
    )


def _stats(file: IcebergFile, columns: Columns) -> dict[str, Any]:
    low, high, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    known = columns.top.keys() & (low.keys() | nulls.keys())
    return {columns.top[i][0]: _column_stats(columns.top[i][1], low.get(i), high.get(i), nulls.get(i)) for i in known}


def _bounds(kind: it.IcebergType, stats: ColumnStats) -> tuple[bytes | None, bytes | None]:
    """Return lower and upper bound in Iceberg's single-value form; None where there is none."""
    if not isinstance(kind, it.PrimitiveType) or stats.min is None or stats.max is None:
        return None, None
    if isinstance(stats.min, float) and (math.isnan(stats.min) or math.isnan(stats.max)):
        return None, None
    low, high = stats.min, stats.max
    if isinstance(low, str | bytes):
        low, high = low[:BOUND_LENGTH], _cut_up(high)
    return to_bytes(kind, low), None if high is None else to_bytes(kind, high)


def _cut_up(value: str | bytes) -> str | bytes | None:
    if isinstance(value, str):
        return upper_bound(value, BOUND_LENGTH)
    return value if len(value) <= BOUND_LENGTH else truncate_upper_bound_binary_string(value, BOUND_LENGTH)


def _column_stats(kind: it.IcebergType, low: bytes | None, high: bytes | None, nulls: int | None) -> ColumnStats:
    """Return statistics as Python values, from those of a manifest."""
    return ColumnStats(_value(kind, low), _value(kind, high), nulls)


def _value(kind: it.IcebergType, data: bytes | None) -> Any:
    if data is None or not isinstance(kind, it.PrimitiveType):
        return None
    try:
        return python_value(kind, from_bytes(kind, data))
    except (OverflowError, ValueError):
        return None


def origin_of(entry: ManifestEntry, snapshot: Snapshot | None, appended: Collection[int] = ()) -> Origin:
    """Return the origin of a file, whose entry has both sequence numbers. Arguments as for :func:`data_file`.

    If the snapshot that added the file has expired (None), a rewritten file still shows by its sequence numbers: the
    file was committed later than its rows.
    """
    if is_sink_file(entry.data_file.file_path.rpartition("/")[2]):
        return Origin.OWN
    if snapshot is None or snapshot.summary is None:
        if entry.sequence_number != entry.file_sequence_number:
            return Origin.REWRITTEN
        return Origin.ADDED if entry.sequence_number in appended else Origin.UNSURE
    return Origin.ADDED if snapshot.summary.operation is Operation.APPEND else Origin.REWRITTEN
