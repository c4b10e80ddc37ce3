"""The in-memory adapter: the smallest complete example of the SPI, and a test double.

Names, versions and commits live in this process; data files lie in a temporary folder, so that Spark's workers
can write them. Everything is gone when the connector is closed.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.merge import statistics_columns
from trinity.spi.connector import Connector, ConnectorContext, ConnectorMetadata, Format, PageSinkProvider
from trinity.spi.files import DataFile, Tier, from_fragments, from_merge_fragments
from trinity.spi.handles import (
    CommitResult,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableHandle,
    TransactionId,
    VacuumResult,
    WriteTarget,
)
from trinity.spi.schema import TableDefinition, stored_field
from trinity.storage import (
    ObjectStore,
    ParquetSinkProvider,
    RowChanges,
    check_scope,
    delete_orphans,
    identity_only,
    next_timestamp_ms,
)

__all__ = ["MemoryConnector", "MemoryFormat"]


@dataclass(frozen=True)
class _Version:
    """A table at one version. Immutable, so that a reader needs no lock."""

    number: int
    timestamp_ms: int
    operation: str
    definition: TableDefinition
    files: tuple[DataFile, ...] = ()
    txns: Mapping[str, int] = field(default_factory=dict)


class MemoryMetadata(RowChanges):
    """Schemas and tables in dictionaries under one lock."""

    def __init__(self, catalog: str, folder: str) -> None:
        self._catalog = catalog
        self._folder = folder
        self._schemas: dict[str, dict[str, TableHandle]] = {"default": {}}
        self._versions: dict[str, list[_Version]] = {}
        self._lock = threading.RLock()

    # -- schemas and tables -----------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return sorted(self._schemas)

    def create_schema(self, schema: str) -> None:
        with self._lock:
            if schema in self._schemas:
                raise TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{schema}' exists already.")
            self._schemas[schema] = {}

    def drop_schema(self, schema: str) -> None:
        with self._lock:
            if schema == "default":
                raise TrinityError("NOT_SUPPORTED", "Schema 'default' always exists; drop its tables.")
            if self._tables(schema):
                raise TrinityError("SCHEMA_NOT_EMPTY", f"Schema '{schema}' still holds tables; drop them first.")
            del self._schemas[schema]

    def list_tables(self, schema: str) -> list[str]:
        return sorted(self._tables(schema))

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        return self._schemas.get(schema, {}).get(table)

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "the in-memory format")
        with self._lock:
            tables = self._tables(definition.schema)
            if definition.name in tables:
                raise TrinityError("TABLE_ALREADY_EXISTS", f"Table '{definition.full_name}' exists already.")
            location = f"{self._folder}/{definition.name}-{uuid.uuid4().hex}"
            handle = TableHandle(self._catalog, definition.schema, definition.name, location)
            self._versions[location] = [_Version(0, next_timestamp_ms(0), "create", definition)]
            tables[definition.name] = handle
            return handle

    def drop_table(self, table: TableHandle) -> None:
        with self._lock:
            self._at(table)
            del self._tables(table.schema)[table.table], self._versions[table.location]
        shutil.rmtree(table.location, ignore_errors=True)

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def alter(newest: _Version) -> _Version | None:
            changed = change(newest.definition)
            return None if changed == newest.definition else replace(newest, operation="alter", definition=changed)

        self._commit(table, alter)

    # -- versions ---------------------------------------------------------------------------------------

    def get_splits(self, table: TableHandle) -> SplitSource:
        at = self._at(table)
        files = [f.renamed(at.definition.stored_names) for f in at.files]
        return SplitSource(
            at.number,
            at.timestamp_ms,
            at.definition,
            _storage(at.definition),
            tuple(f for f in files if f.tier is not Tier.SIDECAR),
            tuple(f for f in files if f.tier is Tier.SIDECAR),
        )

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        self._at(table)
        return [HistoryEntry(v.number, v.timestamp_ms, v.operation) for v in self._versions[table.location]]

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        at = self._at(table)
        return InsertTableHandle(replace(table, version=at.number), at.definition, _target(table, at))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        files = from_fragments(list(fragments))

        def append(newest: _Version) -> _Version | None:
            if txn and newest.txns.get(txn[0], -1) >= txn[1]:
                return None
            added = tuple(f.at_commit(newest.number + 1) for f in files)
            txns = {**newest.txns, **dict([txn] if txn else [])}
            return replace(newest, operation="append", files=newest.files + added, txns=txns)

        if not files and txn is None:
            return CommitResult(self._at(replace(insert.table, version=None)).number)
        version, committed = self._commit(insert.table, append)
        return _result(version, files) if committed else CommitResult(version, skipped=True)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._at(table).txns.get(application)

    # -- row changes ------------------------------------------------------------------------------------

    def finish_merge(
        self, merge: MergeTableHandle, sources: Sequence[TableHandle], fragments: Sequence[bytes]
    ) -> CommitResult:
        files, gone = from_merge_fragments(fragments)

        def change(newest: _Version) -> _Version:
            check_scope(merge, newest.files, gone)
            kept = tuple(f for f in newest.files if f.path not in gone)
            added = tuple(f.at_commit(newest.number + 1) for f in files)
            return replace(newest, operation="merge", files=kept + added)

        version, _ = self._commit(merge.table, change)
        return _result(version, files)

    def truncate(self, table: TableHandle) -> CommitResult:
        removed: list[DataFile] = []

        def change(newest: _Version) -> _Version | None:
            removed[:] = newest.files
            return replace(newest, operation="truncate", files=()) if removed else None

        version, _ = self._commit(table, change)
        return _result(version, removed)

    # -- compaction and care ----------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        at = self._at(table)
        pinned = replace(table, version=at.number)
        return RewriteTableHandle(pinned, at.definition, _target(table, at), tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        files = from_fragments(list(fragments))
        replaced = {f.path for f in rewrite.replaced}

        def swap(newest: _Version) -> _Version:
            if not replaced <= {f.path for f in newest.files}:
                raise TrinityError("TRANSACTION_CONFLICT", f"'{rewrite.table.full_name}' was compacted meanwhile.")
            kept = tuple(
                f for f in newest.files if f.path not in replaced and not (replace_sidecar and f.tier is Tier.SIDECAR)
            )
            return replace(newest, operation="compact", files=kept + tuple(files))

        version, _ = self._commit(rewrite.table, swap)
        return _result(version, files)

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        with self._lock:
            self._at(table)
            versions = self._versions[table.location]
            following = [*(v.timestamp_ms for v in versions[1:]), older_than_ms + 1]
            versions[:] = [v for v, until in zip(versions, following, strict=True) if until > older_than_ms]
            needed = {f.path for v in versions for f in v.files}
            gone = delete_orphans(ObjectStore(table.location), needed, older_than_ms)
            return VacuumResult(len(gone), sum(e.size for e in gone), versions[0].number)

    # -- the one place where a version is made ----------------------------------------------------------

    def _commit(self, table: TableHandle, change: Callable[[_Version], _Version | None]) -> tuple[int, bool]:
        with self._lock:
            newest = self._at(replace(table, version=None))
            changed = change(newest)
            if changed is None:
                return newest.number, False
            made = replace(changed, number=newest.number + 1, timestamp_ms=next_timestamp_ms(newest.timestamp_ms))
            self._versions[table.location].append(made)
            return made.number, True

    def _at(self, table: TableHandle) -> _Version:
        versions = self._versions.get(table.location)
        if not versions:
            raise TrinityError("TABLE_NOT_FOUND", f"Table '{table.full_name}' does not exist (any more).")
        if table.version is None:
            return versions[-1]
        for version in versions:
            if version.number == table.version:
                return version
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one is "
            f"{versions[0].number}, the newest {versions[-1].number}.",
        )

    def _tables(self, schema: str) -> dict[str, TableHandle]:
        if schema not in self._schemas:
            raise TrinityError("SCHEMA_NOT_FOUND", f"Catalog '{self._catalog}' has no schema '{schema}'.")
        return self._schemas[schema]


class MemoryConnector(Connector):
    """One in-memory catalog."""

    def __init__(self, catalog: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="trinity-memory-")
        self._metadata = MemoryMetadata(catalog, self._folder)
        self._sinks = ParquetSinkProvider()

    @property
    def metadata(self) -> ConnectorMetadata:
        return self._metadata

    @property
    def sinks(self) -> PageSinkProvider:
        return self._sinks

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class MemoryFormat(Format):
    """Tables that last as long as their session. Takes no options; a ``warehouse`` is ignored."""

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        unknown = set(options) - {"warehouse"}
        if unknown:
            raise TrinityError("CONFIGURATION_INVALID", f"Catalog '{catalog}': unknown option '{min(unknown)}'.")
        return MemoryConnector(catalog)


def _storage(definition: TableDefinition) -> pa.Schema:
    return pa.schema([stored_field(c, c.to_arrow().type) for c in definition.columns])


def _target(table: TableHandle, at: _Version) -> WriteTarget:
    definition = at.definition
    return WriteTarget(
        table.location, _storage(definition), statistics_columns(definition), uuid.uuid4().hex, definition.partition_by
    )


def _result(version: int, files: Sequence[DataFile]) -> CommitResult:
    rows = sum(f.rows for f in files if f.tier is not Tier.SIDECAR)
    return CommitResult(version, rows, len(files), sum(f.size for f in files))
