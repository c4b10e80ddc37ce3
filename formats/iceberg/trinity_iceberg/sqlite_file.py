"""A catalog in an SQLite file, which its first schema or table makes. Before that it reads as empty.

SQLite would make a file when it looks for it. So without a file, readers get a catalog in memory. The file begins with
all its tables, in one transaction: whoever finds it not empty finds a whole catalog.

A connection goes on with the file that it has opened, also when a backup puts another one in its place. So none is kept
beyond that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

from pyiceberg.catalog.sql import IcebergNamespaceProperties, SqlCatalogBaseTable
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.config import Config, merge_config
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from trinity.errors import TrinityError, system_code
from trinity.storage import Location, ObjectStore
from trinity_iceberg.names import see_to_default
from trinity_iceberg.options import DEFAULT_SCHEMA
from trinity_iceberg.sql_tables import SqlTables

__all__ = ["SqliteTables", "sql_tables"]

_TABLES: Final = [
    str(CreateTable(table, if_not_exists=True).compile(dialect=dialect()))
    for table in SqlCatalogBaseTable.metadata.sorted_tables
]
_DEFAULT: Final = f"INSERT OR IGNORE INTO {IcebergNamespaceProperties.__tablename__} VALUES (?, ?, ?, ?)"


def sql_tables(name: str, properties: dict[str, Any]) -> SqlTables:
    """Return a SQL catalog, by its properties and PyIceberg's own configuration for that name."""
    merged: dict[str, Any] = merge_config(Config().get_catalog_config(name) or {}, properties)
    file = _file_of(merged["uri"])
    # Trinity makes no folder but the warehouse: for another missing one SQLite raises the error
    late = file and (file.parent == Location.of(merged["warehouse"]) or ObjectStore(file.parent).is_folder())
    return SqliteTables(file, name, **merged) if file and late else SqlTables(name, **merged)


def _file_of(uri: str) -> Location | None:
    """Return the file of an address; None for a database that is none, and for an SQLite URI."""
    url = make_url(uri)
    plain = url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":memory:", "file:"))
    return Location.of(str(url.database)) if plain else None


class SqliteTables(SqlTables):
    """See :class:`SqlTables`.

    Args:
        file: the catalog's file, which may not exist yet.
        name: the catalog's name.
        properties: PyIceberg's properties.
    """

    def __init__(self, file: Location, name: str, **properties: str) -> None:
        self._file = file
        self._folder = ObjectStore(file.parent)
        self._tag = ""
        """Of the file that was found last; none before."""
        self._empty = create_engine("sqlite://", creator=self._in_memory, poolclass=NullPool)
        super().__init__(name, **properties)

    @property
    def engine(self) -> Engine:
        """The file's engine; that of an empty catalog while there is no file."""
        tag = self._tag_now()
        if tag and not self._tag:
            self._init_catalog()
            see_to_default(self)  # another engine may have made it
        elif tag and tag != self._tag:
            self._of_file.dispose()
            self._tag = tag
        return self._of_file if tag else self._empty

    @engine.setter
    def engine(self, made: Engine) -> None:
        self._of_file = made

    def _init_catalog(self) -> None:
        self._tag = self._tag_now()
        super()._init_catalog()

    def make(self) -> None:
        """Make the file, unless it exists; several processes may do so at once.

        Raises:
            TrinityError: PERMISSION_DENIED, FILESYSTEM_ERROR.
        """
        if not self._tag_now():
            try:
                self._folder.make_folder()
            except OSError as error:
                raise TrinityError(
                    system_code(error), f"Folder '{self._folder.root}' cannot be made: {error}."
                ) from error
            with self._of_file.connect() as connection:
                self._make_tables(connection.exec_driver_sql)
                connection.commit()
            self._init_catalog()

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Make a namespace that does not exist, and the file."""
        if not self.namespace_exists(namespace):
            self.make()
        super().create_namespace(namespace, properties)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates; the first ones of a new table make the file."""
        self.make()
        return super().commit_table(table, requirements, updates)

    def _tag_now(self) -> str:
        """Return what tells the present file from another one of its name; nothing where there is none."""
        found = self._folder.stat(self._file.name)
        return found.tag if found and found.size else ""

    def _in_memory(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._make_tables(connection.execute)
        connection.commit()
        connection.execute("PRAGMA query_only = ON")  # writes are refused, and not lost
        return connection

    def _make_tables(self, run: Callable[..., object]) -> None:
        for statement in ("BEGIN IMMEDIATE", *_TABLES):
            run(statement)
        run(_DEFAULT, (self.name, DEFAULT_SCHEMA, "exists", "true"))
