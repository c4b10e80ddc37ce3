"""Names, schemas, versions and commits of one Iceberg catalog."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.update import AssertCurrentSchemaId

from trinity.errors import TrinityError
from trinity.spi import (
    OLDEST,
    CommitResult,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    RowOrder,
    SplitSource,
    TableDefinition,
    TableHandle,
    Tier,
    TransactionId,
    VacuumResult,
    WriteTarget,
    append_stamp,
    from_fragments,
    from_merge_fragments,
)
from trinity.storage import (
    Entry,
    Location,
    ObjectStore,
    RowChanges,
    check_present,
    check_scope,
    commit_loop,
    commit_result,
    commit_timeout_s,
    delete_around,
    delete_orphans,
    held,
    local_path,
    stamped,
    write_target,
)
from trinity_iceberg.adopt import check_own_writable
from trinity_iceberg.carried import CREATED, INDEX, TXN, carried, lineage, version_of
from trinity_iceberg.commit import Change, check_deletes, commit_change
from trinity_iceberg.expire import delete_metadata, expire
from trinity_iceberg.external import check_readable, check_writable
from trinity_iceberg.index import SIDECAR_FOLDER, FileIndex, open_index, put_index
from trinity_iceberg.load import Tables
from trinity_iceberg.names import CatalogNames, identifier_of
from trinity_iceberg.order import folded_order
from trinity_iceberg.partition import check_names, check_partitions, named_now, partition_spec
from trinity_iceberg.repair import made_by_trinity, registered_at, repair
from trinity_iceberg.schema import (
    definition_of,
    definition_updates,
    own_properties,
    statistics_columns,
    storage_schema,
    to_iceberg_schema,
    with_field_ids,
)
from trinity_iceberg.snapshot import Snapshots, schema_of, snapshot_of
from trinity_iceberg.stamping import STAMP_FIELD, appended_order, stamp_updates
from trinity_iceberg.swap import put_table

__all__ = ["IcebergMetadata"]

_T = TypeVar("_T")

DATA_FOLDER: Final = "data"
TABLE_PROPERTIES: Final = {
    "format-version": "2",
    # a metadata file holds all snapshots; without this every commit would leave one behind for ever
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Properties of new tables, where the user sets no others."""


