"""The repair of a table whose newest metadata is damaged, or lacks Trinity's definition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPropertiesUpdate
from sqlalchemy import update
from sqlalchemy.orm import Session

from trinity.errors import TrinityError
from trinity.spi import CommitResult, LostCommit, RepairResult, TableHandle
from trinity.storage import Location, ObjectStore, repair_preview, repair_result
from trinity.storage.readable import no_readable_version
from trinity_iceberg.carried import (
    DEFINITION,
    INDEX,
    definitions,
    lineage,
    mark_of,
    removed_definition_mark,
    summary_of,
    version_of,
)
from trinity_iceberg.index import open_index
from trinity_iceberg.manifests import manifests_of_commit, read_entries
from trinity_iceberg.metadata_files import is_metadata_file, read_metadata
from trinity_iceberg.names import identifier_of
from trinity_iceberg.options import FILE_IO
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State, schema_of
from trinity_iceberg.swap import commit_updates, set_ref


def _row(catalog: Catalog, table: TableHandle) -> IcebergTables | None:
    if not isinstance(catalog, SqlCatalog):
        return None
    with Session(catalog.engine) as session:
        return session.get(IcebergTables, (catalog.name, *identifier_of(table.schema, table.table)))


def made_by_trinity(table: TableHandle) -> bool:
    """Return whether any readable metadata file shows that Trinity made the table."""
    paths = (str(file) for file in _metadata_files(Location.of(table.location).join("metadata")))
    return any(DEFINITION in m.properties or removed_definition_mark(m) for _, m in _readable(paths))


def _metadata_files(folder: Location) -> list[Location]:
    """Return the metadata files in a folder, newest first."""
    names = (name for name in ObjectStore(folder).names() if is_metadata_file(name))
    return [folder.join(name) for name in sorted(names, reverse=True)]


def _readable(paths: Iterable[str]) -> Iterator[tuple[str, TableMetadata]]:
    for path in paths:
        with contextlib.suppress(Exception):  # whatever a parser raises for a damaged file
            yield path, read_metadata(path)


class Repair:
    """A repair: it restores the newest readable metadata file, and in it the newest readable snapshot.

    If nothing is damaged, the definition is put back where another engine took it away, or changed it.
    """

    def __init__(self, catalog: Catalog, table: TableHandle, load: Callable[[TableHandle], Table]) -> None:
        self._catalog, self._table, self._load = catalog, table, load
        self._lost: list[LostCommit] = []

    def run(self, version: int | None, *, dry_run: bool) -> RepairResult:
        """Repair the table; see :meth:`trinity.spi.ConnectorMetadata.repair`.

        Raises:
            TrinityError: NOT_SUPPORTED for a catalog that does not let a table's metadata file be set, for intact
                metadata that is not understood, and without a metadata file that has the definition; BAD_DATA,
                INVALID_ARGUMENTS.
        """
        row, found = None, None
        try:
            loaded = self._load(self._table)
        except TrinityError as error:
            if error.code != "BAD_DATA":
                raise
            row, found = self._readable_metadata(error)
            loaded = found
        snapshot = self._readable_snapshot(loaded)
        at = version_of(snapshot)
        if not self._lost and removed_definition_mark(loaded.metadata):
            return repair_result(_put_back(loaded, dry_run=dry_run), at, ())
        if preview := repair_preview(self._table, at, self._lost, version, dry_run=dry_run):
            return preview
        if row is not None and found is not None:
            _set_back(self._catalog, row, found.metadata_location)
            loaded = self._load(self._table)
        if snapshot.snapshot_id != loaded.metadata.current_snapshot_id:
            _make_current(loaded, snapshot)
        return repair_result(CommitResult(at), at, self._lost)

    def _readable_metadata(self, damage: TrinityError) -> tuple[IcebergTables, Table]:
        """Return the catalog's row for the table, and the table as its newest readable metadata file has it.

        The catalog names the file before the current one, which was certainly committed. If that is damaged too, take
        the readable file in the folder with the highest number below it.
        """
        row = _row(self._catalog, self._table)
        if row is None or row.metadata_location is None:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"The catalog of table '{self._table.full_name}' names its metadata file itself; register an older one "
                "there.",
            )
        self._lost.append(LostCommit(None, damage.message))
        for path in _older(row):
            try:
                metadata = read_metadata(path)
            except TrinityError as error:
                if error.code != "BAD_DATA":
                    raise
                self._lost.append(LostCommit(None, error.message))
                continue
            io = load_file_io(dict(FILE_IO), path)
            name = identifier_of(self._table.schema, self._table.table)
            return row, Table(name, metadata, path, io, self._catalog)
        raise no_readable_version(self._table)

    def _readable_snapshot(self, table: Table) -> Snapshot:
        """Return the newest snapshot that can be read."""
        storage, metadata = Snapshots(), table.metadata  # a new reader, with nothing cached
        for snapshot in reversed(lineage(metadata)):
            try:
                storage.files(self._table, State(table, snapshot, schema_of(metadata, snapshot)))
            except TrinityError as error:
                if error.code == "NOT_SUPPORTED":  # readable, but refused
                    return snapshot
                if error.code != "BAD_DATA":
                    raise
                self._lost.append(LostCommit(version_of(snapshot), error.message, _is_damaged(table, snapshot)))
            else:
                return snapshot
        raise no_readable_version(self._table)


def _is_damaged(table: Table, snapshot: Snapshot) -> bool:
    """Return whether a snapshot's own files are damaged, and not only files of earlier snapshots."""
    try:
        for manifest in manifests_of_commit(table.io, snapshot):
            read_entries(table.io, manifest)
        index = summary_of(snapshot).get(INDEX)
        before = table.metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        if before is None or summary_of(before).get(INDEX) != index:
            open_index(ObjectStore(table.location()), index)
    except TrinityError:
        return True
    return False


def _set_back(catalog: Catalog, row: IcebergTables, path: str) -> None:
    """Make an older metadata file the current one, unless another writer commits first."""
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


def _older(row: IcebergTables) -> Iterator[str]:
    before = row.previous_metadata_location
    if before:
        yield before
    limit = Location.of(before or row.metadata_location or "")
    for file in _metadata_files(limit.parent):
        if file.name.split("-")[0] < limit.name.split("-")[0]:
            yield file.format_uri


def _make_current(table: Table, snapshot: Snapshot) -> None:
    back = set_ref(MAIN_BRANCH, SnapshotRefType.BRANCH, snapshot)
    commit_updates(table, (back,), (), lambda now: now.current_snapshot_id == snapshot.snapshot_id)


def _put_back(table: Table, *, dry_run: bool) -> CommitResult:
    """Put back the definitions as Trinity left them, from an earlier metadata file; rows and versions do not change.

    Raises:
        TrinityError: NOT_SUPPORTED if no metadata file in the table's log has these definitions.
    """
    now, mark = table.metadata, removed_definition_mark(table.metadata)
    for _, before in _readable(entry.metadata_file for entry in reversed(now.metadata_log)):
        if mark_of(before.properties) == mark:
            if not dry_run:
                put = SetPropertiesUpdate(updates=definitions(before))
                commit_updates(table, (put,), (), lambda metadata: not removed_definition_mark(metadata))
            return CommitResult(version_of(now.current_snapshot()))
    raise TrinityError(
        "NOT_SUPPORTED",
        f"No metadata file that Iceberg table '{'.'.join(table.name())}' still knows has the property '{DEFINITION}' "
        "as it was before another engine took it away or changed it. Set it there to the text in a copy of an older "
        "metadata file.",
    )
