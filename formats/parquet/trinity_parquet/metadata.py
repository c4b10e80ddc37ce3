"""Names, versions and commits of a catalog of Parquet tables."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from trinity.errors import TrinityError
from trinity.merge import commit_timeout_s, statistics_columns, syncs_files
from trinity.spi import (
    CommitResult,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    Tier,
    TransactionId,
    VacuumResult,
    WriteTarget,
    from_fragments,
    from_merge_fragments,
)
from trinity.storage import (
    COMMIT_TIMEOUT_S,
    AlreadyExists,
    CommitRaced,
    Entry,
    FolderCatalog,
    FolderMetadata,
    ObjectStore,
    check_present,
    check_scope,
    commit_loop,
    delete_around,
    delete_orphans,
    identity_only,
    next_timestamp_ms,
    oldest_needed,
)
from trinity_parquet.commit import (
    Change,
    State,
    delete_log,
    manifest_name,
    put_manifest,
    write_checkpoint,
    write_version,
)
from trinity_parquet.schema import storage_schema
from trinity_parquet.snapshot import Snapshots

__all__ = ["ParquetMetadata", "is_table"]


class ParquetMetadata(FolderMetadata):
    """See :class:`~trinity.spi.ConnectorMetadata`."""

    def __init__(self, catalog: str, warehouse: str, checkpoint_interval: int) -> None:
        super().__init__(FolderCatalog(catalog, warehouse, is_table))
        self._snapshots = Snapshots()
        self._interval = checkpoint_interval

    # -- tables -----------------------------------------------------------------------------

    def create_table(self, definition: TableDefinition) -> TableHandle:
        identity_only(definition, "Parquet")
        handle = self._folders.new_table(definition.schema, definition.name)
        first = Change(0, next_timestamp_ms(0), "create", definition=definition.made())
        try:
            put_manifest(ObjectStore(handle.location), first)
        except AlreadyExists as taken:
            raise TrinityError("TABLE_ALREADY_EXISTS", f"Table '{handle.full_name}' exists already.") from taken
        return handle

    def left_by_trinity(self, table: TableHandle) -> bool:
        return is_table(Path(table.location))

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def alter(state: State) -> Change | None:
            changed = change(state.definition)
            return None if changed == state.definition else _change("alter", definition=changed)

        self._commit(table, alter)

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._snapshots.load(table).definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self._snapshots.split_source(table)

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._snapshots.history(table)

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        state = self._snapshots.load(table)
        pinned = table.pinned(state.version, state.definition.id)
        return InsertTableHandle(pinned, state.definition, _target(table, state.definition))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        table = replace(insert.table, version=None)
        written = from_fragments(list(fragments))
        files = _relative(table, written)

        def change(state: State) -> Change | None:
            if txn and state.txns.get(txn[0], -1) >= txn[1]:
                return None
            check_present(table, written)
            insert.check_demands(state.definition)
            return _change("append", added=files, txns=dict([txn]) if txn else {})

        if not files and txn is None:
            return CommitResult(self._snapshots.load(table).version)
        state, committed = self._commit(table, change)
        if not committed:
            return CommitResult(state.version, skipped=True)
        return _result(state, files)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._snapshots.load(table).txns.get(application)

    # -- row changes ------------------------------------------------------------------------------------

    def finish_merge(
        self, merge: MergeTableHandle, sources: Sequence[TableHandle], fragments: Sequence[bytes]
    ) -> CommitResult:
        table = replace(merge.table, version=None)
        files, gone = from_merge_fragments(fragments)
        store = ObjectStore(table.location)

        def change(state: State) -> Change:
            check_present(table, files)
            merge.insert.check_demands(state.definition)
            live = {store.path(path) for path in state.files}
            check_scope(merge, self._snapshots.changes(merge.table, state), live, gone)
            removed = frozenset(store.relative(path) for path in gone)
            return _change("merge", added=_relative(table, files), removed=removed)

        state, _ = self._commit(table, change)
        return _result(state, files)

    def truncate(self, table: TableHandle) -> CommitResult:
        removed: list[DataFile] = []

        def change(state: State) -> Change | None:
            removed[:] = state.files.values()
            return _change("truncate", removed=frozenset(state.files)) if removed else None

        state, _ = self._commit(table, change)
        return _result(state, removed)

    # -- compaction and care ----------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        state = self._snapshots.load(table)
        pinned = table.pinned(state.version, state.definition.id)
        return RewriteTableHandle(pinned, state.definition, _target(table, state.definition), tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        table = replace(rewrite.table, version=None)
        written = from_fragments(list(fragments))
        files = _relative(table, written)
        replaced = {f.path for f in _relative(table, rewrite.replaced)}

        def change(state: State) -> Change:
            check_present(table, written)
            if gone := replaced - state.files.keys():
                raise TrinityError(
                    "TRANSACTION_CONFLICT",
                    f"Another compaction of '{table.full_name}' replaced {min(gone)} meanwhile; compact again.",
                )
            sidecar = {f.path for f in state.files.values() if f.tier is Tier.SIDECAR} if replace_sidecar else set()
            return _change("compact", added=files, removed=frozenset(replaced | sidecar))

        state, _ = self._commit(table, change)
        return _result(state, files)

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        state = self._snapshots.load(replace(table, version=None))
        table = table.pinned(None, state.definition.id)
        oldest = oldest_needed(self._snapshots.history(table), older_than_ms)
        store = ObjectStore(table.location)

        def forget() -> bool:
            if oldest <= self._snapshots.load(table).oldest:
                return False
            # the oldest readable version must not need the manifests before it
            write_checkpoint(store, self._snapshots.load(replace(table, version=oldest)))
            return self._commit(table, lambda _: _change("vacuum", oldest=oldest))[1]

        gone = delete_around(lambda: self._delete_unneeded(table, older_than_ms), forget)
        return VacuumResult(len(gone), sum(e.size for e in gone), oldest)

    def _delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Deletes data files, and manifests and checkpoints, that no readable version needs; returns the former."""
        store = ObjectStore(table.location)
        newest = self._snapshots.load(table)
        versions = range(newest.oldest, newest.version + 1)
        readable = [self._snapshots.load(replace(table, version=v)) for v in versions]
        gone = delete_orphans(store, {store.path(p) for state in readable for p in state.files}, older_than_ms)
        if self._snapshots.stands_alone(table, newest.oldest):
            # a commit under way may be about to take the number of a manifest of the last minutes
            delete_log(store, newest.oldest, min(older_than_ms, int((time.time() - COMMIT_TIMEOUT_S) * 1000)))
        return gone

    def repair(self, table: TableHandle) -> CommitResult:
        table = replace(table, version=None)

        def attempt() -> CommitResult:
            newest, state = self._snapshots.newest_readable(table)
            if state.version == newest:
                return CommitResult(newest, skipped=True)
            files, at = list(state.files.values()), next_timestamp_ms(state.timestamp_ms)
            change = Change(newest + 1, at, "repair", files, frozenset(), state.definition, state.txns, newest + 1)
            try:
                put_manifest(ObjectStore(table.location), change)
            except AlreadyExists as taken:
                raise CommitRaced(f"version {newest + 1} was taken") from taken
            return _result(State.begun(change), files)

        return commit_loop(table.location, attempt)

    # -- the loop ---------------------------------------------------------------------------------------

    def _commit(self, table: TableHandle, change: Callable[[State], Change | None]) -> tuple[State, bool]:
        """Reload, check, commit, until no other writer comes between. Returns the state and whether it committed."""
        first = self._snapshots.load(replace(table, version=None)).definition
        newest = table.pinned(None, first.id)

        def attempt() -> tuple[State, bool]:
            state = self._snapshots.load(newest)
            wanted = change(state)
            if wanted is None:
                return state, False
            return write_version(ObjectStore(table.location), state, wanted, self._interval), True

        return commit_loop(table.location, attempt, commit_timeout_s(first.properties))


def _change(operation: str, **fields: object) -> Change:
    """A change whose version and time the commit fills in."""
    return Change(-1, -1, operation, **fields)  # type: ignore[arg-type]


def is_table(folder: Path) -> bool:
    """True for a folder with a manifest of Trinity's."""
    return (folder / manifest_name(0)).is_file()


def _target(table: TableHandle, definition: TableDefinition) -> WriteTarget:
    statistics = statistics_columns(definition)
    storage = storage_schema(definition)
    sync = syncs_files(definition.properties)
    return WriteTarget(table.location, storage, statistics, uuid.uuid4().hex, definition.partition_by, sync)


def _relative(table: TableHandle, files: Sequence[DataFile]) -> list[DataFile]:
    store = ObjectStore(table.location)
    return [f.moved(store.relative(f.path)) for f in files]


def _result(state: State, files: Sequence[DataFile]) -> CommitResult:
    return CommitResult(
        state.version, sum(f.rows for f in files if f.tier is not Tier.SIDECAR), len(files), sum(f.size for f in files)
    )
