"""The steps of one attempt at a commit, by the shared template; ``own_log.py`` and ``jvm.py`` decide who was first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from trinity.clock import now_ms
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spi import (
    CommitOperation,
    CommitResult,
    DataFile,
    MergeTableHandle,
    RewriteTableHandle,
    TableDefinition,
    TableHandle,
)
from trinity.storage import (
    Change,
    CommitRaced,
    DeletesFragment,
    FileChange,
    Location,
    ObjectStore,
    TableAttempt,
    definition_after,
    no_table,
    order_with,
    stamps_missing,
)
from trinity_delta.actions import (
    TAG_OPERATION,
    Action,
    add,
    check_partitions,
    remove,
    remove_added,
    sidecar_list,
    transaction,
    vacuum_mark,
    with_vector,
)
from trinity_delta.adopt import check_dropped, check_removable
from trinity_delta.deletes import DeletionVector
from trinity_delta.jvm import DeltaTransaction
from trinity_delta.logs import Logs, Transaction
from trinity_delta.own_log import OwnTransaction, catch_up
from trinity_delta.protocol import KEPT, are_kept, refused
from trinity_delta.restored import restored_metadata, restoring
from trinity_delta.row_tracking import check_tracking
from trinity_delta.schema import FEED, MAPPED, VECTORS, evolved, is_true, needs, recorded, replaced
from trinity_delta.snapshot import Snapshots
from trinity_delta.state import State, domains_in_force, order_actions

_log = logger("trinity.delta")
_OPERATIONS: Final = {
    CommitOperation.APPEND: "Write",
    CommitOperation.MERGE: "Update",
    CommitOperation.TRUNCATE: "Truncate",
    CommitOperation.REPLACE: "Replace",
    CommitOperation.COMPACT: "Optimize",
    CommitOperation.RESOLVE: "Optimize",
}
"""Operation of a statement -> operation of Delta's transaction."""


