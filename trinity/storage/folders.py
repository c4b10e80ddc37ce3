"""Catalogs whose tables are folders, ``<warehouse>/<schema>/<table>``, for every format that has such tables.

:mod:`trinity.storage.folder_names` spells names as folders. Files of others are never removed with a folder (N1).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from trinity.errors import TrinityError, system_code
from trinity.spi import TableHandle, VacuumResult
from trinity.storage.commits import CommitRaced, RowChanges, commit_loop
from trinity.storage.entries import Entry
from trinity.storage.folder_names import (
    NamedFolders,
    no_schema,
    no_table,
    permanent_schema_error,
    schema_in_use,
    schema_taken,
    table_taken,
)
from trinity.storage.local_folders import (
    check_warehouse,
    empty_trash,
    entries,
    files_below,
    is_folder,
    make_new,
    move,
    move_to_trash,
    remove_empty,
)
from trinity.storage.local_objects import folder_lock, make_folder
from trinity.storage.location import Location
from trinity.storage.object_catalog import DEFAULT_SCHEMA, METADATA, ObjectCatalog
from trinity.storage.parquet_sink import is_sink_file


def check_only_trash(
    folder: os.PathLike[str], schema: str, is_renamed: Callable[[str], bool] = lambda name: False
) -> None:
    """Check that the folder of a schema holds only dropped tables, and those that were renamed into another schema.

    Args:
        folder: the schema's folder.
        schema: its full name, for the message.
        is_renamed: returns whether a name in the folder is that of a renamed table's folder.

    Raises:
        TrinityError: SCHEMA_NOT_EMPTY naming other files and folders.
    """
    if found := [name for name in entries(folder) if not is_renamed(name)]:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise TrinityError(
            "SCHEMA_NOT_EMPTY",
            f"Folder '{folder}' of schema '{schema}' holds {', '.join(found[:5])}{more}, and Trinity removes nothing "
            "that is no table of its own; move that away first.",
        )


def check_free(folder: os.PathLike[str], table: str, metadata: str) -> None:
    """Check that the folder of a new table holds no files of others, which a DROP of the table would remove.

    Files that writers to an earlier table of that name have left are allowed.

    Args:
        folder: the new table's folder.
        table: its full name, for the message.
        metadata: the folder, below the table's, where a CREATE that was killed has left files.

    Raises:
        TrinityError: FILESYSTEM_ERROR naming a file.
    """
    for path in files_below(folder):
        name = path.rpartition("/")[2]
        if not (is_sink_file(name) or path.split("/")[0] == metadata):
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"Folder '{folder}' of new table '{table}' holds '{name}', which Trinity has not written; move it "
                "away, or make a table of these files with session.register().",
            )


class Folders(Protocol):
    """The names of a catalog whose tables lie below one location; :class:`FolderCatalog` documents the methods."""

    def list_schemas(self) -> list[str]:
        """Return the names of the schemas, sorted."""

    def create_schema(self, schema: str) -> None:
        """Make a schema."""

    def drop_schema(self, schema: str) -> None:
        """Remove a schema that has no tables."""

    def list_tables(self, schema: str) -> list[str]:
        """Return the names of the tables of a schema, sorted."""

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """Return the handle of a table, or None."""

    def new_table(self, schema: str, table: str) -> TableHandle:
        """Return the handle of a table that is about to be made."""

    def name_table(self, table: TableHandle) -> TableHandle:
        """Give a table of :meth:`new_table` its name, once the table has been made."""

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        """Give a table another name."""

    def drop_table(self, table: TableHandle) -> None:
        """Remove a table, whole or not at all."""

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        """Remove tables without a name, and return their objects."""


def folders_of(catalog: str, warehouse: str, is_table: Callable[[Location], bool], metadata: str = METADATA) -> Folders:
    """Return the names of a catalog on a disk or in an object store; arguments are those of :class:`FolderCatalog`."""
    where = Location.of(warehouse)
    if where.on_disk:
        return FolderCatalog(catalog, warehouse, is_table, metadata)
    return ObjectCatalog(catalog, where, metadata)


class FolderCatalog:
    """The names of a catalog on a disk: schemas and tables are folders.

    Args:
        catalog: the catalog's name, for handles and messages.
        warehouse: folder of the catalog; its first table or schema makes it.
        is_table: returns whether a folder is a table's.
        metadata: name of the folder, below a table's, in which the format keeps what a CREATE writes.

    Raises:
        TrinityError: PERMISSION_DENIED, FILESYSTEM_ERROR or CONFIGURATION_INVALID for a warehouse that can be neither
            read nor made.
    """

    def __init__(
        self, catalog: str, warehouse: str, is_table: Callable[[Location], bool], metadata: str = METADATA
    ) -> None:
        self.catalog = catalog
        self.root = Location.of(warehouse)
        self._named = NamedFolders(self.root)
        self._is_table = is_table
        self._metadata = metadata
        check_warehouse(self.root)

    def list_schemas(self) -> list[str]:
        """Return the names of the schemas, sorted: ``default``, which needs no folder, and those with a folder."""
        return sorted({DEFAULT_SCHEMA, *self._named.names(self.root, lambda _: True)})

    def create_schema(self, schema: str) -> None:
        """Make the folder. Raises SCHEMA_ALREADY_EXISTS, INVALID_ARGUMENTS (N1), FILESYSTEM_ERROR."""
        if schema == DEFAULT_SCHEMA:
            raise schema_taken(self.catalog, schema)
        folder = self._named.folder(schema)
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
        """Remove the folder, in which only dropped tables may be left.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND; SCHEMA_NOT_EMPTY naming tables, or files that are not Trinity's;
                NOT_SUPPORTED for ``default``.
        """
        if schema == DEFAULT_SCHEMA:
            raise permanent_schema_error(self.catalog, schema)
        folder = self.folder_of(schema)
        with folder_lock(str(folder), exclusive=True):  # nobody makes a table in it meanwhile
            if tables := self.list_tables(schema):
                raise schema_in_use(self.catalog, schema, tables)
            try:
                check_only_trash(folder, f"{self.catalog}.{schema}")
                empty_trash(folder)
                remove_empty(folder)
            except FileNotFoundError as error:
                raise self._no_schema(schema) from error
            except OSError as error:  # others put something into it meanwhile, or it is a link
                what = f"Folder '{folder}' of schema '{self.catalog}.{schema}'"
                raise TrinityError(system_code(error), f"{what} cannot be removed: {error}.") from error

    def list_tables(self, schema: str) -> list[str]:
        """Return the names of the tables of a schema, sorted. Raises SCHEMA_NOT_FOUND."""
        found = self._named.names(self._named.folder(schema), self._is_table)
        self.folder_of(schema)  # raises if the schema was dropped, also if that happened during the listing
        return found

    def _no_schema(self, schema: str) -> TrinityError:
        return no_schema(self.catalog, schema, self.list_schemas())

    def folder_of(self, schema: str) -> Location:
        """Return the folder of a schema; that of ``default`` may not exist yet. Raises SCHEMA_NOT_FOUND."""
        folder = self._named.folder(schema)
        if schema != DEFAULT_SCHEMA and not is_folder(folder):
            raise self._no_schema(schema)
        return folder

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """Return the handle of a table, or None."""
        folder = self._named.folder(schema, table)
        if not (is_folder(folder) and self._is_table(folder)):
            return None
        return TableHandle(self.catalog, schema, table, str(folder))

    def new_table(self, schema: str, table: str) -> TableHandle:
        """Return the handle of a table that is about to be made.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; FILESYSTEM_ERROR for a folder with files of others.
        """
        self.folder_of(schema)
        if self.get_table(schema, table):
            raise table_taken(f"{self.catalog}.{schema}.{table}")
        folder = self._named.folder(schema, table)
        check_free(folder, f"{self.catalog}.{schema}.{table}", self._metadata)
        self._named.keep(table)
        return TableHandle(self.catalog, schema, table, str(folder))

    def name_table(self, table: TableHandle) -> TableHandle:
        """Return the table unchanged: on a disk its folder already gives it its name."""
        return table

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        """Give a table's folder another name, in one step.

        Raises:
            TrinityError: TABLE_NOT_FOUND, SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; FILESYSTEM_ERROR where files that
                are no table's lie in the folder of the new name.
        """
        made = self.new_table(schema, name)
        folder, to = self._named.folder(table.schema, table.table), self._named.folder(schema, name)
        with folder_lock(str(to.parent)):  # nobody drops the schema
            try:
                if self.get_table(table.schema, table.table) is None:
                    raise no_table(table.full_name)
                self.folder_of(schema)  # it may have been dropped before the lock was held
                make_folder(to.parent)
                move(folder, to)
            except FileNotFoundError as error:
                raise no_table(table.full_name) from error
            except FileExistsError as error:
                if self.get_table(schema, name):
                    raise table_taken(made.full_name) from error
                text = (
                    f"Folder '{to}' of new table '{made.full_name}' is not empty: another session makes a table there, "
                    "or was killed as it did. Try again; if that does not help, move the files away."
                )
                raise TrinityError("FILESYSTEM_ERROR", text) from error
            except OSError as error:
                what = f"Folder '{folder}' of table '{table.full_name}' cannot be renamed"
                raise TrinityError(system_code(error), f"{what}: {error}.") from error
        return made

    def drop_table(self, table: TableHandle) -> None:
        """Remove a table's folder, whole or not at all. Raises TABLE_NOT_FOUND, also for a folder that is no table."""
        if self.get_table(table.schema, table.table) is None:
            raise no_table(table.full_name)
        folder = self._named.folder(table.schema, table.table)
        try:
            move_to_trash(folder)
        except FileNotFoundError as error:
            raise no_table(table.full_name) from error
        empty_trash(folder.parent)

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        """Remove dropped tables of a schema. Return no objects: apart from the trash every table's folder is named."""
        empty_trash(self.folder_of(schema))
        return []


