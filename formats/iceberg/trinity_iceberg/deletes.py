"""Position delete files of resolves (R1), as manifests list them: each is about one data file, by its bounds."""

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

from trinity.spi import DataFile, DeleteSink, RewriteTableHandle, SinkId
from trinity.storage import (
    DeletesFragment,
    Location,
    PositionDeletes,
    PositionDeleteSink,
    is_sink_file,
    local_path,
)
from trinity_iceberg.manifests import read_entries

__all__ = ["DeletesWriter", "delete_file", "delete_sink", "deletes_of", "own_deletes", "target_path", "with_deletes"]

_PATH_ID: Final = 2147483546
"""Field id of ``file_path``, by the specification."""


class DeletesWriter(ManifestWriterV2):
    """Writes a manifest of delete files, for which PyIceberg has no writer."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Sink(PositionDeleteSink):
    encoding = "PLAIN"
    """The one of Iceberg's own writers, which every reader knows."""

    def named(self, file: DataFile) -> str:
        """The location by which the table's manifests know the file."""
        return Location.of(file.path).format_uri


def delete_sink(rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
    """A sink of position delete files."""
    return _Sink(rewrite, sink)


def delete_file(made: DeletesFragment, of: IcebergFile) -> IcebergFile:
    """A position delete file as Iceberg lists it.

    Args:
        made: what its sink has reported.
        of: the data file as Iceberg lists it, whose partition it shares.
    """
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
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    found.spec_id = of.spec_id
    return found


def _is_own(entry: ManifestEntry) -> bool:
    """True for a position delete file that a resolve has written."""
    file = entry.data_file
    own = is_sink_file(file.file_path.rpartition("/")[2]) and file.file_format == FileFormat.PARQUET
    return own and file.content == DataFileContent.POSITION_DELETES and target_path(entry) is not None


def target_path(entry: ManifestEntry) -> str | None:
    """Absolute path of the one data file that a delete file is about; None where its bounds do not say."""
    low, high = ((b or {}).get(_PATH_ID) for b in (entry.data_file.lower_bounds, entry.data_file.upper_bounds))
    return local_path(low.decode()) if low and low == high else None


def own_deletes(table: Table, manifest: ManifestFile) -> list[ManifestEntry] | None:
    """The delete files of a manifest; None unless resolves have written all of them."""
    entries = read_entries(table.io, manifest)
    return entries if all(map(_is_own, entries)) else None


def deletes_of(table: Table, manifests: Iterable[ManifestFile]) -> dict[str, PositionDeletes]:
    """Absolute path of a data file -> its deleted rows, of a version that has no delete files but those of resolves."""
    found = {}
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            continue
        for entry in read_entries(table.io, manifest):
            if (path := target_path(entry)) is not None:
                rows, file = entry.data_file.record_count, local_path(entry.data_file.file_path)
                found[path] = PositionDeletes(rows, (file,))
    return found


def with_deletes(files: Sequence[DataFile], deletes: Mapping[str, PositionDeletes]) -> list[DataFile]:
    """The data files with their deleted rows."""
    return [replace(f, deletes=deletes[f.path]) if f.path in deletes else f for f in files]
