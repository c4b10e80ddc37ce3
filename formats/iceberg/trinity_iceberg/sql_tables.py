"""PyIceberg's SQL catalog, except that a commit costs the same for any number of versions.

PyIceberg's class reads the metadata file again for each commit, copies all of it, and serializes every snapshot.
Snapshots never change. So the class here copies none of the earlier ones, and remembers their serialized texts.

A catalog in an SQLite file is made by its first schema or table. Before that it reads as empty. SQLite would make the
file just to look into it, so without a file readers get a catalog in memory. The file gets all its tables in one
transaction, so a file that is not empty has a whole catalog. A connection stays with the file that it has opened, even
if a backup puts another file in its place, so connections are closed once the file is another one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog, SqlCatalogBaseTable
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemoveStatisticsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.config import Config, merge_config
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Insert,
    Update,
    and_,
    bindparam,
    create_engine,
    delete,
    event,
    exists,
    make_url,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from trinity.errors import TrinityError, system_code
from trinity.storage import Cache, Location, ObjectStore, Stat
from trinity_iceberg.names import ensure_default_namespace
from trinity_iceberg.options import DEFAULT_SCHEMA
from trinity_iceberg.sql_limits import keep_limits

_KEPT: Final = 16
_TEXTS: Final = 64 * 1024 * 1024
"""How many bytes of serialized snapshots a process keeps."""
_PLAIN: Final = (SetPropertiesUpdate, SetStatisticsUpdate, RemoveStatisticsUpdate)
"""Updates that refer to no snapshot."""
_TABLES: Final = [
    str(CreateTable(table, if_not_exists=True).compile(dialect=dialect()))
    for table in SqlCatalogBaseTable.metadata.sorted_tables
]
_DEFAULT: Final = f"INSERT OR IGNORE INTO {IcebergNamespaceProperties.__tablename__} VALUES (?, ?, ?, ?)"
_ROWS: Final = IcebergTables.__table__.c
_LOCATION: Final = select(_ROWS.metadata_location).where(
    _ROWS.catalog_name == bindparam("catalog"),
    _ROWS.table_namespace == bindparam("namespace"),
    _ROWS.table_name == bindparam("name"),
)


def location_in(catalog: SqlCatalog, namespace: str, name: str) -> str | None:
    """Return a table's current metadata file; None without such a table.

    Each read and each commit asks for it, so this is a compiled query: SQLAlchemy's mapped objects take several times
    as long.
    """
    with catalog.engine.connect() as connection:
        where = {"catalog": catalog.name, "namespace": namespace, "name": name}
        found: str | None = connection.execute(_LOCATION, where).scalar()
    return found


class SqlTables(SqlCatalog):
    """PyIceberg's SQL catalog, with commits that cost the same for any number of versions."""

    def __init__(self, name: str, **properties: str) -> None:
        if not properties["uri"].startswith("sqlite"):  # a server may have ended a connection, as by a restart
            properties = {"pool_pre_ping": "true", **properties}
        super().__init__(name, **properties)
        self._known: Cache[str, tuple[Stat | None, TableMetadata]] = Cache(_KEPT)

    def _init_catalog(self) -> None:
        keep_limits(self.engine)  # before the first connection
        event.listen(self.engine, "before_execute", self._check_namespace)
        super()._init_catalog()

    def _check_namespace(self, connection: Connection, statement: Any, *_: Any) -> None:
        """Lock the namespace of a statement that names a table, and check that the namespace still exists.

        PyIceberg checks this earlier, in another transaction, after which others may drop the namespace.

        Raises:
            NoSuchNamespaceError: it was dropped meanwhile.
        """
        if not isinstance(statement, Insert | Update) or statement.table != IcebergTables.__table__:
            return
        namespace = statement.compile().params.get("table_namespace")
        if namespace is not None and not self._lock(connection, namespace) and not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")

    def _lock(self, connection: Connection, namespace: str) -> bool:
        """Lock a namespace until the transaction ends; return False for one that exists only by its tables."""
        own = self._own(namespace)
        same = (
            update(IcebergNamespaceProperties).where(own).values(property_key=IcebergNamespaceProperties.property_key)
        )
        return connection.execute(same).rowcount > 0

    def _own(self, namespace: str) -> ColumnElement[bool]:
        """Return the condition for the rows of a namespace."""
        return and_(
            IcebergNamespaceProperties.catalog_name == self.name, IcebergNamespaceProperties.namespace == namespace
        )

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates, and remember the metadata, so that it is not read back."""
        done = super().commit_table(table, requirements, updates)
        here, stat = stat_of(done.metadata_location)
        if here:
            self._known.put(done.metadata_location, (stat, done.metadata))
        return done

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Drop an empty namespace; if several processes drop it, one succeeds."""
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        name = Catalog.namespace_to_string(namespace)
        holds = exists().where(IcebergTables.catalog_name == self.name, IcebergTables.table_namespace == name)
        with self.engine.begin() as connection:
            self._lock(connection, name)  # waits for others that make tables there, so that the DELETE sees these
            gone = connection.execute(delete(IcebergNamespaceProperties).where(self._own(name), ~holds)).rowcount
        if not gone and self.namespace_exists(namespace):
            raise NamespaceNotEmptyError(f"Namespace {name} is not empty.")
        if not gone:
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        here, stat = stat_of(location) if location else (False, None)
        known = self._known.peek(location) if location and here else None
        if location is None or known is None or known[0] != stat:
            loaded = super()._convert_orm_to_iceberg(orm_table)
            if here:
                self._known.put(loaded.metadata_location, (stat, loaded.metadata))
            return loaded
        self._known.put(location, known)
        name = (*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name)
        io = self._load_file_io(known[1].properties, location)
        return Table(name, known[1], location, io, self)

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        if current_table is None or not _only_adds(updates):
            return super()._update_and_stage_table(current_table, table_identifier, requirements, updates)
        before = current_table.metadata
        for requirement in requirements:
            requirement.validate(before)
        slim = before.model_copy(update={"snapshots": [], "snapshot_log": []})
        table = Table(table_identifier, slim, current_table.metadata_location, current_table.io, self)
        staged = super()._update_and_stage_table(table, table_identifier, (), updates)
        added = staged.metadata
        all_of_both = {
            "snapshots": [*before.snapshots, *added.snapshots],
            "snapshot_log": [*before.snapshot_log, *added.snapshot_log],
        }
        metadata = added.model_copy(update=all_of_both)
        return StagedTable(table_identifier, metadata, staged.metadata_location, staged.io, self)

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        if metadata_path.endswith(".gz.metadata.json") or Config().get_bool("legacy-current-snapshot-id"):
            SqlCatalog._write_metadata(metadata, io, metadata_path)
            return
        rest = metadata.model_dump_json(exclude_none=True, exclude={"snapshots"})
        snapshots = ",".join(map(_text, metadata.snapshots))
        with io.new_output(metadata_path).create() as stream:
            stream.write(f'{rest[:-1]},"snapshots":[{snapshots}]}}'.encode())


