"""Refusals, by name, of tables that other engines made or changed so that Trinity cannot read or write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.transforms import IdentityTransform

from trinity.errors import TrinityError
from trinity.spi import DataFile, TableHandle, Tier
from trinity.storage import Location, ObjectStore
from trinity.storage.file_schema import READ_BY_ID, columns_in
from trinity.storage.foreign import changed_compacted_rows, keeps_row_versions
from trinity.storage.location import local_path
from trinity.storage.parquet_files import parquet_schema
from trinity.storage.parquet_sink import is_sink_file
from trinity_iceberg.carried import DEFINITION, index_of, newest_version, order_at, summary_of, version_of
from trinity_iceberg.deletes import deletes_of, position_deletes
from trinity_iceberg.index import bad_data, open_index
from trinity_iceberg.location_catalog import LocationCatalog
from trinity_iceberg.manifests import manifests_of_commit, read_entries, removed_entries
from trinity_iceberg.metadata_files import Numbered
from trinity_iceberg.schema import definition_of, field_with_default, read_schema, storage_schema

WRITABLE: Final = 2
"""The newest format version that Trinity writes."""
_FORMAT: Final = "write.format.default"


def check_readable(table: TableHandle, metadata: TableMetadata) -> None:
    """Refuse a table whose commits have no order. Raises NOT_SUPPORTED."""
    if metadata.format_version < 2:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' has format version 1, whose commits have no sequence numbers; upgrade "
            "it there: ALTER TABLE ... SET TBLPROPERTIES ('format-version' = '2').",
        )


def check_writable(table: TableHandle, loaded: Table) -> None:
    """Refuse a table of a format version that Trinity does not write. Raises NOT_SUPPORTED."""
    check_readable(table, loaded.metadata)
    if loaded.metadata.format_version > WRITABLE:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' has format version {loaded.metadata.format_version}: Trinity reads it, "
            f"and writes version {WRITABLE} only.",
        )


def check_committable(table: TableHandle, loaded: Table) -> None:
    """Refuse a table that was opened by its location, but belongs to a catalog. Raises NOT_SUPPORTED."""
    by_location = isinstance(loaded.catalog, LocationCatalog)
    if by_location and Numbered.of(Location.of(loaded.metadata_location).name) is None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Iceberg table '{table.full_name}' belongs to a catalog, without which nobody can commit to it; Trinity "
            "reads it. To write, connect with that catalog, and register the table under its name there.",
        )


def check_own_readable(
    table: Table, schema: Schema, manifests: Sequence[ManifestFile], snapshot: Snapshot | None
) -> None:
    """Refuse a version of a Trinity table that Trinity's own file scan would misread.

    Tables of other engines are read by the native scan, which has none of these limits.

    Raises:
        TrinityError: NOT_SUPPORTED naming the cause and the remedy.
    """
    if DEFINITION not in table.properties:
        return
    name = ".".join(table.name())
    marking = [m for m in manifests if m.content != ManifestContent.DATA]
    for manifest in marking:
        if position_deletes(table, manifest) is None:
            raise _refused(
                table,
                f"delete files of another engine ('{manifest.manifest_path}'), which Trinity does not read: it reads "
                "Parquet files of positions, and no equality deletes. Run "
                f"CALL <catalog>.system.rewrite_data_files(table => '{name}', options => "
                "map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')) there, and have its deletes "
                "copy on write ('write.delete.mode', 'write.update.mode', 'write.merge.mode')",
            )
    if (path := field_with_default(schema)) is not None:
        raise _refused(table, f"column '{path}' with a default value for older rows; drop it there")
    by_id = (read_schema(table.metadata, schema).metadata or {}).items() & READ_BY_ID.items()
    if by_id and TableProperties.DEFAULT_NAME_MAPPING in table.properties:
        raise _refused(table, f"files without field ids ('{TableProperties.DEFAULT_NAME_MAPPING}') and renamed columns")
    if marking and snapshot:
        _check_marked(table, schema, marking, snapshot)
    if changes := [other for other in order_at(table.metadata, snapshot)[1] if _removes_rows(other)]:
        _check_folded(table, schema, manifests, changes)


def _removes_rows(snapshot: Snapshot) -> bool:
    """Return whether a commit removed files for another reason than rewriting them."""
    operation = snapshot.summary.operation if snapshot.summary else Operation.OVERWRITE
    rewrites = operation in (Operation.APPEND, Operation.REPLACE)
    return not rewrites and summary_of(snapshot).get("deleted-data-files", "0") != "0"


def _check_folded(table: Table, schema: Schema, manifests: Sequence[ManifestFile], changes: Sequence[Snapshot]) -> None:
    """Refuse a version in which other engines changed rows that were folded from row versions in the sidecar (E3)."""
    store = ObjectStore(table.location())
    index = open_index(store, index_of(table.metadata, changes[-1]))
    if not index.sidecar or not _keeps_row_versions(table, schema, changes[-1]):
        return
    base = {name for name, (tier, _, _) in index.files.items() if tier is Tier.BASE}
    written = (m for change in changes for m in manifests_of_commit(table.io, change))
    gone = _names(store, (e for m in written for e in removed_entries(table.io, m)))
    live = _names(store, (e for m in manifests for e in read_entries(table.io, m)))
    rewritten = not base <= live | gone  # other engines rewrote compacted files: any file of theirs may have their rows
    if base & gone or (rewritten and not all(is_sink_file(name.rpartition("/")[2]) for name in gone)):
        raise _changed_compacted_rows(table)


def _check_marked(table: Table, schema: Schema, manifests: Sequence[ManifestFile], snapshot: Snapshot) -> None:
    """Refuse a version in which compacted rows were deleted by position (E3).

    It is refused only if the sidecar has the row versions from which such rows were folded.
    """
    if not _keeps_row_versions(table, schema, snapshot):
        return
    store = ObjectStore(table.location())
    index = open_index(store, index_of(table.metadata, snapshot))
    base = {store.path(name) for name, (tier, _, _) in index.files.items() if tier is Tier.BASE}
    marked = deletes_of(table, manifests).keys()
    if index.sidecar and (base & marked or not all(is_sink_file(path.rpartition("/")[2]) for path in marked)):
        raise _changed_compacted_rows(table)


def _keeps_row_versions(table: Table, schema: Schema, snapshot: Snapshot) -> bool:
    return keeps_row_versions(definition_of(table.name(), table.metadata, schema, version_of(snapshot)))


def _changed_compacted_rows(table: Table) -> TrinityError:
    name = ".".join((table.catalog.name, *table.name()))
    return changed_compacted_rows(name, "CALL <catalog>.system.rollback_to_snapshot(...)")


def _names(store: ObjectStore, entries: Iterable[ManifestEntry]) -> set[str]:
    """Return the names of files relative to a table's folder."""
    return {store.relative(local_path(entry.data_file.file_path)) for entry in entries}


