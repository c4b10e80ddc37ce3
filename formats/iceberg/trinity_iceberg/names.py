"""Names in an Iceberg catalog, and the folders of its tables (N1).

A schema is a namespace of one level. PyIceberg splits a namespace at its dots and strips the blanks around it, so these
are escaped. A table's name is used in the catalog unchanged.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import Location, ObjectStore, no_table, table_taken
from trinity.storage.folder_names import (
    OWN_FOLDER,
    escaped,
    folder_name,
    no_schema,
    own_folder,
    permanent_schema_error,
    schema_in_use,
    schema_taken,
    unescaped,
)
from trinity.storage.folders import check_free, check_only_trash
from trinity.storage.local_folders import empty_trash, move_to_trash, remove_empty
from trinity.storage.local_objects import folder_lock, make_folder
from trinity_iceberg.metadata_files import METADATA, metadata_file_names, read_metadata
from trinity_iceberg.options import CATALOG_FILE, DEFAULT_SCHEMA
from trinity_iceberg.trouble import catalog_errors, may_be_under_way, of_another_kind

_MOST_READ: Final = 1000
"""Maximum number of metadata files that a DROP or a vacuum reads; a folder with more of unknown tables stays."""
_SPECIAL: Final = re.compile(r"[.~]|^\s+|\s+\Z")


def identifier_of(schema: str, table: str) -> tuple[str, str]:
    """Return a table's namespace and name."""
    return escaped(schema, _SPECIAL), table


def schema_of(namespace: Sequence[str]) -> str:
    """Return the schema of a namespace. Levels of another engine's namespace are joined by dots."""
    found = ".".join(namespace)
    try:
        schema = unescaped(found)
    except UnicodeDecodeError:
        return found
    return schema if escaped(schema, _SPECIAL) == found else found


def ensure_default_namespace(iceberg: Catalog) -> None:
    """Make the namespace ``default``, which every catalog has, unless it exists."""
    if not iceberg.namespace_exists(DEFAULT_SCHEMA):
        with contextlib.suppress(NamespaceAlreadyExistsError, IntegrityError):
            iceberg.create_namespace(DEFAULT_SCHEMA)