@dataclass(frozen=True)
class DeltaAttempt(TableAttempt[State]):
    """An attempt at a commit to a Delta table."""

    snapshots: Snapshots
    logs: Logs

    def live(self) -> Collection[DataFile]:
        return self.newest.files.values()

    def sidecar(self) -> Collection[DataFile]:
        return self.newest.sidecar

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.snapshots.changes(merge.table, self.newest)

    def check_table(self, change: Change) -> None:
        if change.written is not None:
            before = change.merge.before if change.merge is not None else None
            self._check_columns(change.table, before or change.written)
        empties = change.operation in (CommitOperation.TRUNCATE, CommitOperation.REPLACE)
        if empties or (change.merge is not None and change.removed):
            rewrites = change.operation == CommitOperation.MERGE and bool(change.files)
            check_removable(self.table, self.newest.metadata, rewrites=rewrites)
        if change.operation == CommitOperation.RESOLVE:
            check_vectors(self.table, self.newest)

    def _check_columns(self, pinned: TableHandle, written: TableDefinition) -> None:
        self.newest.check_writable(pinned)
        if self.newest.definition.external:
            before = self.snapshots.load(pinned)
            same = before.metadata["schemaString"] == self.newest.metadata["schemaString"]
        else:
            # dropped columns come first: a column that a restore brought back may have the name of a dropped one
            columns = self.newest.definition
            now = {c.stored_name: c.field_id for c in (*columns.dropped, *columns.columns)}
            same = all(now.get(c.stored_name) == c.field_id for c in written.visible)
        if not same:
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"The columns of '{pinned.full_name}' were changed while a statement wrote to it; run it again.",
            )

    def put(self, change: Change) -> int:
        changed = self._update(change)
        started, external = self.start(changed.get("configuration", {})), self.newest.definition.external
        if change.txn is not None:  # a concurrent record of the same application conflicts
            started.read_txn(change.txn[0])
        if change.rewrite is None or external:
            # concurrent commits of rows conflict, and the loop tries again: so the order is exact
            started.read_whole_table()
        if change.rewrite is not None and external:
            return started.commit(_folded_external(change.rewrite, self.newest, change.files), operation="Update")
        if changed:
            started.update(changed)
        actions = self._actions(change)
        if not actions and change.operation == CommitOperation.COMPACT:
            return self.newest.version
        unknown = change.operation in (CommitOperation.RESOLVE, CommitOperation.REPLACE)
        tags = {TAG_OPERATION: change.operation.value} if unknown else {}
        return started.commit(actions, operation=_OPERATIONS[change.operation], tags=tags)

    def _update(self, change: Change) -> dict[str, Any]:
        """Return the new fields of ``metaData``: for other columns, a table in place of this one, deletion vectors."""
        before, present = self.newest.definition, self.newest.metadata["configuration"]
        after = before if change.merge is None else definition_after(change.merge, before)
        found: dict[str, Any] = {}
        if after.replaced != before.replaced:
            return self._replaced_metadata(after)
        if after != before:
            settings = self.logs.settings(self.table.location, present, after, needs(before, after).settings)
            schema = evolved(self.newest.metadata["schemaString"], after, mapped=self.newest.mapped)
            found = {"schemaString": schema, "configuration": settings}
        if change.deletes and not _has_vectors(self.newest):
            found["configuration"] = {**present, VECTORS: "true"}
        return found

    def _replaced_metadata(self, after: TableDefinition) -> dict[str, Any]:
        """Return the fields of ``metaData`` of a table that takes the place of this one."""
        before, present = self.newest.definition, self.newest.metadata["configuration"]
        check_dropped(self.table, replace(after, dropped=before.all_columns), self.newest.clustering)
        check_partitions(after)
        own = {key for key in before.properties if key.startswith("delta.")}
        kept = {key: text for key, text in present.items() if key not in own}
        needed = needs(replace(before, columns=()), after).settings
        return {
            "schemaString": replaced(after, mapped=self.newest.mapped),
            "partitionColumns": list(after.partition_columns),
            "configuration": self.logs.settings(self.table.location, kept, after, needed),
        }

    def _actions(self, change: Change) -> list[Action]:
        state, store, number = self.newest, ObjectStore(self.table.location), self.newest.version + 1
        written, compacts = change.written or state.definition, change.rewrite is not None
        known = written if compacts else state.definition
        gone = [(path, f) for path, f in state.files.items() if f.path in change.removed]
        found = [remove(path, f, known, changes=not compacts) for path, f in gone]
        found += [add(f, store, written, order=None if compacts else number) for f in change.rows]
        if change.replace_sidecar and (change.sidecar or state.sidecar):
            found.append(sidecar_list(change.sidecar, store))
        if found or change.insert is not None:
            found += self._order(change)
        marks = _vector_actions(state, {made.of: made for made in change.deletes}) if change.deletes else []
        return [*marks, *found, *([transaction(change.txn)] if change.txn else [])]

    def _order(self, change: Change) -> list[Action]:
        state, definition, order = self.newest, self.newest.definition, self.newest.order
        if change.operation == CommitOperation.APPEND and change.insert is not None:
            order = order_with(change.insert, order, state.version, state.files.values)
        elif change.operation == CommitOperation.REPLACE:
            order = order.folded(state.version)
        elif change.merge is not None and stamps_missing(change.merge.insert, definition):
            definition = definition.with_stamps()
        elif change.replace_sidecar:
            order = order.folded((change.table.version or 0) if change.rewrite else state.version)
        return order_actions(definition, order, state.version + 1)

    # -- commits without new rows -----------------------------------------------------------------------

    def at(self, version: int | None) -> State:
        return self.snapshots.load(replace(self.table, version=version))

    def files(self, version: State) -> Collection[DataFile]:
        return *version.files.values(), *version.sidecar

    def restore(self, then: State, definition: TableDefinition) -> int | None:
        actions = restoring(self.table, self.newest, then)
        if any("remove" in action for action in actions):
            check_removable(self.table, self.newest.metadata, rewrites=False)
        change = restored_metadata(self.table, self.newest, then, definition)
        if not (actions or change):
            return None
        started = self.start(change["configuration"] if change else {})
        started.read_whole_table()
        if change:
            started.update(change)
        return started.restore(actions, then.version)

    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        if oldest <= self.newest.oldest:
            return None
        self.start().vacuum(vacuum_mark(oldest), max(0, now_ms() - older_than_ms))
        return self.newest.version + 1

    def redefine(self, definition: TableDefinition) -> int | None:
        state, present = self.newest, self.newest.metadata["configuration"]
        wanted = needs(state.definition, definition)
        if wanted.mapping and not state.mapped:
            # Delta requires two commits for column mapping and a change of columns; this first one changes nothing
            self._record(present, {**present, **MAPPED})
            return None
        check_dropped(self.table, definition, state.clustering)
        schema = evolved(state.metadata["schemaString"], definition, mapped=state.mapped)
        settings = self.logs.settings(self.table.location, present, definition, wanted.settings)
        check_tracking(self.table, state.protocol, settings)
        named = {"partitionColumns": list(definition.partition_columns)}
        return self._alter(settings, {"schemaString": schema, "configuration": settings, **named})

    def record_definition(self) -> None:
        """Record the definition that other engines changed."""
        if self.newest.changed:
            settings = {**self.newest.metadata["configuration"], **recorded(self.newest.definition)}
            self._record(settings, settings)

    def _record(self, needed: Mapping[str, str], settings: Mapping[str, str]) -> None:
        """Commit other settings, and log it."""
        self.log_commit(CommitOperation.ALTER, CommitResult(self._alter(needed, {"configuration": settings})))

    def _alter(self, needed: Mapping[str, str], change: Mapping[str, Any]) -> int:
        """Commit other values of fields of the ``metaData`` action, and return the version.

        Args:
            needed: the settings that the transaction has to support.
            change: field -> value.
        """
        started = self.start(needed)
        started.read_whole_table()  # the change may depend on the rows
        started.alter(change)
        return self.newest.version + 1

    def start(self, settings: Mapping[str, str] = MappingProxyType({})) -> Transaction:
        """Start Trinity's own transaction; on a disk Delta's, if the table needs what Trinity does not support."""
        on_disk, external = Location.of(self.table.location).on_disk, self.newest.definition.external
        if on_disk and not external and not (_is_supported(self.newest) and are_kept(settings)):
            return self._of_delta()
        if external and not on_disk:
            _warn_of_others(self.table.location)
        return OwnTransaction(self.table, self.newest, self.snapshots, domains_in_force(self.table, self.newest))

    def _of_delta(self) -> DeltaTransaction:
        """Start a transaction of Delta's own on the version.

        Raises:
            TrinityError: TABLE_NOT_FOUND.
            CommitRaced: the version is no longer the newest.
        """
        jvm, table, state = self.logs.jvm(), self.table, self.newest
        started = jvm.start(table.full_name, table.location)
        if started.read_version < 0:
            raise no_table(table.full_name)
        if state.definition.id != started.table_id:  # Delta remembers the table that was dropped elsewhere
            jvm.forget(table.location)
            raise CommitRaced(f"'{table.location}' holds another table now")
        if state.version != started.read_version:
            raise CommitRaced(f"version {started.read_version} came while version {state.version} was read")
        started.domains = domains_in_force(table, state)
        started.write_due_checkpoint = lambda: catch_up(table, state)
        return started


