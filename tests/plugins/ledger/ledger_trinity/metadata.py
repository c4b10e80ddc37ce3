"""The metadata of a catalog of Ledger tables: what the engine asks for, in terms of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ledger_trinity.attempt import LedgerAttempt
from ledger_trinity.database import Database
from trinity.errors import TrinityError
from trinity.spi import (
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    storage_schema,
)
from trinity.storage import (
    Entry,
    ObjectStore,
    TableCommits,
    TableVersion,
    after_commit,
    commit_loop,
    delete_orphans,
    identity_only,
    no_such_version,
    no_table,
    on_newest,
    table_taken,
    version_at,
    write_target,
)

T = TypeVar("T")


class LedgerMetadata(TableCommits):
    """The metadata of one catalog.

    Args:
        catalog: the catalog's name.
        warehouse: the warehouse's folder.
    """

    def __init__(self, catalog: str, warehouse: str) -> None:
        self._catalog = catalog
        self._database = Database(warehouse)

    # -- names ------------------------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return self._database.schemas()

    def create_schema(self, schema: str) -> None:
        if not self._database.add_schema(schema):
            raise TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{self._catalog}.{schema}' exists already.")

    def drop_schema(self, schema: str) -> None:
        self._check_schema(schema)
        if schema == "default":
            raise TrinityError("NOT_SUPPORTED", f"Schema '{self._catalog}.default' cannot be dropped.")
        if tables := self._database.remove_schema(schema):
            text = (
                f"Schema '{self._catalog}.{schema}' holds tables, as '{tables[0]}': drop these first, or use CASCADE."
            )
            raise TrinityError("SCHEMA_NOT_EMPTY", text)

    def list_tables(self, schema: str) -> list[str]:
        self._check_schema(schema)
        return self._database.tables(schema)

    def _check_schema(self, schema: str) -> None:
        if schema not in (known := self._database.schemas()):
            text = f"Schema '{self._catalog}.{schema}' does not exist. There are: {', '.join(known)}."
            raise TrinityError("SCHEMA_NOT_FOUND", text)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        found = self._database.id_of(schema, table)
        return None if found is None else TableHandle(self._catalog, schema, table, self._database.folder_of(found))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "Ledger")
        self._check_schema(definition.schema)
        first = TableVersion.first(definition)
        folder = self._database.folder_of(first.definition.id)
        table = TableHandle(self._catalog, definition.schema, definition.name, folder)
        ObjectStore(folder).make_folder()
        if not self._database.add_table(first):
            raise table_taken(table.full_name)
        return table.pinned(None, first.definition.id)

    def drop_table(self, table: TableHandle) -> None:
        here, table_id = self._here(table)

        def drop() -> None:
            if not self._database.remove_table(table_id):
                raise no_table(table.full_name)
            after_commit("files of a dropped table stay", lambda: ObjectStore(here.location).delete_below(""))

        commit_loop(here.location, drop, exclusive=True)

    # -- versions ---------------------------------------------------------------------------------------

    def _here(self, table: TableHandle) -> tuple[TableHandle, str]:
        """Return the table that now has the name, with its folder, and its id. Its version is kept."""
        table_id = self._database.id_of(table.schema, table.table)
        if table_id is None:
            raise no_table(table.full_name)
        table.check_same(table_id)
        return replace(table, location=self._database.folder_of(table_id), id=table_id), table_id

    def _load(self, table: TableHandle) -> tuple[TableHandle, TableVersion]:
        """Return the table that now has the name, and its version, or the newest one."""
        here, table_id = self._here(table)
        newest = self._database.newest(table_id)
        if newest is None:  # dropped since
            raise no_table(table.full_name)

        def read(number: int) -> TableVersion:
            found = self._database.read(table_id, number)
            if found is None:
                raise no_such_version(here, number + 1, newest)
            return found

        return here, version_at(here, newest, read)

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._load(table)[1].definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        _, at = self._load(table)
        return at.splits(storage_schema(at.definition))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._database.history(self._here(table)[1])

    # -- writes -----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle, after: TableDefinition | None = None) -> InsertTableHandle:
        here, at = self._load(table)
        definition = after or at.definition
        target = write_target(here.location, definition, storage_schema(definition))
        return InsertTableHandle(here.pinned(at.number, at.definition.id), definition, target)

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        return self.begin_insert(table, after)

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        begun = self.begin_insert(table)
        return RewriteTableHandle(begun.table, begun.definition, begun.target, tuple(replaced))

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._load(replace(table, version=None))[1].txns.get(application)

    def run_attempts(
        self, table: TableHandle, use: Callable[[LedgerAttempt], T], known: TableDefinition | None = None
    ) -> T:
        here, found = self._load(replace(table, version=None))

        def attempt(newest: TableHandle) -> T:
            return use(LedgerAttempt(newest, self._load(newest)[1], self._database, lambda at: self._load(at)[1]))

        return on_newest(here, known or found.definition, attempt)

    # -- maintenance ------------------------------------------------------------------------------------

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        here, table_id = self._here(table)
        return delete_orphans(ObjectStore(here.location), self._database.needed(table_id), older_than_ms)