def stat_of(file: str) -> tuple[bool, Stat | None]:
    """Return whether a metadata file exists, and its ``stat``; (True, None) in a bucket, where names are unique."""
    location = Location.of(file)
    if not location.on_disk:
        return True, None
    found = ObjectStore(location.parent).stat(location.name)
    return found is not None, found


def _only_adds(updates: Collection[TableUpdate]) -> bool:
    """Return whether updates add a snapshot, and refer to no earlier one."""
    added = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)}
    rest = [update for update in updates if not isinstance(update, AddSnapshotUpdate)]
    refs = [update for update in rest if isinstance(update, SetSnapshotRefUpdate)]
    plain = all(isinstance(update, (*_PLAIN, SetSnapshotRefUpdate)) for update in rest)
    return bool(added) and plain and all(ref.snapshot_id in added for ref in refs)


def _text(snapshot: Snapshot) -> str:
    known = _texts.peek(snapshot.snapshot_id)
    if known is not None and known[0] is snapshot:
        return known[1]
    text = snapshot.model_dump_json(exclude_none=True)
    _texts.put(snapshot.snapshot_id, (snapshot, text))
    return text


_texts: Final[Cache[int, tuple[Snapshot, str]]] = Cache(_TEXTS, lambda known: len(known[1]))


def sql_tables(name: str, properties: dict[str, Any]) -> SqlTables:
    """Return a SQL catalog, by its properties and PyIceberg's own configuration for that name."""
    merged: dict[str, Any] = merge_config(Config().get_catalog_config(name) or {}, properties)
    file = _file_of(merged["uri"])
    # Trinity makes the warehouse folder and no other; if another folder is missing, SQLite raises the error
    late = file and (file.parent == Location.of(merged["warehouse"]) or ObjectStore(file.parent).is_folder())
    return SqliteTables(file, name, **merged) if file and late else SqlTables(name, **merged)


def _file_of(uri: str) -> Location | None:
    """Return the file of an SQLite address; None for other databases, in-memory ones and SQLite URIs."""
    url = make_url(uri)
    plain = url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":memory:", "file:"))
    return Location.of(str(url.database)) if plain else None


class SqliteTables(SqlTables):
    """A catalog in an SQLite file, which may not exist yet."""

    def __init__(self, file: Location, name: str, **properties: str) -> None:
        self._file = file
        self._folder = ObjectStore(file.parent)
        self._tag = ""
        """The tag of the file that was found last; empty before."""
        self._empty = create_engine("sqlite://", creator=self._in_memory, poolclass=NullPool)
        super().__init__(name, **properties)

    @property
    def engine(self) -> Engine:
        """The engine of the file; while there is none, the engine of an empty catalog in memory."""
        tag = self._tag_now()
        if tag and not self._tag:
            self._init_catalog()
            ensure_default_namespace(self)  # another engine may have made the file, without this namespace
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
        """Make a namespace, and before it the file if there is none."""
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
        """Return a tag that changes when the database file is replaced by another of its name; empty without one."""
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
