"""Entries of manifests: data files as Iceberg lists them, and what becomes of an entry in a later commit."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from trinity.spi import DataFile
from trinity.storage import Location
from trinity_iceberg.partition import to_record
from trinity_iceberg.schema import bounds

__all__ = ["deleted", "existing", "iceberg_file"]


def existing(entry: ManifestEntry) -> ManifestEntry:
    """The entry of a file that stays."""
    return _with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id)


def deleted(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """The entry of a file that a snapshot removes, with that snapshot's id."""
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
    """A file of a sink as Iceberg lists it; ``paths`` are the field ids of its columns by their paths."""
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
