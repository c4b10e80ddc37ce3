"""A table from its catalog, and what is said where that fails."""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity.storage import local_path, system_trouble
from trinity_iceberg.names import identifier_of
from trinity_iceberg.repair import metadata_file

__all__ = ["load"]


def load(catalog: Catalog, table: TableHandle) -> Table:
    """The table as it is now.

    Raises:
        TrinityError: TABLE_NOT_FOUND; TRANSACTION_CONFLICT for one made anew; BAD_DATA naming the metadata file.
    """
    try:
        loaded = catalog.load_table(identifier_of(table.schema, table.table))
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise _missing(table) from error
    except SQLAlchemyError as error:
        raise TrinityError("FILESYSTEM_ERROR", f"Catalog '{table.catalog}' cannot be read: {error}.") from error
    except (OSError, MemoryError, ValidationError, ValueError, KeyError, TypeError) as error:
        raise system_trouble(error, table.location) or _damaged(catalog, table, error) from error
    table.check_same(str(loaded.metadata.table_uuid))
    return loaded


def _missing(table: TableHandle) -> TrinityError:
    return TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist.")


def _damaged(catalog: Catalog, table: TableHandle, error: Exception) -> TrinityError:
    location = metadata_file(catalog, table)
    if location is None and isinstance(catalog, SqlCatalog):
        return _missing(table)  # dropped while it was loaded
    where = local_path(location) if location else f"{table.location}/metadata"
    return TrinityError(
        "BAD_DATA",
        f"Metadata file '{where}' of table '{table.full_name}' is missing or damaged; restore it from a backup, or go "
        f"back to what can be read by session.repair(): {error}.",
    )
