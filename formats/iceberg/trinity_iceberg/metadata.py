"""Names, schemas, versions and commits of one Iceberg catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import CreateTableTransaction

from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spi import (
    OLDEST,
    STAMP,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    WriteTarget,
    append_stamp,
)
from trinity.storage import Entry, Location, ObjectStore, TableCommits, delete_orphans, on_newest, stamped, write_target
from trinity.storage.commits import check_not_replaced
from trinity.storage.file_schema import FIELD_ID
from trinity.storage.folder_names import own_folder
from trinity.storage.local_objects import folder_lock, make_folder
from trinity.storage.location import local_path
from trinity_iceberg.adopt import may_have_added_files
from trinity_iceberg.carried import created, lineage, version_of
from trinity_iceberg.commit import IcebergAttempt
from trinity_iceberg.expire import delete_metadata
from trinity_iceberg.index import SIDECAR_FOLDER
from trinity_iceberg.names import CatalogNames
from trinity_iceberg.partition import check_names, check_partitions, partition_spec, spec_updates
from trinity_iceberg.repair import Repair, made_by_trinity
from trinity_iceberg.schema import (
    STAMP_ID,
    evolved_schema,
    own_properties,
    statistics_columns,
    storage_schema,
    to_iceberg_schema,
    with_field_ids,
)
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State, Tables, registered_at
from trinity_iceberg.swap import put_table, staged

_T = TypeVar("_T")

TABLE_PROPERTIES: Final = {
    "format-version": "2",
    # a metadata file holds all snapshots; without this each commit would leave one behind for ever
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Properties of new tables, unless the user sets others."""


