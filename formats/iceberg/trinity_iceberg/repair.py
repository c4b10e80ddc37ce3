"""A table whose newest metadata is damaged: whose it is, where it lies, and the way back to what can be read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetSnapshotRefUpdate
from sqlalchemy import update
from sqlalchemy.orm import Session

from trinity.errors import TrinityError
from trinity.spi import CommitResult, TableHandle
from trinity.storage import Location, ObjectStore, no_readable_version
from trinity_iceberg.carried import lineage, version_of
from trinity_iceberg.external import LocationCatalog
from trinity_iceberg.names import identifier_of
from trinity_iceberg.options import FILE_IO
from trinity_iceberg.schema import DEFINITION
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State, schema_of
from trinity_iceberg.swap import commit_updates

__all__ = ["made_by_trinity", "metadata_file", "registered_at", "repair"]


def metadata_file(catalog: Catalog, table: TableHandle) -> str | None:
    """The present metadata file, as the catalog names it without opening it; None where only a load tells."""
    if isinstance(catalog, LocationCatalog):
        return catalog.metadata_file()
    row = _row(catalog, table)
    return row.metadata_location if row else None


def registered_at(catalog: Catalog, table: TableHandle) -> str | None:
    """The folder of a table whose metadata cannot be read."""
    location = metadata_file(catalog, table)
    return str(Location.of(location).parent.parent) if location else None


def _row(catalog: Catalog, table: TableHandle) -> IcebergTables | None:
    if not isinstance(catalog, SqlCatalog):
        return None
    with Session(catalog.engine) as session:
        return session.get(IcebergTables, (catalog.name, *identifier_of(table.schema, table.table)))


def made_by_trinity(table: TableHandle) -> bool:
    """True when any metadata file that can be read says so."""
    paths = (str(file) for file in _metadata_files(Location.of(table.location).join("metadata")))
    return any(DEFINITION in metadata.properties for _, metadata in _readable(paths))


def _metadata_files(folder: Location) -> list[Location]:
    """The metadata files in a folder, the newest first."""
    names = (name for name in ObjectStore(folder).names() if name.endswith(".metadata.json"))
    return [folder.join(name) for name in sorted(names, reverse=True)]


def _readable(paths: Iterable[str]) -> Iterator[tuple[str, TableMetadata]]:
    for path in paths:
        with contextlib.suppress(Exception):  # whatever a parser says of a damaged file
            yield path, FromInputFile.table_metadata(load_file_io(dict(FILE_IO), path).new_input(path))


def repair(catalog: Catalog, table: TableHandle, load: Callable[[TableHandle], Table]) -> CommitResult:
    """Goes back to the newest metadata file, and in it to the newest snapshot, that can be read.

    Args:
        catalog: the catalog.
        table: the table.
        load: loads it; raises BAD_DATA for a metadata file that is damaged.

    Raises:
        TrinityError: NOT_SUPPORTED for a catalog that does not let a table's metadata file be set; BAD_DATA.
    """
    restored = False
    try:
        loaded = load(table)
    except TrinityError as error:
        if error.code != "BAD_DATA":
            raise
        _restore_metadata(catalog, table)
        loaded, restored = load(table), True
    snapshot = _go_back(table, loaded)
    version = version_of(snapshot or loaded.metadata.current_snapshot())
    return CommitResult(version, skipped=snapshot is None and not restored)


def _restore_metadata(catalog: Catalog, table: TableHandle) -> None:
    """Makes the newest metadata file that can be read the present one again.

    The one before the present one is known to have been committed; where that is damaged too, the highest number below
    it in the folder is taken.
    """
    row = _row(catalog, table)
    if row is None or row.metadata_location is None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"The catalog of table '{table.full_name}' names its metadata file itself; register an older one there.",
        )
    for path, _ in _readable(_older(row)):
        set_back = (
            update(IcebergTables)
            .where(
                IcebergTables.catalog_name == row.catalog_name,
                IcebergTables.table_namespace == row.table_namespace,
                IcebergTables.table_name == row.table_name,
                IcebergTables.metadata_location == row.metadata_location,
            )
            .values(metadata_location=path, previous_metadata_location=None)
        )
        with Session(catalog.engine) as session:  # type: ignore[attr-defined]
            session.execute(set_back)
            session.commit()
        return
    raise no_readable_version(table)


def _older(row: IcebergTables) -> Iterator[str]:
    before = row.previous_metadata_location
    if before:
        yield before
    limit = Location.of(before or row.metadata_location or "")
    for file in _metadata_files(limit.parent):
        if file.name.split("-")[0] < limit.name.split("-")[0]:
            yield file.format_uri


def _go_back(handle: TableHandle, table: Table) -> Snapshot | None:
    """Makes the newest snapshot that can be read the current one; None when that is so already."""
    storage, metadata = Snapshots(), table.metadata  # which remembers nothing
    for snapshot in reversed(lineage(metadata)):
        with contextlib.suppress(TrinityError):
            storage.files(handle, State(table, snapshot, schema_of(metadata, snapshot)))
            return None if snapshot.snapshot_id == metadata.current_snapshot_id else _current(table, snapshot)
    raise no_readable_version(handle)


def _current(table: Table, snapshot: Snapshot) -> Snapshot:
    main = {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot.snapshot_id}
    back = SetSnapshotRefUpdate.model_validate(main)
    commit_updates(table, (back,), (), lambda now: now.current_snapshot_id == snapshot.snapshot_id)
    return snapshot