class FolderMetadata(RowChanges):
    """Base class of the metadata of formats whose tables are folders."""

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
            make: puts the table's first version; raises CommitRaced if another writer was first.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS.
        """
        first = self._folders.new_table(schema, table)
        where = Location.of(first.location)
        seen = [] if where.on_disk else [first]  # in a bucket a second look costs a request

        def attempt() -> TableHandle:
            try:
                made = seen.pop() if seen else self._folders.new_table(schema, table)
                make(made)
                return made
            except FileNotFoundError as gone:  # a drop of the earlier table removed the folder
                raise CommitRaced(f"'{first.location}' was taken away") from gone

        with folder_lock(str(where.parent)):  # nobody drops the schema
            return self._folders.name_table(commit_loop(first.location, attempt))

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        def attempt() -> TableHandle:
            self.check_pinned(table)
            renamed = self._folders.rename_table(table, schema, name)
            self.forget(table)
            self.forget(renamed)
            return renamed

        return commit_loop(table.location, attempt, exclusive=True)

    def drop_table(self, table: TableHandle) -> None:
        def attempt() -> None:
            self.check_pinned(table)
            self._folders.drop_table(table)
            self.forget(table)

        commit_loop(table.location, attempt, exclusive=True)

    def forget(self, table: TableHandle) -> None:
        """Forget what is remembered of a table."""