def check_not_before(table: Table) -> None:
    """Refuse a table that another engine rolled back to a version before CREATE OR REPLACE TABLE.

    It has the rows of the old table, but the columns and options of the one that took its place (L13).

    Raises:
        TrinityError: NOT_SUPPORTED naming the versions and the remedy.
    """
    version, since = (
        newest_version(table.metadata),
        json.loads(table.properties.get(DEFINITION, "{}")).get("replaced", 0),
    )
    if version < since:
        raise _refused(
            table,
            f"the rows of version {version}, to which it was taken back, and the columns and options of the table that "
            f"took its place in version {since}. Make the snapshot current that was so before (set_current_snapshot), "
            f"and go back by Trinity: RESTORE TABLE … TO VERSION AS OF {version} brings columns and options, too",
        )


def check_own_writable(table: Table, manifests: Sequence[ManifestFile]) -> None:
    """Refuse writes to a table whose newest version Trinity could not read afterwards. Raises NOT_SUPPORTED."""
    if DEFINITION not in table.properties:
        return
    check_own_readable(table, table.schema(), manifests, table.metadata.current_snapshot())
    if table.metadata.format_version > WRITABLE:
        version = table.metadata.format_version
        raise _refused(table, f"format version {version}, and Trinity writes version {WRITABLE} only")
    if (written := table.properties.get(_FORMAT, "parquet").lower()) != "parquet":
        raise _refused(table, f"'{_FORMAT}' = '{written}', and Trinity reads Parquet only; unset it")


def _refused(table: Table, what: str) -> TrinityError:
    name = ".".join((table.catalog.name, *table.name()))
    return TrinityError("NOT_SUPPORTED", f"Iceberg table '{name}' has {what}.")


def may_have_added_files(table: Table) -> bool:
    """Return whether another engine may have added existing files, as they were, to a Trinity table."""
    return DEFINITION in table.properties and TableProperties.DEFAULT_NAME_MAPPING in table.properties


def check_partition_values(table: Table, schema: Schema, files: Iterable[DataFile]) -> None:
    """Refuse files that lack a partition column: the files of a Trinity table are read as they are.

    Raises:
        TrinityError: NOT_SUPPORTED naming file, column and remedy; BAD_DATA for a file that cannot be read.
    """
    if not may_have_added_files(table):
        return
    fields = [f for spec in table.specs().values() for f in spec.fields if isinstance(f.transform, IdentityTransform)]
    columns = {name for f in fields if (name := schema.find_column_name(f.source_id)) is not None}
    for file in files if columns else ():
        if lacking := sorted(columns & file.partition.keys() - _present(file, schema)):
            name = ".".join(table.name())
            raise TrinityError(
                "NOT_SUPPORTED",
                f"File '{file.path}', which another engine added to table '{name}', lacks column '{lacking[0]}': its "
                "values are in the table's metadata alone, where Trinity does not read them. Have the files written "
                f"anew there: CALL <catalog>.system.rewrite_data_files(table => '{name}', options => "
                "map('rewrite-all', 'true')).",
            )


def _present(file: DataFile, schema: Schema) -> set[str]:
    """Return the columns that a file has, by its manifest's column sizes; without these, by the file's own schema."""
    if is_sink_file(file.name):
        return set(file.partition)
    if file.column_sizes:
        return {path.partition(".")[0] for path in file.column_sizes}
    with bad_data(file.path):
        storage = storage_schema(schema)
        found = columns_in(parquet_schema(file.path), storage)
        return {field.name for field, name in zip(storage, found, strict=True) if name is not None}
