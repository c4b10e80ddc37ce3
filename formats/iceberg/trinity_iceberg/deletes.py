"""Position delete files, as manifests list them.

A delete file that a resolve wrote (R1) is about one data file, which its bounds name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table

from trinity.loggers import logger
from trinity.spi import DataFile, TableHandle
from trinity.storage import Cache, DeletesFragment, Location, PositionDeletes
from trinity.storage.location import local_path
from trinity.storage.position_deletes import PositionDeleteSink, named_files
from trinity_iceberg.manifests import read_entries

_log: Final = logger("trinity.iceberg")
_PATH_ID: Final = 2147483546
"""Field id of ``file_path``, by Iceberg's specification."""


class DeletesWriter(ManifestWriterV2):
    """A writer of a manifest of delete files, which PyIceberg lacks."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class IcebergDeleteSink(PositionDeleteSink):
    """A sink that writes position delete files."""

    encoding = "PLAIN"
    """The encoding of Iceberg's own writers, which every reader knows."""
    ending = ".parquet"
    """The ending of Iceberg's delete files: manifests list them, and other engines read them."""

    def data_file_name(self, file: DataFile) -> str:
        """Return the location of a data file in the table's manifests."""
        return Location.of(file.path).format_uri


def warn_of_views(
    table: TableHandle, version: int, *, before: Iterable[DataFile], deletes: Sequence[DeletesFragment]
) -> None:
    """Warn when a version is the first one with delete files: Spark's changelog view fails from there on."""
    if deletes and not any(file.deletes for file in before):
        _log.warning(
            "%s: version %d has delete files, so that Spark's create_changelog_view fails for it and for later ones: "
            "Trinity's changes() has theirs.",
            table.full_name,
            version,
        )


def delete_file(made: DeletesFragment, of: IcebergFile) -> IcebergFile:
    """Return a position delete file as Iceberg lists it, in the partition of its data file."""
    [path] = made.deletes.paths
    name = of.file_path.encode()
    found = IcebergFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=Location.of(path).format_uri,
        file_format=FileFormat.PARQUET,
        partition=of.partition,
        record_count=made.deletes.rows,
        file_size_in_bytes=made.size,
        lower_bounds={_PATH_ID: name},
        upper_bounds={_PATH_ID: name},
    )
    found.spec_id = of.spec_id
    return found


def target_path(entry: ManifestEntry) -> str | None:
    """Return the absolute path of the one data file that a delete file is about; None if its bounds name several."""
    low, high = path_bounds(entry)
    return local_path(low.decode()) if low and low == high else None


def path_bounds(entry: ManifestEntry) -> tuple[bytes | None, bytes | None]:
    """Return the lowest and the highest name of the data files that a delete file is about; names may be cut off."""
    low, high = ((b or {}).get(_PATH_ID) for b in (entry.data_file.lower_bounds, entry.data_file.upper_bounds))
    return low, high


def position_deletes(table: Table, manifest: ManifestFile) -> Sequence[ManifestEntry] | None:
    """Return the delete files of a manifest; None unless all of them are Parquet files of positions."""
    entries = delete_entries(table, manifest)
    kind = DataFileContent.POSITION_DELETES, FileFormat.PARQUET
    return entries if all((e.data_file.content, e.data_file.file_format) == kind for e in entries) else None


def deletes_of(table: Table, manifests: Iterable[ManifestFile]) -> dict[str, PositionDeletes]:
    """Return absolute path of a data file -> its deleted rows, for a version with position deletes only.

    Raises:
        TrinityError: BAD_DATA naming a delete file that is missing or corrupt.
    """
    found: dict[str, list[PositionDeletes]] = {}
    for manifest in manifests:
        if manifest.content != ManifestContent.DATA:
            for entry in delete_entries(table, manifest):
                for path, deletes in _targets(entry):
                    found.setdefault(path, []).append(deletes)
    return {path: _joined_deletes(deletes) for path, deletes in found.items()}


def delete_entries(table: Table, manifest: ManifestFile) -> Sequence[ManifestEntry]:
    """Return the delete files that a manifest lists. They are cached, as each read asks for them twice."""
    return _listed.get(manifest.manifest_path, lambda: read_entries(table.io, manifest))


def _targets(entry: ManifestEntry) -> list[tuple[str, PositionDeletes]]:
    """Return (absolute path of a data file, its deleted rows) for each data file that a delete file is about."""
    file = local_path(entry.data_file.file_path)
    if (path := target_path(entry)) is not None:
        return [(path, PositionDeletes(entry.data_file.record_count, (file,)))]
    named = _named.get(file, lambda: named_files(file))
    return [(local_path(name), PositionDeletes(rows, (file,), name)) for name, rows in named.items()]


def _joined_deletes(deletes: Sequence[PositionDeletes]) -> PositionDeletes:
    """Return the deleted rows of a data file from its several delete files."""
    if len(deletes) == 1:
        return deletes[0]
    name = next((d.of for d in deletes if d.of is not None), None)
    both = PositionDeletes(0, tuple(path for d in deletes for path in d.files), name)
    return replace(both, rows=_counts.get(both, lambda: len(both.positions())))


_listed: Final[Cache[str, Sequence[ManifestEntry]]] = Cache(32)
"""Manifest of delete files -> its entries."""
_named: Final[Cache[str, Mapping[str, int]]] = Cache(1000)
"""Delete file -> the data files that it names, and the number of rows of each."""
_counts: Final[Cache[PositionDeletes, int]] = Cache(1000)


def with_deletes(files: Sequence[DataFile], deletes: Mapping[str, PositionDeletes]) -> list[DataFile]:
    """Return the data files with their deleted rows."""
    return [replace(f, deletes=deletes[f.path]) if f.path in deletes else f for f in files]
