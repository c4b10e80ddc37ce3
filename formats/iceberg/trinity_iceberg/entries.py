"""Entries of manifests: data files as Iceberg lists them, and their entries in later commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import IcebergType

from trinity.errors import TrinityError
from trinity.spi import DataFile
from trinity.storage import Location, local_path
from trinity_iceberg.order import origin_of
from trinity_iceberg.partition import to_record
from trinity_iceberg.schema import bounds, column_stats
from trinity_iceberg.storage_schema import column_paths

__all__ = ["Columns", "data_file", "deleted", "existing", "iceberg_file"]


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
    """Return a file of a sink as Iceberg lists it; ``paths`` are the field ids of its columns by their paths."""
    fields = {f.name: f for f in schema.fields}
    stats = {fields[name]: s for name, s in file.stats.items() if name in fields}
    limits = {f.field_id: bounds(f.field_type, s) for f, s in stats.items()}
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
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    found.spec_id = spec.spec_id
    return found


class Columns:
    """Names and types of a schema's columns by field id, for statistics."""

    def __init__(self, schema: Schema) -> None:
        self.top: dict[int, tuple[str, IcebergType]] = {
            f.field_id: (f.name, f.field_type) for f in schema.fields if f.field_type.is_primitive
        }
        self.paths = {field_id: path for path, field_id in column_paths(schema).items()}


def data_file(entry: ManifestEntry, columns: Columns, snapshot: Snapshot | None) -> DataFile:
    """Return a live file of a manifest, without its partition.

    Args:
        entry: the file's entry, with both sequence numbers.
        columns: the columns of the schema whose names its statistics use.
        snapshot: the snapshot that added it; None once that has expired.

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
        origin=origin_of(entry, snapshot),
    )


def _stats(file: IcebergFile, columns: Columns) -> dict[str, Any]:
    low, high, nulls = file.lower_bounds or {}, file.upper_bounds or {}, file.null_value_counts or {}
    known = columns.top.keys() & (low.keys() | nulls.keys())
    return {columns.top[i][0]: column_stats(columns.top[i][1], low.get(i), high.get(i), nulls.get(i)) for i in known}
