"""The state of a table at one version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from trinity.spi import TableDefinition, TableHandle, TransactionId
from trinity.storage import no_such_version, with_txn
from trinity_iceberg.adopt import (
    check_committable,
    check_not_before,
    check_own_writable,
    check_readable,
    check_writable,
)
from trinity_iceberg.carried import TXN, carried, lineage, version_of
from trinity_iceberg.schema import definition_of

__all__ = ["State", "schema_of", "snapshot_of", "txn_summary"]


@dataclass(frozen=True)
class State:
    """A table at one version.

    Attributes:
        loaded: the table as it was loaded.
        snapshot: the version's snapshot; None for a table without any.
        schema: the schema to read the version with.
    """

    loaded: Table
    snapshot: Snapshot | None
    schema: Schema

    @classmethod
    def newest(cls, loaded: Table) -> State:
        """Return the newest version."""
        return cls(loaded, loaded.metadata.current_snapshot(), loaded.schema())

    def at(self, table: TableHandle) -> State:
        """Return the handle's version; this one if that is the newest. Raises as :func:`snapshot_of`."""
        snapshot = snapshot_of(table, self.metadata)
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
        found: dict[str, int] = json.loads(carried(self.metadata).get(TXN, "{}"))
        return found

    def check_readable(self, table: TableHandle) -> None:
        """Refuse an external table whose commits have no order, and one of two tables' parts. Raises NOT_SUPPORTED."""
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


def snapshot_of(table: TableHandle, metadata: TableMetadata) -> Snapshot | None:
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
    """Return the schema to read a version with.

    For the newest version it is the table's own, which other engines change without making a version. Else it is the
    one under which the version was committed.
    """
    if snapshot is None or snapshot.snapshot_id == metadata.current_snapshot_id or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema_by_id(snapshot.schema_id) or metadata.schema()


def txn_summary(state: State, txn: TransactionId | None) -> dict[str, str]:
    """Return the entry of a snapshot's summary that records an application's version (L4)."""
    return {TXN: json.dumps(with_txn(state.txns, txn))} if txn else {}
