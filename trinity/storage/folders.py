"""A catalog that is a folder: ``<warehouse>/<schema>/<table>``. Shared by formats whose tables are folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage.commits import commit_loop
from trinity.storage.row_changes import RowChanges
from trinity.storage.store import local_path

__all__ = ["FolderCatalog", "FolderMetadata"]

DEFAULT_SCHEMA = "default"


class FolderCatalog:
    """Schemas and tables as folders.

    Args:
        catalog: the catalog's name, for handles and messages.
        warehouse: folder of the catalog; made when missing.
        is_table: tells a table's folder from any other.
    """

    def __init__(self, catalog: str, warehouse: str, is_table: Callable[[Path], bool]) -> None:
        self.catalog = catalog
        self.root = Path(local_path(warehouse))
        self._is_table = is_table
        try:
            (self.root / DEFAULT_SCHEMA).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrinityError(
                "FILESYSTEM_ERROR", f"Warehouse folder '{self.root}' cannot be made or written: {error.strerror}."
            ) from error

    def list_schemas(self) -> list[str]:
        """Names of the schema folders, sorted."""
        return sorted(p.name for p in self.root.iterdir() if p.is_dir() and p.name[0] not in "._")

    def create_schema(self, schema: str) -> None:
        """Makes the folder. Raises SCHEMA_ALREADY_EXISTS."""
        try:
            (self.root / schema).mkdir()
        except FileExistsError as error:
            raise TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{self.catalog}.{schema}' exists already.") from error

    def drop_schema(self, schema: str) -> None:
        """Removes the folder. Raises SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY; NOT_SUPPORTED for ``default``."""
        if schema == DEFAULT_SCHEMA:
            raise TrinityError("NOT_SUPPORTED", f"Schema '{self.catalog}.{schema}' always exists; drop its tables.")
        if tables := self.list_tables(schema):
            raise TrinityError(
                "SCHEMA_NOT_EMPTY",
                f"Schema '{self.catalog}.{schema}' still holds {', '.join(tables)}; drop these tables first.",
            )
        shutil.rmtree(self.folder_of(schema))

    def list_tables(self, schema: str) -> list[str]:
        """Names of the table folders of a schema, sorted. Raises SCHEMA_NOT_FOUND."""
        return sorted(p.name for p in self.folder_of(schema).iterdir() if p.is_dir() and self._is_table(p))

    def folder_of(self, schema: str) -> Path:
        """The folder of a schema. Raises SCHEMA_NOT_FOUND."""
        folder = self.root / schema
        if not folder.is_dir():
            raise TrinityError(
                "SCHEMA_NOT_FOUND",
                f"Catalog '{self.catalog}' has no schema '{schema}'; it has {', '.join(self.list_schemas())}.",
            )
        return folder

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """The handle of a table, or None."""
        folder = self.root / schema / table
        if not (folder.is_dir() and self._is_table(folder)):
            return None
        return TableHandle(self.catalog, schema, table, str(folder))

    def new_table(self, schema: str, table: str) -> TableHandle:
        """The handle of a table that is about to be made. Raises SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS."""
        folder = self.folder_of(schema) / table
        if self.get_table(schema, table):
            raise TrinityError(
                "TABLE_ALREADY_EXISTS",
                f"Table '{self.catalog}.{schema}.{table}' exists already; use IF NOT EXISTS, or drop it first.",
            )
        return TableHandle(self.catalog, schema, table, str(folder))

    def drop_table(self, table: TableHandle) -> None:
        """Removes a table's folder: renamed first, so that a crash leaves the whole table or none of it."""
        folder = Path(table.location)
        grave = folder.with_name(f".dropped-{folder.name}-{os.getpid()}")
        try:
            folder.rename(grave)
        except FileNotFoundError as error:
            raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist.") from error
        shutil.rmtree(grave, ignore_errors=True)


class FolderMetadata(RowChanges):
    """Metadata whose schemas and tables are folders: the part that is the same for every such format."""

    def __init__(self, folders: FolderCatalog) -> None:
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

    def drop_table(self, table: TableHandle) -> None:
        commit_loop(table.location, lambda: self._folders.drop_table(table), alone=True)
