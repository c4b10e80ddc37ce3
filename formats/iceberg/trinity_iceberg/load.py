"""Loads tables from their catalog, and names the trouble where that fails."""

from __future__ import annotations

from typing import Final

import pydantic
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

from trinity.errors import TrinityError, first_line
from trinity.spi import TableHandle
from trinity.storage import Cache, Location, Stat, local_path, no_table, system_trouble
from trinity_iceberg.location_catalog import LocationCatalog
from trinity_iceberg.metadata_files import damaged, read_metadata
from trinity_iceberg.names import identifier_of, load_table
from trinity_iceberg.sql_tables import location_in, stat_of
from trinity_iceberg.state import State
from trinity_iceberg.trouble import catalog_trouble, trouble

__all__ = ["Tables", "metadata_file", "registered_at"]

CACHED_TABLES: Final = 16


class Tables:
    """Loads tables as they are now, and keeps those used last: a metadata file never changes.

    The catalog is asked each time for the current metadata file. A catalog that tells it only by a load is loaded each
    time.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        # only the newest metadata of a table: Python's collector would walk through all others
        self._read: Cache[tuple[str, str], tuple[str, Stat | None, State]] = Cache(CACHED_TABLES)

    def load(self, table: TableHandle) -> State:
        """Return the newest version of a table; the same one as long as nobody commits.

        Raises:
            TrinityError: TABLE_NOT_FOUND; TRANSACTION_CONFLICT for one made anew; BAD_DATA naming the metadata file.
        """
        try:
            newest = self._present(table)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise no_table(table.full_name) from error
        except trouble() as error:
            raise catalog_trouble(table.catalog, error) from error
        except (OSError, MemoryError, ValidationError, ValueError, KeyError, TypeError) as error:
            raise system_trouble(error, table.location) or _unreadable(self._catalog, table, error) from error
        table.check_same(str(newest.metadata.table_uuid))
        if self._has_moved(table, newest):
            raise no_table(table.full_name)
        return newest

    def _has_moved(self, table: TableHandle, newest: State) -> bool:
        """Return whether another table has the name now: in a bucket, and after a rename, that one lies elsewhere."""
        by_name = not isinstance(self._catalog, LocationCatalog)
        return by_name and table.location != "" and local_path(newest.metadata.location) != table.location

    def _present(self, table: TableHandle) -> State:
        name = identifier_of(table.schema, table.table)
        file = metadata_file(self._catalog, table)
        here, stat = stat_of(file) if file else (False, None)
        if (known := self._read.peek(name)) is not None and known[:2] == (file, stat):
            self._read.put(name, known)
            return known[2]
        loaded = load_table(self._catalog, name)
        newest = State.newest(loaded)
        if loaded.metadata_location == file and here:  # else another commit came between
            self._read.put(name, (file, stat, newest))
        return newest


def _unreadable(catalog: Catalog, table: TableHandle, error: Exception) -> TrinityError:
    """Return the error of a table whose metadata PyIceberg cannot read: damaged, or not understood."""
    location = metadata_file(catalog, table)
    if location is None and isinstance(catalog, SqlCatalog):
        return no_table(table.full_name)  # dropped while it was loaded
    if location is None:
        if isinstance(error, ValidationError | pydantic.ValidationError):
            return TrinityError(
                "NOT_SUPPORTED",
                f"The catalog of table '{table.full_name}' says of it what Trinity does not understand: "
                f"{first_line(error)}. Read it with the engine that wrote it, or undo there what is new.",
            )
        return damaged(f"{table.location}/metadata", f"of table '{table.full_name}' is missing or damaged ({error})")
    try:
        read_metadata(location)
    except TrinityError as found:
        return found
    return damaged(local_path(location), f"of table '{table.full_name}' is damaged ({error})")


def metadata_file(catalog: Catalog, table: TableHandle) -> str | None:
    """Return the current metadata file, as the catalog names it without a load; None where only a load tells."""
    if isinstance(catalog, LocationCatalog):
        return catalog.metadata_file()
    if not isinstance(catalog, SqlCatalog):
        return None
    return location_in(catalog, *identifier_of(table.schema, table.table))


def registered_at(catalog: Catalog, table: TableHandle) -> str | None:
    """Return the folder of a table whose metadata cannot be read."""
    location = metadata_file(catalog, table)
    return str(Location.of(location).parent.parent) if location else None
