"""A catalog that is a folder: ``<warehouse>/<schema>/<table>``. Shared by formats whose tables are folders.

How names are spelled there: :mod:`trinity.storage.folder_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trinity.errors import TrinityError, system_code
from trinity.spi import TableHandle, VacuumResult
from trinity.storage.commits import CommitRaced, commit_loop
from trinity.storage.folder_names import NamedFolders
from trinity.storage.graves import check_free, check_only_graves
from trinity.storage.local_folders import bury, check_warehouse, is_folder, make_new, remove_empty, sweep
from trinity.storage.local_hold import held
from trinity.storage.local_sync import make_folder
from trinity.storage.location import Location
from trinity.storage.name_errors import no_schema, no_table, schema_in_use, schema_stays, schema_taken, table_taken
from trinity.storage.object_catalog import DEFAULT_SCHEMA, ObjectCatalog
from trinity.storage.row_changes import RowChanges
from trinity.storage.store import Entry

__all__ = ["FolderCatalog", "FolderMetadata", "Folders", "folders_of"]


class Folders(Protocol):
    """The names of a catalog whose tables lie below one location; :class:`FolderCatalog` says what the methods mean."""

    def list_schemas(self) -> list[str]:
        """Names of the schemas, sorted."""

    def create_schema(self, schema: str) -> None:
        """Makes a schema."""

    def drop_schema(self, schema: str) -> None:
        """Removes a schema that has no tables."""

    def list_tables(self, schema: str) -> list[str]:
        """Names of the tables of a schema, sorted."""

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """The handle of a table, or None."""

    def new_table(self, schema: str, table: str) -> TableHandle:
        """The handle of a table that is about to be made."""

    def name_table(self, table: TableHandle) -> TableHandle:
        """Gives a table of :meth:`new_table` that has been made its name."""

    def drop_table(self, table: TableHandle) -> None:
        """Removes a table, or nothing of it."""

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        """Removes what tables without a name have left."""


def folders_of(catalog: str, warehouse: str, is_table: Callable[[Location], bool]) -> Folders:
    """The names of a catalog, on a disk or in an object store; arguments as of :class:`FolderCatalog`."""
    where = Location.of(warehouse)
    return FolderCatalog(catalog, warehouse, is_table) if where.on_disk else ObjectCatalog(catalog, where)


class FolderCatalog:
    """Schemas and tables as folders.

    Args:
        catalog: the catalog's name, for handles and messages.
        warehouse: folder of the catalog; its first table or schema makes it.
        is_table: tells a table's folder from any other.

    Raises:
        TrinityError: PERMISSION_DENIED, FILESYSTEM_ERROR or CONFIGURATION_INVALID for a warehouse that can be neither
            read nor made.
    """

    def __init__(self, catalog: str, warehouse: str, is_table: Callable[[Location], bool]) -> None:
        self.catalog = catalog
        self.root = Location.of(warehouse)
        self._named = NamedFolders(self.root)
        self._is_table = is_table
        check_warehouse(self.root)

    def list_schemas(self) -> list[str]:
        """Names of the schemas, sorted: ``default``, which needs no folder, and those that have one."""
        return sorted({DEFAULT_SCHEMA, *self._named.names(self.root, lambda _: True)})

    def create_schema(self, schema: str) -> None:
        """Makes the folder. Raises SCHEMA_ALREADY_EXISTS, INVALID_ARGUMENTS (N1), FILESYSTEM_ERROR."""
        if schema == DEFAULT_SCHEMA:
            raise schema_taken(self.catalog, schema)
        folder = self._named.place(schema)
        self._named.keep(schema)
        try:
            make_folder(self.root)
            make_new(folder)
        except FileExistsError as error:
            raise schema_taken(self.catalog, schema) from error
        except OSError as error:
            raise TrinityError(
                system_code(error), f"Folder '{folder}' of schema '{self.catalog}.{schema}' cannot be made: {error}."
            ) from error

    def drop_schema(self, schema: str) -> None:
        """Removes the folder, which is empty but for graves.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND; SCHEMA_NOT_EMPTY naming tables, or files that are nothing of Trinity's;
                NOT_SUPPORTED for ``default``.
        """
        if schema == DEFAULT_SCHEMA:
            raise schema_stays(self.catalog, schema)
        folder = self.folder_of(schema)
        with held(str(folder), alone=True):  # nobody makes a table in it meanwhile
            if tables := self.list_tables(schema):
                raise schema_in_use(self.catalog, schema, tables)
            try:
                check_only_graves(folder, f"{self.catalog}.{schema}")
                sweep(folder)
                remove_empty(folder)
            except FileNotFoundError as error:
                raise self._no_schema(schema) from error
            except OSError as error:  # others have put something into it meanwhile, or it is a link
                what = f"Folder '{folder}' of schema '{self.catalog}.{schema}'"
                raise TrinityError(system_code(error), f"{what} cannot be removed: {error}.") from error

    def list_tables(self, schema: str) -> list[str]:
        """Names of the tables of a schema, sorted. Raises SCHEMA_NOT_FOUND."""
        found = self._named.names(self._named.place(schema), self._is_table)
        self.folder_of(schema)  # after the look, since another one may drop it
        return found

    def _no_schema(self, schema: str) -> TrinityError:
        return no_schema(self.catalog, schema, self.list_schemas())

    def folder_of(self, schema: str) -> Location:
        """The folder of a schema; that of ``default`` may not be there yet. Raises SCHEMA_NOT_FOUND."""
        folder = self._named.place(schema)
        if schema != DEFAULT_SCHEMA and not is_folder(folder):
            raise self._no_schema(schema)
        return folder

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """The handle of a table, or None."""
        folder = self._named.place(schema, table)
        if not (is_folder(folder) and self._is_table(folder)):
            return None
        return TableHandle(self.catalog, schema, table, str(folder))

    def new_table(self, schema: str, table: str) -> TableHandle:
        """The handle of a table that is about to be made.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; FILESYSTEM_ERROR for a folder with files of others.
        """
        self.folder_of(schema)
        if self.get_table(schema, table):
            raise table_taken(f"{self.catalog}.{schema}.{table}")
        folder = self._named.place(schema, table)
        check_free(folder, f"{self.catalog}.{schema}.{table}")
        self._named.keep(table)
        return TableHandle(self.catalog, schema, table, str(folder))

    def name_table(self, table: TableHandle) -> TableHandle:
        """Gives a table of :meth:`new_table` that has been made its name, which here it has by its folder."""
        return table

    def drop_table(self, table: TableHandle) -> None:
        """Removes a table's folder, or none of it. Raises TABLE_NOT_FOUND, also for a folder that is no table."""
        if self.get_table(table.schema, table.table) is None:
            raise no_table(table.full_name)
        folder = self._named.place(table.schema, table.table)
        try:
            bury(folder)
        except FileNotFoundError as error:
            raise no_table(table.full_name) from error
        sweep(folder.parent)

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        """Removes the graves of a schema; a folder is its table's name, and no table lies there without one."""
        sweep(self.folder_of(schema))
        return []


