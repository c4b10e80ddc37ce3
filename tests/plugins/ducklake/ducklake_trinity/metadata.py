"""The metadata of a catalog of DuckLake tables: what the engine asks for, in terms of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ducklake_trinity.catalog import Catalog
from ducklake_trinity.columns import storage_of
from ducklake_trinity.versions import Versions
from trinity.errors import TrinityError
from trinity.spi import (
    DataFile,
    InsertTableHandle,
    RewriteTableHandle,
    SinkId,
    TableDefinition,
    TableHandle,
)
from trinity.storage import (
    DeletesFragment,
    Entry,
    ObjectStore,
    ParquetSinkProvider,
    TableVersion,
    VersionedMetadata,
    after_commit,
    commit_loop,
    identity_only,
    no_table,
    table_taken,
)


class DuckLakeMetadata(VersionedMetadata):
    """The metadata of one catalog.

    Args:
        catalog: the catalog's name.
        warehouse: the warehouse's folder.
    """

    keeps_deletes = True

    def __init__(self, catalog: str, warehouse: str) -> None:
        self._name = catalog
        self._catalog = Catalog(warehouse)

    # -- names ------------------------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return self._catalog.schemas()

    def create_schema(self, schema: str) -> None:
        if not self._catalog.add_schema(schema):
            raise TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{self._name}.{schema}' exists already.")

    def drop_schema(self, schema: str) -> None:
        self._check_schema(schema)
        if schema == "default":
            raise TrinityError("NOT_SUPPORTED", f"Schema '{self._name}.default' cannot be dropped.")
        if tables := self._catalog.remove_schema(schema):
            text = f"Schema '{self._name}.{schema}' holds tables, as '{tables[0]}': drop these first, or use CASCADE."
            raise TrinityError("SCHEMA_NOT_EMPTY", text)

    def list_tables(self, schema: str) -> list[str]:
        self._check_schema(schema)
        return self._catalog.tables(schema)

    def _check_schema(self, schema: str) -> None:
        if schema not in (known := self._catalog.schemas()):
            text = f"Schema '{self._name}.{schema}' does not exist. There are: {', '.join(known)}."
            raise TrinityError("SCHEMA_NOT_FOUND", text)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        found = self._catalog.find(schema, table)
        return None if found is None else TableHandle(self._name, schema, table, self._catalog.folder_of(found[1]))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "DuckLake")
        self._check_schema(definition.schema)
        first = TableVersion.first(definition.numbered())
        folder = self._catalog.folder_of(first.definition.id)
        table = TableHandle(self._name, definition.schema, definition.name, folder)
        ObjectStore(folder).make_folder()
        if not Versions(self._catalog, table).create(first):
            raise table_taken(table.full_name)
        return table.pinned(None, first.definition.id)

    def drop_table(self, table: TableHandle) -> None:
        here, number = self._here(table)

        def drop() -> None:
            if not self._catalog.remove_table(number):
                raise no_table(table.full_name)
            after_commit("files of a dropped table stay", lambda: ObjectStore(here.location).delete_below(""))

        commit_loop(here.location, drop, exclusive=True)

    def _here(self, table: TableHandle) -> tuple[TableHandle, int]:
        """Return the table that now has the name, with its folder and DuckLake's id. Its version is kept."""
        found = self._catalog.find(table.schema, table.table)
        if found is None:
            raise no_table(table.full_name)
        number, table_id = found
        table.check_same(table_id)
        return replace(table, location=self._catalog.folder_of(table_id)), number

    # -- versions ---------------------------------------------------------------------------------------

    def storage_schema(self, definition: TableDefinition) -> pa.Schema:
        return storage_of(definition)

    def newest_version(self, table: TableHandle) -> int:
        newest = self._versions(table).newest()
        if newest is None:
            raise no_table(table.full_name)
        return newest

    def read_version(self, table: TableHandle, number: int) -> TableVersion:
        found = self._versions(table).read(number)
        if found is None:
            raise TrinityError("BAD_DATA", f"Version {number} of table '{table.full_name}' is not in the catalog.")
        return found

    def write_version(self, table: TableHandle, version: TableVersion) -> None:
        self._versions(table).put(version)

    def _versions(self, table: TableHandle) -> Versions:
        here, number = self._here(table)
        return Versions(self._catalog, here, number)

    # -- writes: the folder is that of the table that has the name now --------------------------------------

    def begin_insert(self, table: TableHandle, after: TableDefinition | None = None) -> InsertTableHandle:
        return super().begin_insert(self._here(table)[0], after)

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        return super().begin_rewrite(self._here(table)[0], replaced)

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        return super().delete_unneeded(self._here(table)[0], older_than_ms)

    def read_deletes(self, rewrite: RewriteTableHandle, deletes: Sequence[bytes]) -> Sequence[DeletesFragment]:
        """Return one position delete file for each data file, as DuckLake requires; merge those of several tasks."""
        found = super().read_deletes(rewrite, deletes)
        several = {f.of: f.deletes for f in found if len(f.deletes.paths) > 1}
        if not several:
            return found
        sink = ParquetSinkProvider().create_delete_sink(rewrite, SinkId(order=0))
        for file in rewrite.kept:
            if file.path in several:
                sink.delete_rows(file, several[file.path].positions())
        return [*(f for f in found if f.of not in several), *super().read_deletes(rewrite, sink.finish())]
