"""A table at one version, and the loader of the newest version from its catalog."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pydantic
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from trinity.errors import TrinityError, first_line
from trinity.spi import TableDefinition, TableHandle, TransactionId
from trinity.storage import Cache, Location, Stat, no_such_version, no_table, with_txn
from trinity.storage.errors import system_trouble
from trinity.storage.location import local_path
from trinity_iceberg.adopt import (
    check_committable,
    check_not_before,
    check_own_writable,
    check_readable,
    check_writable,
)
from trinity_iceberg.carried import TXN, carried_facts, lineage, version_of
from trinity_iceberg.location_catalog import LocationCatalog
from trinity_iceberg.metadata_files import damaged, read_metadata
from trinity_iceberg.names import identifier_of, load_table
from trinity_iceberg.schema import definition_of
from trinity_iceberg.sql_tables import location_in, stat_of
from trinity_iceberg.trouble import catalog_trouble, trouble


@dataclass(frozen=True)
class State:
    """A table as it was loaded, at one version: its snapshot, if there is one yet, and the schema to read it with."""

    loaded: Table
    snapshot: Snapshot | None
    schema: Schema

    @classmethod
    def newest(cls, loaded: Table) -> State:
        """Return the newest version."""
        return cls(loaded, loaded.metadata.current_snapshot(), loaded.schema())

    def at(self, table: TableHandle) -> State:
        """Return the handle's version. Raises as :func:`_snapshot_of`."""
        snapshot = _snapshot_of(table, self.metadata)
        if snapshot is self.snapshot:
            return self
        return State(self.loaded, snapshot, schema_of(self.metadata, snapshot))

    @property
    def version(self) -> int:
        """Sequence number of the snapshot."""
        return version_of(self.snapshot)

    @property
    def metadata(self) -> TableMetadata:
        """Metadata of the whole table."""
        return self.loaded.metadata

    @cached_property
    def definition(self) -> TableDefinition:
        """The table as Trinity sees it."""
        return definition_of(self.loaded.name(), self.metadata, self.schema, self.version)

    @cached_property
    def txns(self) -> dict[str, int]:
        """Application -> highest version (L4), as of the newest commit."""
        found: dict[str, int] = json.loads(carried_facts(self.metadata).get(TXN, "{}"))
        return found

    def check_readable(self, table: TableHandle) -> None:
        """Refuse an external table whose commits have no order, and an own one as :func:`check_not_before`."""
        if self.definition.external:
            check_readable(table, self.metadata)
        elif self.snapshot is self.metadata.current_snapshot():
            check_not_before(self.loaded)

    def check_writable(self, table: TableHandle, manifests: list[ManifestFile]) -> None:
        """Refuse a table to which rows cannot be added. Raises NOT_SUPPORTED with the reason."""
        if self.definition.external:
            check_writable(table, self.loaded)
        check_committable(table, self.loaded)
        check_not_before(self.loaded)
        check_own_writable(self.loaded, manifests)


def _snapshot_of(table: TableHandle, metadata: TableMetadata) -> Snapshot | None:
    """Return the snapshot of a handle's version, or the newest; None for a table without any.

    Raises:
        TrinityError: INVALID_ARGUMENTS for an unreadable version, naming the readable ones.
    """
    current = metadata.current_snapshot()
    if table.version is None or table.version == version_of(current):
        return current
    readable = lineage(metadata)
    for snapshot in readable:
        if version_of(snapshot) == table.version:
            return snapshot
    oldest = version_of(readable[0]) if readable else 0
    raise no_such_version(table, oldest, version_of(current))


def schema_of(metadata: TableMetadata, snapshot: Snapshot | None) -> Schema:
    """Return the schema to read a version with: for the newest version the table's current one, else the version's own.

    Other engines change the current schema without making a version.
    """
    if snapshot is None or snapshot.snapshot_id == metadata.current_snapshot_id or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema_by_id(snapshot.schema_id) or metadata.schema()


def txn_summary(state: State, txn: TransactionId | None) -> dict[str, str]:
    """Return the entry of a snapshot's summary that records an application's version (L4)."""
    return {TXN: json.dumps(with_txn(state.txns, txn))} if txn else {}


CACHED_TABLES: Final = 16


class Tables:
    """A loader of tables' newest versions, which keeps the last ones used: a metadata file never changes.

    The catalog is asked each time for the name of the current metadata file. Some catalogs tell it only as they load
    the whole table: then the table is loaded each time.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        # only the newest metadata of each table, as Python's garbage collector walks through all that is kept
        self._read: Cache[tuple[str, str], tuple[str, Stat | None, State]] = Cache(CACHED_TABLES)

    def load(self, table: TableHandle) -> State:
        """Return the newest version of a table; the same object until another commit.

        Raises:
            TrinityError: TABLE_NOT_FOUND; TRANSACTION_CONFLICT for a table that was made anew; BAD_DATA naming the
                damaged metadata file.
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
        """Return whether another table, which lies elsewhere, has the name now: in a bucket, or after a rename."""
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
    """Return the current metadata file; None without a table, or if the catalog names it only as it loads the table."""
    if isinstance(catalog, LocationCatalog):
        return catalog.metadata_file()
    if not isinstance(catalog, SqlCatalog):
        return None
    return location_in(catalog, *identifier_of(table.schema, table.table))


def registered_at(catalog: Catalog, table: TableHandle) -> str | None:
    """Return the folder of a table whose metadata cannot be read; None if the catalog does not name the file."""
    location = metadata_file(catalog, table)
    return str(Location.of(location).parent.parent) if location else None