class IcebergMetadata(RowChanges):
    """Metadata of one Iceberg catalog.

    Args:
        catalog: the Trinity catalog's name.
        iceberg: the PyIceberg catalog.
        warehouse: folder under which tables are put, or None to let the catalog choose.
    """

    def __init__(self, catalog: str, iceberg: Catalog, warehouse: Location | None) -> None:
        self._catalog = catalog
        self._iceberg = iceberg
        self._names = CatalogNames(catalog, iceberg, warehouse)
        self._tables = Tables(iceberg)
        self._snapshots = Snapshots()

    # -- schemas and tables -----------------------------------------------------------------------------

    def list_schemas(self) -> list[str]:
        return self._names.list_schemas()

    def create_schema(self, schema: str) -> None:
        self._names.create_schema(schema)

    def drop_schema(self, schema: str) -> None:
        self._names.drop_schema(schema)

    def list_tables(self, schema: str) -> list[str]:
        return self._names.list_tables(schema)

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        try:
            loaded = self._load(TableHandle(self._catalog, schema, table, ""))
        except TrinityError as error:
            if error.code == "TABLE_NOT_FOUND":
                return None
            location = registered_at(self._iceberg, TableHandle(self._catalog, schema, table, ""))
            if error.code != "BAD_DATA" or location is None:
                raise
            return TableHandle(self._catalog, schema, table, location)  # so that it can be repaired, or dropped
        return TableHandle(self._catalog, schema, table, local_path(loaded.metadata.location))

    def create_table(self, definition: TableDefinition) -> TableHandle:
        schema, name = definition.schema, definition.name
        location = self._names.new_location(schema, name)
        columns = assign_fresh_schema_ids(to_iceberg_schema(definition))  # the ids that PyIceberg would give it
        transaction = self._iceberg.create_table_transaction(
            identifier_of(schema, name),
            columns,
            location=location.format_uri if location else None,
            partition_spec=partition_spec(definition, columns),
            properties={**TABLE_PROPERTIES, **own_properties(with_field_ids(definition, columns)), **CREATED},
        )
        with held(str(location.parent)) if location else contextlib.nullcontext():
            put_table(self._iceberg, transaction, (self._catalog, schema, name))
        handle = TableHandle(self._catalog, schema, name, "")
        return replace(handle, location=local_path(self._load(handle).metadata.location))

    def drop_table(self, table: TableHandle) -> None:
        self._names.drop_table(table)

    def left_by_trinity(self, table: TableHandle) -> bool:
        return made_by_trinity(table)

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def attempt(loaded: Table) -> None:
            definition = self._definition(loaded)
            changed = change(definition)
            if changed == definition:
                return
            check_names(definition, changed, loaded.spec())
            updates = definition_updates(loaded.metadata, definition, changed)
            same = AssertCurrentSchemaId.model_validate({"current-schema-id": loaded.metadata.current_schema_id})
            commit_change(self._snapshots, loaded, Change("alter", updates=updates, requirements=(same,)))

        self._commit(table, attempt)

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        loaded = self._load(table)
        schema = schema_of(loaded.metadata, snapshot_of(table, loaded.metadata))
        definition = definition_of(loaded.name(), loaded.metadata, schema)
        if definition.external:
            check_readable(table, loaded.metadata)
        return definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self._using(table, lambda loaded: self._snapshots.split_source(table, loaded))

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._snapshots.history(self._load(table))

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        return InsertTableHandle(*self._begin(table, append_stamp))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        files = from_fragments(list(fragments))

        def attempt(loaded: Table) -> CommitResult:
            current = version_of(loaded.metadata.current_snapshot())
            recorded = _recorded(loaded)
            if txn and recorded.get(txn[0], -1) >= txn[1]:
                return CommitResult(current, skipped=True)
            if not files and not txn:
                return CommitResult(current)
            check_present(insert.table, files)
            definition = self._definition(loaded)
            insert.check_demands(definition)
            added = named_now(files, insert.definition, loaded)
            summary = {TXN: json.dumps({**recorded, txn[0]: txn[1]})} if txn else {}
            order = appended_order(insert, definition, loaded, self._snapshots)
            change = Change("append", added=added, summary=summary, order=order)
            return commit_result(commit_change(self._snapshots, loaded, change), files)

        return self._commit(insert.table, attempt, insert.definition)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return _recorded(self._load(table)).get(application)

    # -- row changes ------------------------------------------------------------------------------------

    def finish_merge(
        self,
        merge: MergeTableHandle,
        sources: Sequence[TableHandle],
        fragments: Sequence[bytes],
        txn: TransactionId | None = None,
    ) -> CommitResult:
        files, gone = from_merge_fragments(fragments)

        def attempt(loaded: Table) -> CommitResult:
            recorded = _recorded(loaded)
            if txn and recorded.get(txn[0], -1) >= txn[1]:
                return CommitResult(version_of(loaded.metadata.current_snapshot()), skipped=True)
            definition, live = self._definition(loaded), {f.path for f in self._snapshots.live(merge.table, loaded)}
            check_scope(merge, self._snapshots.changes(merge.table, loaded), live, gone)
            check_present(merge.table, files)
            merge.insert.check_demands(definition)
            added = named_now(files, merge.insert.definition, loaded)
            updates, requirements = stamp_updates(loaded, definition, merge.insert)
            order = RowOrder() if updates else None  # the first that there is to remember
            summary = {TXN: json.dumps({**recorded, txn[0]: txn[1]})} if txn else {}
            change = Change("merge", added, gone, summary, updates, order=order, requirements=requirements)
            return commit_result(commit_change(self._snapshots, loaded, change), files)

        return self._commit(merge.table, attempt, merge.insert.definition)

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        store = ObjectStore(table.location)

        def attempt(loaded: Table) -> CommitResult:
            current = loaded.metadata.current_snapshot()
            recorded = _recorded(loaded)
            if txn and recorded.get(txn[0], -1) >= txn[1]:
                return CommitResult(version_of(current), skipped=True)
            live, sidecar = self._snapshots.files(table, loaded, current, loaded.schema())
            if not (live or sidecar or txn):
                return CommitResult(version_of(current))
            name, updates = put_index(FileIndex(), store, loaded.metadata) if sidecar else (None, ())
            summary = {INDEX: name} if name else {}
            summary |= {TXN: json.dumps({**recorded, txn[0]: txn[1]})} if txn else {}
            order = folded_order(loaded.metadata, version_of(current))
            change = Change("truncate", (), frozenset(f.path for f in live), summary, updates, order=order)
            return commit_result(commit_change(self._snapshots, loaded, change), live)

        return self._commit(table, attempt)

    # -- compaction and care ----------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        return RewriteTableHandle(*self._begin(table, lambda _: OLDEST), tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        written = from_fragments(list(fragments))
        sidecar = tuple(f for f in written if f.tier is Tier.SIDECAR)
        files = [f for f in written if f.tier is not Tier.SIDECAR]
        store = ObjectStore(rewrite.table.location)

        def attempt(loaded: Table) -> CommitResult:
            check_present(rewrite.table, written)
            removed = frozenset(f.path for f in rewrite.replaced)
            added = named_now(files, rewrite.definition, loaded)
            if rewrite.definition.external:  # whose rows have their order by the sequence number of the new files
                check_deletes(rewrite.table, loaded)
                change = Change("compact", added=added, removed=removed)
                return commit_result(commit_change(self._snapshots, loaded, change), written)
            index = open_index(store, carried(loaded.metadata).get(INDEX))
            gone = {store.relative(f.path) for f in rewrite.replaced}
            entries = {n: e for n, e in index.files.items() if n not in gone}
            entries |= {store.relative(f.path): (f.tier, f.bucket, f.commit) for f in files}
            index = FileIndex(entries, sidecar if replace_sidecar else index.sidecar)
            name, updates = put_index(index, store, loaded.metadata)
            order = folded_order(loaded.metadata, rewrite.table.version or 0) if replace_sidecar else None
            change = Change("compact", added, removed, {INDEX: name}, updates, rewrites=True, order=order)
            return commit_result(commit_change(self._snapshots, loaded, change), written)

        return self._commit(rewrite.table, attempt, rewrite.definition)

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        loaded = self._load(table)
        table = table.pinned(None, str(loaded.metadata.table_uuid))
        definition = self._definition(loaded)
        gone = delete_around(
            lambda: self.delete_unneeded(table, older_than_ms),
            lambda: self._commit(table, lambda newest: expire(newest, older_than_ms), definition),
        )
        oldest = [version_of(s) for s in lineage(self._load(table).metadata)] or [0]
        return VacuumResult(len(gone), sum(e.size for e in gone), oldest[0])

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Deletes the files that no readable version needs, and returns those of data and sidecar."""
        needed = self._using(table, lambda loaded: self._snapshots.referenced(table, loaded))
        store = ObjectStore(table.location)
        gone = [
            entry
            for folder in (DATA_FOLDER, SIDECAR_FOLDER)
            for entry in delete_orphans(store, needed, older_than_ms, folder)
        ]
        delete_metadata(store, {store.relative(path) for path in needed}, older_than_ms)
        return gone

    def repair(self, table: TableHandle) -> CommitResult:
        return repair(self._iceberg, table, self._load)

    # -- helpers ----------------------------------------------------------------------------------------

    def _load(self, table: TableHandle) -> Table:
        """The table as it is now. Raises as :meth:`Tables.load`."""
        return self._tables.load(table)

    def _using(self, table: TableHandle, use: Callable[[Table], _T]) -> _T:
        """The result of a function of the table as it is now. Metadata that a DROP takes away is not damaged."""
        loaded = self._load(table)
        try:
            return use(loaded)
        except TrinityError as error:
            if error.code == "BAD_DATA":
                self._load(table.pinned(table.version, str(loaded.metadata.table_uuid)))
            raise

    def _definition(self, loaded: Table) -> TableDefinition:
        return definition_of(loaded.name(), loaded.metadata, loaded.schema())

    def _commit(
        self, table: TableHandle, attempt: Callable[[Table], _T], definition: TableDefinition | None = None
    ) -> _T:
        """Tries with the table as it is, for as long as its options say; they are loaded where none are at hand."""
        if definition is None:
            loaded = self._load(table)
            table, definition = table.pinned(None, str(loaded.metadata.table_uuid)), self._definition(loaded)
        return commit_loop(table.location, lambda: self._using(table, attempt), commit_timeout_s(definition.properties))

    def _begin(
        self, table: TableHandle, stamp: Callable[[int], int]
    ) -> tuple[TableHandle, TableDefinition, WriteTarget]:
        return self._using(table, lambda loaded: self._target(table, loaded, stamp))

    def _target(
        self, table: TableHandle, loaded: Table, stamp: Callable[[int], int]
    ) -> tuple[TableHandle, TableDefinition, WriteTarget]:
        snapshot = snapshot_of(table, loaded.metadata)
        schema = schema_of(loaded.metadata, snapshot)
        definition = definition_of(loaded.name(), loaded.metadata, schema)
        if definition.external:
            check_writable(table, loaded)
        current = loaded.metadata.current_snapshot()
        check_own_writable(loaded, self._snapshots.manifest_list(loaded, current))
        check_partitions(table.full_name, definition, loaded.spec(), schema)
        folder, statistics = ObjectStore(table.location).path(DATA_FOLDER), statistics_columns(definition, schema)
        target = write_target(folder, definition, storage_schema(schema), statistics=statistics)
        pinned = table.pinned(version_of(snapshot), definition.id)
        return (pinned, *stamped(definition, target, stamp(version_of(snapshot)), STAMP_FIELD))


def _recorded(loaded: Table) -> dict[str, int]:
    """Application -> its highest version (L4)."""
    recorded: dict[str, int] = json.loads(carried(loaded.metadata).get(TXN, "{}"))
    return recorded