class CatalogNames:
    """The names of a catalog's schemas and tables. Without a warehouse the catalog chooses folders for new tables."""

    def __init__(self, catalog: str, iceberg: Catalog, warehouse: Location | None) -> None:
        self._catalog = catalog
        self._iceberg = iceberg
        self._warehouse = warehouse

    def list_schemas(self) -> list[str]:
        """Return the names of the schemas, sorted."""
        with catalog_errors(self._catalog):
            return sorted({DEFAULT_SCHEMA} | set(map(schema_of, self._iceberg.list_namespaces())))

    def create_schema(self, schema: str) -> None:
        """Make the namespace. Raises SCHEMA_ALREADY_EXISTS."""
        try:
            with catalog_errors(self._catalog):
                self._iceberg.create_namespace(_namespace(schema))
        except (NamespaceAlreadyExistsError, IntegrityError) as error:
            raise schema_taken(self._catalog, schema) from error

    def drop_schema(self, schema: str) -> None:
        """Remove the namespace. Its folder goes too, unless tables lie there that were renamed into another schema.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND; SCHEMA_NOT_EMPTY naming tables, or files that are not Trinity's;
                NOT_SUPPORTED for ``default``.
        """
        if tables := self.list_tables(schema):
            raise schema_in_use(self._catalog, schema, tables)
        if schema == DEFAULT_SCHEMA:
            raise permanent_schema_error(self._catalog, schema)
        folder = self._disk_folder(schema)
        # the lock keeps others from making a table in the folder meanwhile
        with folder_lock(str(folder), exclusive=True) if folder else contextlib.nullcontext():
            self._drop_empty(schema, folder)

    def _drop_empty(self, schema: str, folder: Location | None) -> None:
        try:
            if self._holds_namespaces(schema):
                raise self._still_holds(schema)
            if folder is not None:
                check_only_trash(folder, f"{self._catalog}.{schema}", lambda name: self._holds_table(folder.join(name)))
            with catalog_errors(self._catalog):
                self._iceberg.drop_namespace(_namespace(schema))
        except (NoSuchNamespaceError, FileNotFoundError) as error:
            raise self._missing(schema) from error
        except NamespaceNotEmptyError as error:
            raise self._still_holds(schema) from error
        if folder is not None:
            empty_trash(folder)
            with contextlib.suppress(OSError):  # a new schema of this name reuses the folder
                remove_empty(folder)

    def list_tables(self, schema: str) -> list[str]:
        """Return the names of the tables of a schema, sorted. Raises SCHEMA_NOT_FOUND."""
        try:
            with catalog_errors(self._catalog):
                if not self._iceberg.namespace_exists(_namespace(schema)):
                    raise self._missing(schema)
                return sorted(identifier[-1] for identifier in self._iceberg.list_tables(_namespace(schema)))
        except NoSuchNamespaceError as error:  # another process has dropped it since
            raise self._missing(schema) from error

    def _missing(self, schema: str) -> TrinityError:
        return no_schema(self._catalog, schema, self.list_schemas())

    def _still_holds(self, schema: str) -> TrinityError:
        text = f"Schema '{self._catalog}.{schema}' still holds views or schemas; drop these first."
        return TrinityError("SCHEMA_NOT_EMPTY", text)

    def _holds_namespaces(self, schema: str) -> bool:
        """Return whether a schema in a database holds namespaces of another engine; False for other catalogs.

        These refuse by themselves to drop such a namespace.
        """
        if not isinstance(self._iceberg, SqlCatalog):
            return False
        with catalog_errors(self._catalog):
            return bool(self._iceberg.list_namespaces(_namespace(schema)))

    def new_location(self, schema: str, table: str) -> Location | None:
        """Return the folder of a new table; None if the catalog chooses it.

        On a disk it is the folder of the table's name, unless a renamed table lies there. In a bucket, where no folder
        can be moved or locked, it is a folder that no other table ever has.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; FILESYSTEM_ERROR for a folder with foreign files.
        """
        folder = self._new_folder(schema, table)
        if table in self.list_tables(schema):  # looked up after the folder, whose table may be the one of this name
            raise table_taken(f"{self._catalog}.{schema}.{table}")
        if folder is not None and folder.on_disk:
            check_free(folder, f"{self._catalog}.{schema}.{table}", METADATA)
        return folder

    def is_occupied(self, folder: Location) -> bool:
        """Return whether a folder that the catalog chose for a new table has files, as those of a renamed table.

        A folder that cannot be listed counts as free.
        """
        with contextlib.suppress(TrinityError):
            return bool(ObjectStore(folder).names(METADATA))
        return False

    @contextlib.contextmanager
    def creating_table(self, schema: str, location: Location | None) -> Iterator[None]:
        """Run a block that makes a table.

        If another table got the name, or the schema was dropped, delete the objects that the block has put in a bucket.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND for a schema that was dropped meanwhile.
        """
        try:
            try:
                yield
            except NoSuchNamespaceError as error:
                raise self._missing(schema) from error
        except TrinityError as error:
            lost = error.code in ("TABLE_ALREADY_EXISTS", "SCHEMA_NOT_FOUND")
            if lost and location is not None and not location.on_disk:
                ObjectStore(location).delete_below("")
            raise

    def _new_folder(self, schema: str, table: str) -> Location | None:
        if (found := self._folder(schema)) is None:
            return None
        if not found.on_disk:
            return found.join(own_folder(table))
        folder = found.join(folder_name(table))
        return folder.parent.join(uuid.uuid4().hex) if self._holds_table(folder) else folder

    def _disk_folder(self, schema: str) -> Location | None:
        """Return the folder of a schema on a disk, so that it can be locked, making it if need be; None in a bucket."""
        folder = self._folder(schema)
        if folder is None or not folder.on_disk:
            return None
        with contextlib.suppress(OSError):
            make_folder(folder)
        return folder if ObjectStore(folder).is_folder() else None

    def _folder(self, schema: str) -> Location | None:
        name = folder_name(schema)
        if name.startswith(CATALOG_FILE):  # the catalog's file, or one that SQLite puts beside it
            name = f"~{ord(name[0]):x}{name[1:]}"
        return self._warehouse.join(name) if self._warehouse else None

    def rename_table(self, table: TableHandle, schema: str, name: str, check: Callable[[], None]) -> TableHandle:
        """Give a table another name in the catalog; its files stay where they are.

        Raises:
            TrinityError: TABLE_NOT_FOUND, TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND; NOT_SUPPORTED for a catalog that
                cannot rename in one step; errors of ``check``.
        """
        renamed = replace(table, schema=schema, table=name)
        if not _can_rename(self._iceberg):
            raise self._cannot_rename(table)
        if table.table in self.list_tables(table.schema) and name in self.list_tables(schema):
            raise table_taken(renamed.full_name)
        old, new = (identifier_of(found.schema, found.table) for found in (table, renamed))
        try:
            # nobody makes a table in the folder, which has no name of its own any more, and nobody commits to the table
            parent = str(Location.of(table.location).parent)
            with (
                folder_lock(parent, exclusive=True),
                folder_lock(table.location, exclusive=True),
                catalog_errors(self._catalog),
            ):
                check()
                self._iceberg.rename_table(old, new)
        except NoSuchTableError as error:
            raise no_table(table.full_name) from error
        except (TableAlreadyExistsError, IntegrityError) as error:
            raise table_taken(renamed.full_name) from error
        except NoSuchNamespaceError as error:
            raise self._missing(schema) from error
        except TrinityError as error:
            if not (may_be_under_way(error) and self._is_now(renamed)):
                raise
        return renamed

    def _is_now(self, table: TableHandle) -> bool:
        """Return whether a handle's name now belongs to the table at its location. Raises the catalog's errors."""
        with catalog_errors(self._catalog):
            try:
                found = load_table(self._iceberg, identifier_of(table.schema, table.table))
            except NoSuchTableError:
                return False
        return Location.of(found.location()) == Location.of(table.location)

    def _cannot_rename(self, table: TableHandle) -> TrinityError:
        return TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.full_name}' keeps its name: in catalog '{self._catalog}' PyIceberg renames none, or in two "
            "steps, between which a commit is lost. Copy it by "
            f"session.table('{table.full_name}').copy_to(name), then drop it.",
        )

    def drop_table(self, table: TableHandle, check: Callable[[], None]) -> None:
        """Remove a table from the catalog, then its folder: a crash leaves nothing under the name.

        The folder stays if it lies where Trinity puts no tables, has no Iceberg metadata, or holds another table. On a
        disk locks keep others from making another table between the check and the drop.

        Raises:
            TrinityError: TABLE_NOT_FOUND; errors of ``check``.
        """
        folder = Location.of(table.location)
        placed = self._warehouse is None or folder.parent.parent == self._warehouse
        placed = placed and not self.is_shared(table, folder)
        objects = () if folder.on_disk or not placed else _objects_of(folder)
        # the locks keep others from making a table in the folder before it is moved, and from committing to the table
        with folder_lock(str(folder.parent), exclusive=True), folder_lock(table.location, exclusive=True):
            check()
            try:
                with catalog_errors(self._catalog):
                    self._iceberg.drop_table(identifier_of(table.schema, table.table))
            except NoSuchTableError as error:
                raise no_table(table.full_name) from error
            if placed and not self._holds_table(folder):
                _remove(folder, objects)
        if placed and folder.on_disk:
            empty_trash(folder.parent)

    def is_shared(self, table: TableHandle, folder: Location) -> bool:
        """Return whether a table's folder may also hold another table, which got its place by a renaming.

        A catalog in a database need not be asked: :meth:`_holds_table` knows it. In other catalogs the ids in metadata
        files tell it; those of a table that another engine dropped count, too.
        """
        if isinstance(self._iceberg, SqlCatalog) or OWN_FOLDER.fullmatch(folder.name):
            return False
        try:
            with catalog_errors(self._catalog):
                own = load_table(self._iceberg, identifier_of(table.schema, table.table))
        except NoSuchTableError:
            return False
        try:
            known = {own.metadata_location, *(entry.metadata_file for entry in own.metadata.metadata_log)}
            further = {*metadata_file_names(ObjectStore(folder))} - {Location.of(path).name for path in known}
            files = (str(folder.join(METADATA).join(name)) for name in further)
            id_ = own.metadata.table_uuid
            return len(further) > _MOST_READ or any(read_metadata(file).table_uuid != id_ for file in files)
        except TrinityError as error:
            if error.code not in ("BAD_DATA", "NOT_SUPPORTED"):
                raise
            return True  # a file that another table's engine has just removed, or one that cannot be read

    def _holds_table(self, folder: Location) -> bool:
        """Return whether a table of the catalog has its metadata in a folder; only a catalog in a database can tell."""
        if not isinstance(self._iceberg, SqlCatalog):
            return False
        with Session(self._iceberg.engine) as session:
            found = session.scalars(select(IcebergTables.metadata_location)).all()
        return any(folder.relative(Location.of(metadata)) is not None for metadata in found if metadata)