@cache
def _warn_of_others(location: str) -> None:
    """Warn once about a table in an object store: other writers must not write to it meanwhile."""
    _log.warning(
        "A commit to '%s' is put if nobody else has put that version. Spark's Delta puts without that condition, and "
        "may put its own over one of Trinity's or of delta-rs: let no such writer run at the time.",
        location,
    )


def _is_supported(state: State) -> bool:
    """Return whether Trinity supports all features and settings of a table."""
    features = set(state.protocol.get("writerFeatures") or ())
    return bool(features) and features <= KEPT and are_kept(state.metadata["configuration"])


def _folded_external(rewrite: RewriteTableHandle, state: State, files: Sequence[DataFile]) -> list[Action]:
    """Return the actions of a compaction of an external table, whose readers see row versions disappear.

    Where none disappears, the same rows are in other files, which is no change to a feed or a stream of the table.

    Raises:
        TrinityError: NOT_SUPPORTED for a table with a change data feed, which would show every row as deleted, and
            those that stay as inserted.
    """
    replaced = {f.path for f in rewrite.replaced}
    paths = [path for path, f in state.files.items() if f.path in replaced]
    changes = not _keeps_rows([state.files[path] for path in paths], files)
    if changes and is_true(state.metadata["configuration"], FEED):
        ObjectStore(rewrite.table.location).delete(f.path for f in files)  # new files, which no version names
        raise refused(
            rewrite.table,
            f"'{FEED}' = 'true' and row versions that a compaction would leave out: its feed would show every row as "
            "deleted, and those that stay as inserted",
        )
    order, store = state.version + 1 if changes else None, ObjectStore(rewrite.table.location)
    return [
        *(remove_added(state.added[path], changes=changes) for path in paths),
        *(add(f, store, rewrite.definition, order=order) for f in files),
    ]


def _keeps_rows(before: Sequence[DataFile], after: Sequence[DataFile]) -> bool:
    """Return whether a compaction dropped no row version: True only if all numbers of rows are known, and equal."""
    return all(f.rows_known for f in before) and sum(f.live_rows for f in before) == sum(f.rows for f in after)


def _has_vectors(state: State) -> bool:
    """Return whether the table's settings allow deletion vectors."""
    return is_true(state.metadata["configuration"], VECTORS)


def check_vectors(table: TableHandle, state: State) -> None:
    """Refuse a table whose settings forbid deletion vectors. Raises NOT_SUPPORTED naming the setting."""
    if str(state.metadata["configuration"].get(VECTORS)).lower() == "false":
        raise refused(table, f"'{VECTORS}' = 'false', and compact('resolve') deletes rows by deletion vectors")


def _vector_actions(state: State, marks: Mapping[str, DeletesFragment]) -> list[Action]:
    """Return the actions that give files with newly deleted rows their new deletion vectors."""
    found: list[Action] = []
    for path, file in state.files.items():
        if file.path in marks:
            vector = marks[file.path].deletes
            assert isinstance(vector, DeletionVector)
            found += with_vector(state.added[path], vector)
    return found
