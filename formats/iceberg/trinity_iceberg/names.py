"""Names in an Iceberg catalog, and the folders of its tables (N1).

A schema is a namespace of one level. PyIceberg splits a namespace at its dots and strips the blanks around it, so these
are escaped; a table's name is the catalog's as it is.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import (
    Location,
    ObjectStore,
    bury,
    check_free,
    check_only_graves,
    escaped,
    folder_name,
    held,
    no_schema,
    no_table,
    own_folder,
    remove_empty,
    schema_in_use,
    schema_stays,
    schema_taken,
    sweep,
    table_taken,
    unescaped,
)
from trinity_iceberg.options import CATALOG_FILE, DEFAULT_SCHEMA
from trinity_iceberg.sql_tables import SqlTables
from trinity_iceberg.trouble import catalog_errors

__all__ = ["CatalogNames", "identifier_of", "schema_of", "see_to_default"]

_SPECIAL: Final = re.compile(r"[.~]|^\s+|\s+\Z")


def identifier_of(schema: str, table: str) -> tuple[str, str]:
    """A table's namespace and name."""
    return escaped(schema, _SPECIAL), table


def schema_of(namespace: Sequence[str]) -> str:
    """The schema that a namespace is; another engine's may have several levels."""
    found = ".".join(namespace)
    try:
        schema = unescaped(found)
    except UnicodeDecodeError:
        return found
    return schema if escaped(schema, _SPECIAL) == found else found


def see_to_default(iceberg: Catalog) -> None:
    """Makes the namespace ``default``, which every catalog has, unless it is there."""
    if not iceberg.namespace_exists(DEFAULT_SCHEMA):
        with contextlib.suppress(NamespaceAlreadyExistsError, IntegrityError):
            iceberg.create_namespace(DEFAULT_SCHEMA)


