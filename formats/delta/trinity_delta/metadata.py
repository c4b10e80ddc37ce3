"""Names, versions and commits of a catalog of Delta tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from trinity.spi import (
    OLDEST,
    ConnectorContext,
    DataFile,
    HistoryEntry,
    InsertTableHandle,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableDefinition,
    TableHandle,
    WriteTarget,
    append_stamp,
)
from trinity.storage import (
    DeletesFragment,
    Entry,
    FolderMetadata,
    Location,
    ObjectStore,
    TableCommits,
    delete_orphans,
    on_newest,
    stamped,
    write_target,
)
from trinity.storage.folders import Folders
from trinity.storage.sinks import statistics_columns
from trinity_delta.actions import LOG, check_partitions, new_metadata
from trinity_delta.commit import DeltaAttempt, check_vectors
from trinity_delta.damaged_log import made_by_trinity
from trinity_delta.deletes import is_vector_file, vectors_of_fragments
from trinity_delta.external import check_rewritable, external_storage
from trinity_delta.logs import Logs
from trinity_delta.repair import repair
from trinity_delta.schema import configuration, storage_schema
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import State

_T = TypeVar("_T")


class DeltaMetadata(FolderMetadata, TableCommits):
    """The metadata of a catalog of Delta tables."""

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
            self.forget(table)
            log.create(table.full_name, table.location, metadata)

        return self.make_named(definition.schema, definition.name, make).pinned(None, definition.id)

    def check_location(self, table: TableHandle) -> None:
        """Refuse a table in an object store that can be neither written nor read there. Raises NOT_SUPPORTED."""
        if not Location.of(table.location).on_disk:
            self._snapshots.state(table).check_there(table)

    def left_by_trinity(self, table: TableHandle) -> bool:
        return made_by_trinity(table.location)

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        return self._snapshots.load(table).definition

    def get_splits(self, table: TableHandle) -> SplitSource:
        return self._snapshots.split_source(table)

    def history(self, table: TableHandle) -> list[HistoryEntry]:
        return self._snapshots.history(table)

    def since_checkpoint(self, table: TableHandle) -> int:
        return self._snapshots.since_checkpoint(table)

    # -- writes -----------------------------------------------------------------------------------------

    def begin_insert(self, table: TableHandle, after: TableDefinition | None = None) -> InsertTableHandle:
        state = self._begin(table)
        pinned = table.pinned(state.version, state.definition.id)
        return InsertTableHandle(pinned, *target_of(table, state, append_stamp(state.version), after))

    def begin_insert_after(self, table: TableHandle, after: TableDefinition) -> InsertTableHandle:
        return self.begin_insert(table, after)

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        return self._snapshots.load(replace(table, version=None)).txns.get(application)

    # -- compaction and maintenance ---------------------------------------------------------------------

    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        state = self._begin(table)
        pinned = table.pinned(state.version, state.definition.id)
        if state.definition.external or state.definition.keyed:  # other engines see row versions disappear
            check_rewritable(table, state.metadata, state.protocol)
        return RewriteTableHandle(pinned, *target_of(table, state, OLDEST), tuple(replaced))

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        check_vectors(table, self._snapshots.load(table))
        return replace(self.begin_rewrite(table, replaced), kept=tuple(kept))

    def read_deletes(self, rewrite: RewriteTableHandle, deletes: Sequence[bytes]) -> Sequence[DeletesFragment]:
        return list(vectors_of_fragments(rewrite, deletes).values())

    def newest_definition(self, table: TableHandle) -> TableDefinition:
        return self._snapshots.state(replace(table, version=None)).definition  # also of a table that cannot be read

    def delete_unneeded(self, table: TableHandle, older_than_ms: int) -> list[Entry]:
        store = ObjectStore(table.location)
        states = self._snapshots.readable(table)
        needed = {path for state in states for f in (*state.files.values(), *state.sidecar) for path in f.needs}
        needed |= {store.path(e.path) for folder in (LOG, "_change_data") for e in store.list(folder)}  # Delta's own
        return delete_orphans(store, needed, older_than_ms, also=is_vector_file)

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        self.forget(table)  # what is remembered may have become unreadable
        done = repair(self._snapshots, table, version, dry_run=dry_run)
        self.forget(table)
        return done

    # -- helpers ----------------------------------------------------------------------------------------

    def _begin(self, table: TableHandle) -> State:
        """Return the state that a statement writes to, after recording the changes of other engines to the definition.

        Files mark carried columns by their index among all columns that there ever were (P1). So columns that other
        engines added need their index before a file is written.
        """
        newest = replace(table, version=None)
        state = self._snapshots.load(newest)
        if state.changed:
            self.run_attempts(newest, DeltaAttempt.record_definition)
        if state.changed or table.version not in (None, state.version):
            state = self._snapshots.load(table)
        state.check_writable(table)
        return state

    def forget(self, table: TableHandle) -> None:
        self._snapshots.forget(table)
        self._logs.forget(table.location)

    def run_attempts(
        self, table: TableHandle, use: Callable[[DeltaAttempt], _T], known: TableDefinition | None = None
    ) -> _T:
        seen: list[State] = []
        if known is None:
            first = self._snapshots.load(replace(table, version=None))
            known = first.definition
            if not Location.of(table.location).on_disk:  # another look is a request there
                seen.append(first)

        def attempt(newest: TableHandle) -> _T:
            state = seen.pop() if seen else None
            if state is None or self._snapshots.is_behind(newest, state):
                state = self._snapshots.load(newest)
            return use(DeltaAttempt(newest, state, self._snapshots, self._logs))

        return on_newest(table, known, attempt)


def target_of(
    table: TableHandle, state: State, stamp: int, after: TableDefinition | None = None
) -> tuple[TableDefinition, WriteTarget]:
    """Return the definition and the target for the sinks of a statement, which may redefine the table."""
    definition = after or state.definition
    external = definition.external
    storage = external_storage(definition, state.metadata) if external else storage_schema(definition)
    clustering = [c.name for c in definition.columns if c.stored_name in state.clustering]
    statistics = tuple(dict.fromkeys((*statistics_columns(definition), *clustering)))
    target = write_target(table.location, definition, storage, statistics=statistics)
    return stamped(definition, target, stamp)
