"""Catalogs in an object store. It has no folders to make, rename or lock, so names are objects.

Each table has a folder that no other table ever has, ``<schema>/<table>-<digits>``. So late writes to a dropped table
never reach another one.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Final, NoReturn

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage.dropped_tables import check_unswept, sweep_dropped
from trinity.storage.entries import Entry
from trinity.storage.errors import AlreadyExists, undoing
from trinity.storage.folder_names import (
    folder_name,
    no_schema,
    no_table,
    own_folder,
    permanent_schema_error,
    schema_in_use,
    schema_taken,
    table_taken,
)
from trinity.storage.location import Location
from trinity.storage.object_names import NameLog
from trinity.storage.store import ObjectStore

DEFAULT_SCHEMA: Final = "default"
METADATA: Final = "_trinity"
"""Folder, below a table's, in which formats without one of their own keep their metadata."""
_LOST: Final = ("TABLE_ALREADY_EXISTS", "SCHEMA_NOT_FOUND", "TRANSACTION_CONFLICT")
"""Codes of errors after which a new table surely gets no name."""
_SCHEMAS: Final = "_trinity/schemas"
_TABLES: Final = "_trinity/tables"


class ObjectCatalog:
    """The names of a catalog in an object store; :class:`~trinity.storage.FolderCatalog` documents the methods."""

    def __init__(self, catalog: str, warehouse: Location, metadata: str = METADATA) -> None:
        self.catalog = catalog
        self._metadata = metadata
        self.root = warehouse
        self._schemas = NameLog(ObjectStore(warehouse), _SCHEMAS)
        self._tables = NameLog(ObjectStore(warehouse), _TABLES)

    def list_schemas(self) -> list[str]:
        return sorted({DEFAULT_SCHEMA, *self._schemas.taken()})

    def create_schema(self, schema: str) -> None:
        try:
            if schema == DEFAULT_SCHEMA:
                raise AlreadyExists(schema)
            self._schemas.take(schema)
        except AlreadyExists as error:
            raise schema_taken(self.catalog, schema) from error

    def drop_schema(self, schema: str) -> None:
        if schema == DEFAULT_SCHEMA:
            raise permanent_schema_error(self.catalog, schema)

        def check() -> None:
            self._tables.settle(schema)
            if tables := self._tables.taken(schema):
                raise schema_in_use(self.catalog, schema, tables)

        if not self._schemas.close(schema, check=check):
            raise no_schema(self.catalog, schema, self.list_schemas())

    def list_tables(self, schema: str) -> list[str]:
        self._check_schema(schema)
        return self._tables.taken(schema)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        found = self._tables.find(schema, table)
        return TableHandle(self.catalog, schema, table, str(self.root.join(found["location"]))) if found else None

    def new_table(self, schema: str, table: str) -> TableHandle:
        self._check_schema(schema)
        if self._tables.find(schema, table):
            raise table_taken(f"{self.catalog}.{schema}.{table}")
        folder = f"{folder_name(schema)}/{own_folder(table)}"
        return TableHandle(self.catalog, schema, table, str(self.root.join(folder)))

    def name_table(self, table: TableHandle) -> TableHandle:
        try:
            self._take(table)
        except TrinityError as error:
            if error.code in _LOST:
                ObjectStore(table.location).delete_below("")
            raise
        return table

    def _take(self, table: TableHandle) -> None:
        where = self._below(table)
        check = partial(self._keep_schema, table.schema) if table.schema != DEFAULT_SCHEMA else None
        try:
            self._tables.take(table.schema, table.table, location=where, check=check)
        except AlreadyExists as error:
            raise table_taken(table.full_name) from error
        try:
            check_unswept(table)
        except TrinityError as error:
            with undoing(f"Table '{table.full_name}'", error):
                self._tables.free(table.schema, table.table, location=where)
            raise

    def rename_table(self, table: TableHandle, schema: str, name: str) -> NoReturn:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.full_name}' keeps its name: in a bucket two names cannot be changed in one step. Copy it "
            f"by session.table('{table.full_name}').copy_to(name), then drop it; Iceberg's catalogs rename.",
        )

    def drop_table(self, table: TableHandle) -> None:
        if not self._tables.free(table.schema, table.table, location=self._below(table)):
            raise no_table(table.full_name)
        ObjectStore(table.location).delete_below("")

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        folders = [folder_name(schema)]
        if schema == DEFAULT_SCHEMA:  # it is always there, so its sweep also removes what dropped schemas have left
            there = {*ObjectStore(self.root).names()}
            dropped = (name for name, history in self._schemas.history().items() if history[-1] is None)
            folders += [name for name in dropped if name in there]
        swept = (sweep_dropped(self.root, name, self._tables, older_than_ms, self._metadata) for name in folders)
        return list(chain.from_iterable(swept))

    # -- helpers ----------------------------------------------------------------------------------------

    def _below(self, table: TableHandle) -> str:
        return self.root.relative(Location.of(table.location)) or ""

    def _check_schema(self, schema: str) -> None:
        if schema != DEFAULT_SCHEMA and self._schemas.find(schema) is None:
            raise no_schema(self.catalog, schema, self.list_schemas())

    def _keep_schema(self, schema: str) -> None:
        """Keep a schema from being dropped until a table is in it. Raises SCHEMA_NOT_FOUND."""
        if not self._schemas.open(schema):
            raise no_schema(self.catalog, schema, self.list_schemas())