class FolderMetadata(RowChanges):
    """Metadata whose schemas and tables are folders: the part that is the same for every such format."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def list_schemas(self) -> list[str]:
        return self._folders.list_schemas()

    def create_schema(self, schema: str) -> None:
        self._folders.create_schema(schema)

    def drop_schema(self, schema: str) -> None:
        self._folders.drop_schema(schema)

    def list_tables(self, schema: str) -> list[str]:
        return self._folders.list_tables(schema)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        return self._folders.get_table(schema, table)

    def sweep(self, schema: str, older_than_ms: int) -> VacuumResult | None:
        gone = self._folders.sweep(schema, older_than_ms)
        return VacuumResult(len(gone), sum(entry.size for entry in gone), 0) if gone else None

    def make_named(self, schema: str, table: str, make: Callable[[TableHandle], None]) -> TableHandle:
        """Make a table, and give it its name.

        Args:
            schema: its schema.
            table: its name.
            make: puts its first version; raises CommitRaced where another one did.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS.
        """
        first = self._folders.new_table(schema, table)
        where = Location.of(first.location)
        seen = [] if where.on_disk else [first]  # looking costs a request there

        def attempt() -> TableHandle:
            try:
                made = seen.pop() if seen else self._folders.new_table(schema, table)
                make(made)
                return made
            except FileNotFoundError as gone:  # a drop of the table that was there took the folder
                raise CommitRaced(f"'{first.location}' was taken away") from gone

        with held(str(where.parent)):  # the schema stays
            return self._folders.name_table(commit_loop(first.location, attempt))

    def drop_table(self, table: TableHandle) -> None:
        commit_loop(table.location, lambda: self._folders.drop_table(table), alone=True)