class CatalogNames:
    """The schemas and tables of a catalog by their names.

    Args:
        catalog: the Trinity catalog's name.
        iceberg: the PyIceberg catalog.
        warehouse: folder under which tables are put, or None to let the catalog choose.
    """

    def __init__(self, catalog: str, iceberg: Catalog, warehouse: Location | None) -> None:
        self._catalog = catalog
        self._iceberg = iceberg
        self._warehouse = warehouse

    def list_schemas(self) -> list[str]:
        """Names of the schemas, sorted."""
        with catalog_errors(self._catalog):
            return sorted({DEFAULT_SCHEMA} | set(map(schema_of, self._iceberg.list_namespaces())))

    def create_schema(self, schema: str) -> None:
        """Makes the namespace. Raises SCHEMA_ALREADY_EXISTS."""
        try:
            with catalog_errors(self._catalog):
                self._iceberg.create_namespace(_namespace(schema))
        except (NamespaceAlreadyExistsError, IntegrityError) as error:
            raise schema_taken(self._catalog, schema) from error

    def drop_schema(self, schema: str) -> None:
        """Removes the namespace, and its folder, which is empty but for graves.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND; SCHEMA_NOT_EMPTY naming tables, or files that are nothing of Trinity's;
                NOT_SUPPORTED for ``default``.
        """
        if tables := self.list_tables(schema):
            raise schema_in_use(self._catalog, schema, tables)
        if schema == DEFAULT_SCHEMA:
            raise schema_stays(self._catalog, schema)
        folder = self._disk_folder(schema)
        # nobody makes a table in it meanwhile
        with held(str(folder), alone=True) if folder else contextlib.nullcontext():
            self._drop_empty(schema, folder)

    def _drop_empty(self, schema: str, folder: Location | None) -> None:
        try:
            if self._holds_namespaces(schema):
                raise self._still_holds(schema)
            if folder is not None:
                check_only_graves(folder, f"{self._catalog}.{schema}")
            with catalog_errors(self._catalog):
                self._iceberg.drop_namespace(_namespace(schema))
        except (NoSuchNamespaceError, FileNotFoundError) as error:
            raise self._missing(schema) from error
        except NamespaceNotEmptyError as error:
            raise self._still_holds(schema) from error
        if folder is not None:
            sweep(folder)
            with contextlib.suppress(OSError):  # the next table of a schema of this name finds it there
                remove_empty(folder)

    def list_tables(self, schema: str) -> list[str]:
        """Names of the tables of a schema, sorted. Raises SCHEMA_NOT_FOUND."""
        try:
            with catalog_errors(self._catalog):
                if not self._iceberg.namespace_exists(_namespace(schema)):
                    raise self._missing(schema)
                return sorted(identifier[-1] for identifier in self._iceberg.list_tables(_namespace(schema)))
        except NoSuchNamespaceError as error:  # another one has dropped it since
            raise self._missing(schema) from error

    def _missing(self, schema: str) -> TrinityError:
        return no_schema(self._catalog, schema, self.list_schemas())

    def _still_holds(self, schema: str) -> TrinityError:
        text = f"Schema '{self._catalog}.{schema}' still holds views or schemas; drop these first."
        return TrinityError("SCHEMA_NOT_EMPTY", text)

    def _holds_namespaces(self, schema: str) -> bool:
        """True when another engine's namespaces lie within; catalogs other than a database drop none of these."""
        if not isinstance(self._iceberg, SqlCatalog):
            return False
        with catalog_errors(self._catalog):
            return bool(self._iceberg.list_namespaces(_namespace(schema)))

    def new_location(self, schema: str, table: str) -> Location | None:
        """The folder of a new table: that of its name, unless a table that was renamed has it; None: the catalog's.

        In a bucket, where no folder is moved away or locked, it is one that no other table had or gets.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS; FILESYSTEM_ERROR for a folder with files of others.
        """
        folder = self._new_folder(schema, table)
        if table in self.list_tables(schema):  # behind the look at the folder, which is its own table's then
            raise table_taken(f"{self._catalog}.{schema}.{table}")
        if folder is not None and folder.on_disk:
            check_free(folder, f"{self._catalog}.{schema}.{table}")
        return folder

    @contextlib.contextmanager
    def discarding(self, location: Location | None) -> Iterator[None]:
        """Removes what a new table has put into a folder of its own, once another one has got its name."""
        try:
            yield
        except TrinityError as error:
            if (
                error.code in ("TABLE_ALREADY_EXISTS", "SCHEMA_NOT_FOUND")
                and location is not None
                and not location.on_disk
            ):
                ObjectStore(location).delete_below("")
            raise

    def is_kept(self, schema: str) -> bool:
        """Return True for a schema that a database has by itself: another engine's may be no more than its tables."""
        return isinstance(self._iceberg, SqlTables) and self._iceberg.has_namespace(_namespace(schema))

    @contextlib.contextmanager
    def keeping(self, schema: str, table: str) -> Iterator[None]:
        """Take back a table whose schema, which was kept, was dropped while the table was made.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND.
        """
        yield
        if not self.is_kept(schema):
            with contextlib.suppress(NoSuchTableError):
                self._iceberg.drop_table(identifier_of(schema, table))
            raise self._missing(schema)

    def _new_folder(self, schema: str, table: str) -> Location | None:
        if (found := self._folder(schema)) is None:
            return None
        if not found.on_disk:
            return found.join(own_folder(table))
        folder = found.join(folder_name(table))
        return folder.parent.join(uuid.uuid4().hex) if self._holds_table(folder) else folder

    def _disk_folder(self, schema: str) -> Location | None:
        """The folder of a schema, where there is one: names in a bucket need none."""
        folder = self._folder(schema)
        return folder if folder is not None and folder.on_disk and ObjectStore(folder).is_folder() else None

    def _folder(self, schema: str) -> Location | None:
        name = folder_name(schema)
        if name.startswith(CATALOG_FILE):  # the catalog's file, or one that SQLite puts beside it
            name = f"~{ord(name[0]):x}{name[1:]}"
        return self._warehouse.join(name) if self._warehouse else None

    def drop_table(self, table: TableHandle) -> None:
        """Removes a table from the catalog, then its folder: a crash leaves nothing under the name.

        A folder stays that lies elsewhere than Trinity puts tables, is no Iceberg table's, or holds another table.

        Raises:
            TrinityError: TABLE_NOT_FOUND.
        """
        folder = Location.of(table.location)
        placed = self._warehouse is None or folder.parent.parent == self._warehouse
        objects = () if folder.on_disk or not placed else _objects_of(folder)
        # none is made in the folder before it is moved, and none is committed to meanwhile
        with held(str(folder.parent), alone=True), held(table.location, alone=True):
            try:
                with catalog_errors(self._catalog):
                    self._iceberg.drop_table(identifier_of(table.schema, table.table))
            except NoSuchTableError as error:
                raise no_table(table.full_name) from error
            if placed and not self._holds_table(folder):
                _remove(folder, objects)
        if placed and folder.on_disk:
            sweep(folder.parent)

    def _holds_table(self, folder: Location) -> bool:
        """True when a table of the catalog has its metadata in a folder; only a catalog in a database can be asked."""
        if not isinstance(self._iceberg, SqlCatalog):
            return False
        with Session(self._iceberg.engine) as session:
            found = session.scalars(select(IcebergTables.metadata_location)).all()
        return any(folder.relative(Location.of(metadata)) is not None for metadata in found if metadata)


def _objects_of(folder: Location) -> Sequence[str]:
    """The objects of a table: none of another one, which an engine may put there as soon as the name is free."""
    with contextlib.suppress(TrinityError):
        found = [entry.path for entry in ObjectStore(folder).list()]
        return found if any(path.startswith("metadata/") for path in found) else ()
    return ()


def _remove(folder: Location, objects: Sequence[str]) -> None:
    """Removes what no catalog names any more: a folder in one step, objects as far as they can be."""
    store = ObjectStore(folder)
    if not folder.on_disk:
        with contextlib.suppress(TrinityError):
            store.delete(objects)
    elif store.is_folder("metadata"):
        with contextlib.suppress(FileNotFoundError):
            bury(folder)


def _namespace(schema: str) -> tuple[str]:
    return (escaped(schema, _SPECIAL),)