def _objects_of(folder: Location) -> Sequence[str]:
    """Return the objects of a table; none unless it has Iceberg metadata.

    They are listed before the name is free, since another engine may then put another table into the same folder.
    """
    with contextlib.suppress(TrinityError):
        found = [entry.path for entry in ObjectStore(folder).list()]
        return found if any(path.startswith(f"{METADATA}/") for path in found) else ()
    return ()


def _remove(folder: Location, objects: Sequence[str]) -> None:
    """Remove the files of a dropped table: a folder in one step, the objects of a bucket as far as possible."""
    store = ObjectStore(folder)
    if not folder.on_disk:
        with contextlib.suppress(TrinityError):
            store.delete(objects)
    elif store.is_folder(METADATA):
        with contextlib.suppress(FileNotFoundError):
            move_to_trash(folder)


def _can_rename(iceberg: Catalog) -> bool:
    """Return whether a catalog can rename a table in one step."""
    from pyiceberg.catalog.rest import RestCatalog  # takes long to load

    return isinstance(iceberg, (SqlCatalog, RestCatalog))


def _namespace(schema: str) -> tuple[str]:
    return (escaped(schema, _SPECIAL),)


def load_table(catalog: Catalog, name: tuple[str, ...]) -> Table:
    """Return the table of a name as it is now.

    Raises:
        NoSuchTableError: there is none, or one of another kind; and PyIceberg's other errors.
    """
    try:
        return catalog.load_table(name)
    except (NoSuchPropertyException, ValueError) as error:
        if of_another_kind(error):
            raise NoSuchTableError(f"{'.'.join(name)} is none of Iceberg's") from error
        raise