class IcebergMetadata(TableCommits):
    """The metadata of one Iceberg catalog. Without a warehouse the catalog chooses where tables are put."""

    def __init__(self, catalog: str, iceberg: Catalog, warehouse: Location | None) -> None:
        self._catalog = catalog
        self._iceberg = iceberg
        self._names = CatalogNames(catalog, iceberg, warehouse)
        self._tables = Tables(iceberg)
        self._snapshots = Snapshots()

    # -- schemas and tables -----------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return self._names.list_schemas()

    def create_schema(self, schema: str) -> None:
        self._names.create_schema(schema)

    def drop_schema(self, schema: str) -> None:
        self._names.drop_schema(schema)

    def list_tables(self, schema: str) -> list[str]:
        return self._names.list_tables(schema)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        try:
            newest = self._load(TableHandle(self._catalog, schema, table, ""))
        except TrinityError as error:
            if error.code == "TABLE_NOT_FOUND":
                return None
            location = registered_at(self._iceberg, TableHandle(self._catalog, schema, table, ""))
            if error.code not in ("BAD_DATA", "NOT_SUPPORTED") or location is None:
                raise
            return TableHandle(self._catalog, schema, table, location)  # so that it can be repaired, or dropped
        return TableHandle(self._catalog, schema, table, local_path(newest.metadata.location))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        schema, name = definition.schema, definition.name
        location = self._names.new_location(schema, name)
        if location is None:  # the catalog chooses the folder, by the table's name
            transaction = self._staged(definition, None)
            chosen = Location.of(transaction.table_metadata.location)
            if self._names.is_occupied(chosen):
                location = chosen.parent.join(own_folder(name))
                transaction = self._staged(definition, location)
            return self._created(definition, transaction, location)
        if not location.on_disk:
            return self._created(definition, self._staged(definition, location), location)
        make_folder(location.parent)  # the schema's folder, which its first table makes, so that it can be locked
        with folder_lock(str(location.parent)):
            location = self._names.new_location(schema, name)  # another table may have got the folder meanwhile
            return self._created(definition, self._staged(definition, location), location)

    def _staged(self, definition: TableDefinition, location: Location | None) -> CreateTableTransaction:
        columns = assign_fresh_schema_ids(to_iceberg_schema(definition))  # the ids that PyIceberg would assign
        return staged(
            self._iceberg,
            (self._catalog, definition.schema, definition.name),
            columns,
            location=location.format_uri if location else None,
            partition_spec=partition_spec(definition, columns),
            properties=created({**TABLE_PROPERTIES, **own_properties(with_field_ids(definition, columns))}),
        )

    def _created(
        self, definition: TableDefinition, transaction: CreateTableTransaction, location: Location | None
    ) -> TableHandle:
        name = (self._catalog, definition.schema, definition.name)
        with self._names.creating_table(definition.schema, location):
            made = put_table(self._iceberg, transaction, name)
        return TableHandle(*name, local_path(made.location), id=str(made.table_uuid))

    def drop_table(self, table: TableHandle) -> None:
        self._names.drop_table(table, lambda: self.check_pinned(table))

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        return self._names.rename_table(table, schema, name, lambda: self.check_pinned(table))

    def left_by_trinity(self, table: TableHandle) -> bool:
        return made_by_trinity(table)

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        state = self._load(table).at(table)
        state.check_readable(table)
        return state.definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self._using(table, lambda newest: self._snapshots.split_source(table, newest))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._snapshots.history(self._load(table).loaded)

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle, after: TableDefinition | None = None) -> InsertTableHandle:
        def begin(newest: State) -> InsertTableHandle:
            state = self._begin(table, newest)
            pinned = table.pinned(state.version, state.definition.id)
            if after is not None:
                check_names(state.definition, after, newest.loaded.specs().values())
            return InsertTableHandle(pinned, *target_of(table, state, append_stamp(state.version), after))

        return self._using(table, begin)

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        return self.begin_insert(table, after)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._load(table).txns.get(application)

    # -- compaction and maintenance ---------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        def begin(newest: State) -> RewriteTableHandle:
            state = self._begin(table, newest)
            pinned = table.pinned(state.version, state.definition.id)
            return RewriteTableHandle(pinned, *target_of(table, state, OLDEST), tuple(replaced))

        return self._using(table, begin)

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def newest_definition(self, table: TableHandle) -> TableDefinition:
        return self._load(table).definition  # also of a table that cannot be read

    def oldest_kept(self, table: TableHandle, needed: int) -> int:
        return version_of(next(iter(lineage(self._load(table).metadata)), None))

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Delete the files that no readable version needs, and return the deleted data files and sidecar files.

        In a folder that another table shares nothing is deleted.
        """
        if self._names.is_shared(table, Location.of(table.location)):
            _log.warning("'%s' may also hold another table; a vacuum deletes nothing there.", table.location)
            return []
        needed = self._using(table, lambda newest: self._snapshots.referenced(table, newest.loaded))
        store = ObjectStore(table.location)
        gone = [
            entry
            for folder in (_DATA_FOLDER, SIDECAR_FOLDER)
            for entry in delete_orphans(store, needed, older_than_ms, folder)
        ]
        delete_metadata(store, {store.relative(path) for path in needed}, older_than_ms)
        return gone

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        return Repair(self._iceberg, table, lambda at: self._load(at).loaded).run(version, dry_run=dry_run)

    # -- helpers ----------------------------------------------------------------------------------------

    def _load(self, table: TableHandle) -> State:
        """Return the newest version. Raises as :meth:`Tables.load`."""
        return self._tables.load(table)

    def _using(self, table: TableHandle, use: Callable[[State], _T]) -> _T:
        """Return the result of ``use`` on the newest version. If the table is dropped meanwhile, report that."""
        newest = self._load(table)
        try:
            return use(newest)
        except TrinityError as error:
            if error.code == "BAD_DATA":
                self._load(table.pinned(table.version, str(newest.metadata.table_uuid)))
            raise

    def _begin(self, table: TableHandle, newest: State) -> State:
        """Return the version that a statement writes to, if the table is writable."""
        state = newest.at(table)
        check_not_replaced(state.definition, newest.definition)
        state.check_writable(table, self._snapshots.manifest_list(newest.loaded, newest.snapshot))
        # Reads may refuse files that another engine added; then refuse the write.
        if may_have_added_files(newest.loaded):
            self._snapshots.files(table, newest)
        return state

    def run_attempts(
        self, table: TableHandle, use: Callable[[IcebergAttempt], _T], known: TableDefinition | None = None
    ) -> _T:
        known = known or self._load(table).definition

        def attempt(newest: TableHandle) -> _T:
            return self._using(newest, lambda state: use(IcebergAttempt(newest, state, self._snapshots)))

        return on_newest(table, known, attempt)


_log = logger("trinity.iceberg")
_DATA_FOLDER: Final = "data"
_STAMPS: Final = pa.field(STAMP, pa.int64(), True, {FIELD_ID: str(STAMP_ID).encode()})
"""The column for stamps. Files have it, under a fixed field id, even before the table's schema has it (L3)."""


def target_of(
    table: TableHandle, state: State, stamp: int, after: TableDefinition | None = None
) -> tuple[TableDefinition, WriteTarget]:
    """Return the definition and the target for the sinks of a statement; ``after`` is a new definition that it sets.

    Raises:
        TrinityError: NOT_SUPPORTED for a partitioning that Trinity does not write.
    """
    before, schema, spec = state.definition, state.schema, state.loaded.spec()
    definition = before
    if after is not None:
        schema = evolved_schema(state.metadata, before, after)
        definition = with_field_ids(after, schema)
    if definition.replaced != before.replaced:
        spec, _ = spec_updates(state.metadata, definition, schema)
        gone = (c for c in before.all_columns if c.field_id not in schema.field_ids)
        definition = replace(definition, dropped=tuple(gone))
    check_partitions(table.full_name, definition, spec, schema)
    folder, statistics = ObjectStore(table.location).path(_DATA_FOLDER), statistics_columns(definition, schema)
    target = write_target(folder, definition, storage_schema(schema), statistics=statistics)
    return stamped(definition, target, stamp, _STAMPS)
