"""Names, versions and commits of a catalog of Delta tables."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from trinity.errors import TrinityError
from trinity.spi import (
    OLDEST,
    CommitResult,
    ConnectorContext,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
    VacuumResult,
    append_stamp,
    from_fragments,
    from_merge_fragments,
)
from trinity.storage import (
    Entry,
    FolderMetadata,
    Folders,
    Location,
    ObjectStore,
    as_read,
    check_kept,
    check_present,
    check_replaced,
    check_scope,
    commit_loop,
    commit_result,
    delete_around,
    delete_orphans,
    is_recorded,
    oldest_needed,
    order_with,
    stamps_missing,
)
from trinity_delta.actions import LOG, TAG_OPERATION, add, new_metadata, remove, sidecar_list, transaction, vacuum_mark
from trinity_delta.adopt import check_dropped, check_removable
from trinity_delta.commit import commit_change, record_definition
from trinity_delta.deletes import is_vector_file, vectors_of_fragments
from trinity_delta.external import check_rewritable
from trinity_delta.logs import Logs
from trinity_delta.mending import repaired
from trinity_delta.order import order_actions
from trinity_delta.partition import check_partitions
from trinity_delta.repair import made_by_trinity
from trinity_delta.rewriting import check_vectors, folded_external, has_vectors, marked, rewritten
from trinity_delta.row_tracking import check_tracking
from trinity_delta.schema import (
    CONSTRAINT,
    MAPPED,
    VECTORS,
    configuration,
    evolved,
    needs,
)
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import State
from trinity_delta.target import target_of
from trinity_delta.transaction import Transaction

__all__ = ["DeltaMetadata"]

_T = TypeVar("_T")


class DeltaMetadata(FolderMetadata):
    """See :class:`~trinity.spi.ConnectorMetadata`."""

    def __init__(self, folders: Folders, context: ConnectorContext) -> None:
        super().__init__(folders)
        self._logs = Logs(context)
        self._snapshots = Snapshots(self._logs)

    # -- tables -----------------------------------------------------------------------------

    def create_table(self, definition: TableDefinition) -> TableHandle:
        check_partitions(definition)
        definition = replace(definition, id=str(uuid.uuid4()))

        def make(table: TableHandle) -> None:
            log = self._logs.at(table.location, definition.properties)
            settings = configuration(definition, preferred=log.preferred)
            metadata = new_metadata(definition, self._logs.checked(table.location, settings))
            self._forget(table)
            log.create(table.full_name, table.location, metadata)

        return self.make_named(definition.schema, definition.name, make)

    def drop_table(self, table: TableHandle) -> None:
        def attempt() -> None:
            self._folders.drop_table(table)
            self._forget(table)

        commit_loop(table.location, attempt, alone=True)

    def check_location(self, table: TableHandle) -> None:
        """Refuses a table in an object store that can be neither written nor read there. Raises NOT_SUPPORTED."""
        if not Location.of(table.location).on_disk:
            self._snapshots.state(table).check_there(table)

    def left_by_trinity(self, table: TableHandle) -> bool:
        return made_by_trinity(table.location)

    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        def alter(state: State, started: Transaction) -> bool:
            started.read_whole_table()  # the change may have looked at the rows
            changed = change(state.definition)
            if changed == state.definition:
                return True
            wanted = needs(state.definition, changed)
            if wanted.mapping and not state.mapped:
                # Delta takes column mapping and a change of columns in two commits only; this first one changes nothing
                started.alter({"configuration": {**state.metadata["configuration"], **MAPPED}})
                return False
            check_dropped(table, changed, state.clustering)
            schema = evolved(state.metadata["schemaString"], changed, mapped=state.mapped)
            settings = self._configuration(table, state, changed, wanted.settings)
            check_tracking(table, state.protocol, settings)
            named = {"partitionColumns": list(changed.partition_columns)}
            started.alter({"schemaString": schema, "configuration": settings, **named})
            return True

        while not self._commit(table, alter, described=True):
            pass

    def _configuration(
        self, table: TableHandle, state: State, changed: TableDefinition, needed: Mapping[str, str]
    ) -> dict[str, str]:
        wanted = configuration(changed, needed=needed)
        checked = self._logs.checked(table.location, wanted)
        present = state.metadata["configuration"]
        kept = {f"{CONSTRAINT}{c.name}" for c in changed.checks if c.every}
        gone = {k for k in present if k.startswith(CONSTRAINT)} - kept
        return {k: v for k, v in {**present, **checked}.items() if k not in gone}

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._snapshots.load(table).definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self._snapshots.split_source(table)

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._snapshots.history(table)

    def since_checkpoint(self, table: TableHandle) -> int:
        return self._snapshots.since_checkpoint(table)

    # -- appends ----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        state = self._begin(table)
        pinned = table.pinned(state.version, state.definition.id)
        return InsertTableHandle(pinned, *target_of(table, state, append_stamp(state.version)))

    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        table = replace(insert.table, version=None)
        files = from_fragments(list(fragments))
        store = ObjectStore(table.location)

        def change(state: State, started: Transaction) -> CommitResult:
            if _is_recorded(state, started, txn):
                return CommitResult(state.version, skipped=True)
            # rows that others commit meanwhile conflict, and the loop tries again: so the order is exact
            started.read_whole_table()
            self._check_columns(insert.table, insert.definition, state)
            check_present(table, files)
            insert.check_demands(state.definition)
            number = state.version + 1
            actions = [add(f, store, insert.definition, order=number) for f in files]
            order = order_with(insert, state.order, state.version, state.files.values)
            actions += [*order_actions(state.definition, order, number), *([transaction(txn)] if txn else [])]
            return commit_result(started.commit(actions, operation="Write"), files)

        if not files and txn is None:
            return CommitResult(self._snapshots.load(table).version)
        return self._commit(table, change)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._snapshots.load(replace(table, version=None)).txns.get(application)

    # -- row changes ------------------------------------------------------------------------------------

    def finish_merge(
        self,
        merge: MergeTableHandle,
        sources: Sequence[TableHandle],
        fragments: Sequence[bytes],
        txn: TransactionId | None = None,
    ) -> CommitResult:
        table = replace(merge.table, version=None)
        files, gone = from_merge_fragments(fragments)
        store = ObjectStore(table.location)

        def change(state: State, started: Transaction) -> CommitResult:
            if _is_recorded(state, started, txn):
                return CommitResult(state.version, skipped=True)
            started.read_whole_table()
            live = as_read(merge, state.files.values())
            check_scope(merge, self._snapshots.changes(merge.table, state), live, gone)
            check_present(table, files)
            replaced = [(path, f) for path, f in state.files.items() if f.path in gone]
            actions = [remove(path, f, state.definition, changes=True) for path, f in replaced]
            self._check_columns(merge.insert.table, merge.insert.definition, state)
            if gone:
                check_removable(table, state.metadata, rewrites=bool(files))
            merge.insert.check_demands(state.definition)
            definition = state.definition
            if stamps_missing(merge.insert, definition):
                definition = definition.with_stamps()
                schema = evolved(state.metadata["schemaString"], definition, mapped=state.mapped)
                settings = {"configuration": self._configuration(table, state, definition, {})}
                started.update({"schemaString": schema, **settings})
            actions += [add(f, store, merge.insert.definition, order=state.version + 1) for f in files]
            actions += order_actions(definition, state.order, state.version + 1)
            actions += [transaction(txn)] if txn else []
            return commit_result(started.commit(actions, operation="Update"), files)

        return self._commit(table, change)

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        store = ObjectStore(table.location)

        def change(state: State, started: Transaction) -> CommitResult:
            if _is_recorded(state, started, txn):
                return CommitResult(state.version, skipped=True)
            started.read_whole_table()
            check_removable(table, state.metadata, rewrites=False)
            actions = [remove(path, f, state.definition, changes=True) for path, f in state.files.items()]
            if state.sidecar:
                actions.append(sidecar_list((), store))
            if actions:
                actions += order_actions(state.definition, state.order.folded(state.version), state.version + 1)
            actions += [transaction(txn)] if txn else []
            version = started.commit(actions, operation="Truncate") if actions else state.version
            return commit_result(version, state.files.values())

        return self._commit(table, change)

    # -- compaction and care ----------------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        state = self._begin(table)
        pinned = table.pinned(state.version, state.definition.id)
        if state.definition.external or state.definition.keyed:  # row versions go that other engines see
            check_rewritable(table, state.metadata, state.protocol)
        return RewriteTableHandle(pinned, *target_of(table, state, OLDEST), tuple(replaced))

    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        table, files = replace(rewrite.table, version=None), from_fragments(list(fragments))

        def change(state: State, started: Transaction) -> CommitResult:
            self._check_columns(rewrite.table, rewrite.definition, state)
            check_present(table, files)
            check_replaced(rewrite, state.files.values())
            if state.definition.external:
                pinned = self._snapshots.load(rewrite.table)
                started.read_whole_table()
                folded = folded_external(rewrite, pinned, state, files)
                return commit_result(started.commit(folded, operation="Update"), files)
            actions = rewritten(rewrite, state, files, replace_sidecar=replace_sidecar)
            return commit_result(started.commit(actions, operation="Optimize") if actions else state.version, files)

        return self._commit(table, change)

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        check_vectors(table, self._snapshots.load(table))
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        table, files = replace(rewrite.table, version=None), from_fragments(list(fragments))
        marks = vectors_of_fragments(rewrite, deletes)

        def change(state: State, started: Transaction) -> CommitResult:
            self._check_columns(rewrite.table, rewrite.definition, state)
            check_vectors(table, state)
            check_present(table, files, (path for mark in marks.values() for path in mark.deletes.paths))
            check_replaced(rewrite, state.files.values())
            check_kept(rewrite, state.files.values(), marks.keys())
            if marks and not has_vectors(state):
                started.update({"configuration": {**state.metadata["configuration"], VECTORS: "true"}})
            actions = [*marked(state, marks), *rewritten(rewrite, state, files, replace_sidecar=True)]
            version = started.commit(actions, operation="Optimize", tags={TAG_OPERATION: "resolve"})
            return commit_result(version, files, marks.values())

        return self._commit(table, change)

    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        state = self._snapshots.state(replace(table, version=None))
        table = table.pinned(None, state.definition.id)
        oldest = oldest_needed(self._snapshots.history(table), older_than_ms)

        def forget() -> bool:
            if oldest <= self._snapshots.load(table).oldest:
                return False
            retained_ms = max(0, int(time.time() * 1000) - older_than_ms)
            self._commit(table, lambda _, started: started.vacuum(vacuum_mark(oldest), retained_ms))
            return True

        gone = delete_around(lambda: self.delete_unneeded(table, older_than_ms), forget)
        return VacuumResult(len(gone), sum(e.size for e in gone), oldest)

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        """Deletes the data files that no readable version needs, and returns them."""
        store = ObjectStore(table.location)
        states = self._snapshots.readable(table)
        needed = {path for state in states for f in (*state.files.values(), *state.sidecar) for path in f.needs}
        needed |= {store.path(e.path) for folder in (LOG, "_change_data") for e in store.list(folder)}  # Delta's own
        return delete_orphans(store, needed, older_than_ms, also=is_vector_file)

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        self._forget(table)  # what is remembered may not be readable any more
        done = repaired(self._snapshots, table, version, dry_run=dry_run)
        self._forget(table)
        return done

    # -- helpers ----------------------------------------------------------------------------------------

    def _begin(self, table: TableHandle) -> State:
        """The state that a statement writes to; what other engines changed of the definition is on record from here.

        Files with marks for columns by their place among all that there were (P1) need these to be settled.
        """
        newest = replace(table, version=None)
        state = self._snapshots.load(newest)
        if state.changed:
            self._commit(newest, record_definition, described=True)
        if state.changed or table.version is not None:
            state = self._snapshots.load(table)
        state.check_writable(table)
        return state

    def _check_columns(self, pinned: TableHandle, written: TableDefinition, state: State) -> None:
        """Check that files that were written under a definition may be added, in the attempt to commit them.

        Raises:
            TrinityError: NOT_SUPPORTED for a table that other engines made unwritable; TRANSACTION_CONFLICT when they
                changed its columns meanwhile so that the files would be misread.
        """
        state.check_writable(pinned)
        if state.definition.external:
            same = self._snapshots.load(pinned).metadata["schemaString"] == state.metadata["schemaString"]
        else:
            now = {c.stored_name: c.field_id for c in state.definition.ever}
            same = all(now.get(c.stored_name) == c.field_id for c in written.visible)
        if not same:
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"The columns of '{pinned.full_name}' were changed while a statement wrote to it; run it again.",
            )

    def _forget(self, table: TableHandle) -> None:
        self._snapshots.forget(table)
        self._logs.forget(table.location)

    def _commit(self, table: TableHandle, change: Callable[[State, Transaction], _T], *, described: bool = False) -> _T:
        """Reload, check, commit, until no other writer comes between; see :func:`commit_change`."""
        return commit_change(self._snapshots, self._logs, table, change, described=described)


def _is_recorded(state: State, started: Transaction, txn: TransactionId | None) -> bool:
    """The result of ``is_recorded``; a ``txn`` that others record meanwhile conflicts."""
    if txn is not None:
        started.read_txn(txn[0])
    return is_recorded(state.txns, txn)
