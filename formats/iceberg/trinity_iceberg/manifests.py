"""Manifests and manifest lists: those of a snapshot, and those that a commit writes."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable
from typing import Final, cast

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
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
from pyiceberg.table.snapshots import Snapshot

from trinity.errors import TrinityError
from trinity.storage import Cache
from trinity_iceberg.index import bad_data
from trinity_iceberg.swap import writing

__all__ = [
    "NewManifests", "WrittenEntries", "delete_files", "live_manifests", "read_entries", "read_manifests", "schema_with",
]  # fmt: skip


def read_manifests(io: FileIO, snapshot: Snapshot | None) -> list[ManifestFile]:
    """Return the manifests of a snapshot, newest first."""
    if snapshot is None:
        return []
    with bad_data(snapshot.manifest_list):
        return list(read_manifest_list(io.new_input(snapshot.manifest_list)))


def live_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests that still have files."""
    return [m for m in manifests if m.has_added_files() or m.has_existing_files()]


def read_entries(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the live entries of a manifest, with their sequence numbers."""
    with bad_data(manifest.manifest_path):
        return manifest.fetch_manifest_entry(io, discard_deleted=True)


def schema_with(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """Return the newest schema with the columns of a partition spec, which may be of a table that was replaced."""
    sources = {field.source_id for field in spec.fields}
    schemas = (metadata.schema(), *reversed(metadata.schemas))
    return next((s for s in schemas if sources <= s.field_ids), metadata.schema())


def delete_files(table: Table, snapshot: Snapshot | None) -> frozenset[str]:
    """Return the paths of a snapshot's manifests of delete files."""
    found = read_manifests(table.io, snapshot)
    return frozenset(m.manifest_path for m in found if m.content != ManifestContent.DATA)


def _numbered(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    """Return an entry as it was written with the numbers that an added one has of its manifest, as a reader does."""
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
    """The live entries of manifests that were written, so that they are not read back: decoding them is slow."""

    def __init__(self) -> None:
        self._known: Cache[str, list[ManifestEntry]] = Cache(_MOST_KEPT * 100, lambda entries: len(entries) + 1)

    def put(self, path: str, entries: list[ManifestEntry]) -> None:
        """Remember the entries of a manifest, unless there are many: of such a one reading is a small part."""
        if len(entries) <= _MOST_KEPT:
            self._known.put(path, entries)

    def of(self, io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return the live entries of a manifest, with their sequence numbers."""
        known = self._known.peek(manifest.manifest_path)
        return read_entries(io, manifest) if known is None else [_numbered(entry, manifest) for entry in known]


_MOST_KEPT: Final = 100
"""Entries of the largest manifest that is remembered."""


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
        """Write a manifest.

        Args:
            entries: the entries.
            spec: the partition spec of their files; the table's when left out.
            writer: the class that writes it; the one for data files when left out.
            schema: a schema with the columns of the partition spec; one of the table when left out.

        Raises:
            TrinityError: FILESYSTEM_ERROR, PERMISSION_DENIED.
        """
        output, own = self._table.io.new_output(self._new_path("m")), spec or self._table.spec()
        version, codec = self._table.metadata.format_version, self._compression()
        place = (own, schema or schema_with(self._table.metadata, own), output, self._snapshot_id, codec)
        written = write_manifest(version, *place) if writer is None else writer(*place)
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
            listed = [writer.prepare_manifest(manifest) for manifest in manifests]  # with the numbers of new ones
            writer.add_manifests(listed)
        return path, listed

    def discard(self) -> None:
        """Remove what was written."""
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
