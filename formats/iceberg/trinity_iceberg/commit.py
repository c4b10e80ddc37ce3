"""The commit: one attempt to put a snapshot on the newest one, by the shared template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyiceberg.table.update import TableUpdate

from trinity.spi import DataFile, MergeTableHandle, RowOrder, TableDefinition
from trinity.storage import (
    REPLACE,
    Attempt,
    Change,
    FileChange,
    ObjectStore,
    definition_after,
    order_with,
    stamps_missing,
)
from trinity_iceberg.carried import INDEX, ORDER, carried, folded_order, index_of, order_of
from trinity_iceberg.deletes import warn_of_views
from trinity_iceberg.index import FileIndex, open_index, put_index
from trinity_iceberg.partition import named_now, spec_updates
from trinity_iceberg.producer import SnapshotChange, check_deletes, put_snapshot
from trinity_iceberg.schema import definition_updates, evolved_schema
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State, txn_summary
from trinity_iceberg.swap import same_schema

__all__ = ["IcebergAttempt"]


@dataclass(frozen=True)
class IcebergAttempt(Attempt[State]):
    """An attempt at a commit; ``snapshots`` are the versions of the catalog's tables."""

    snapshots: Snapshots

    def live(self) -> Collection[DataFile]:
        return self.snapshots.files(self.table, self.newest)[0]

    def has_sidecar(self) -> bool:
        return bool(self.snapshots.files(self.table, self.newest)[1])

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.snapshots.changes(merge.table, self.newest)

    def put(self, change: Change) -> int:
        return put_snapshot(self.snapshots, self.newest, self._snapshot(change))

    def _snapshot(self, change: Change) -> SnapshotChange:
        if change.rewrite is not None:
            return self._rewritten(change)
        state, summary = self.newest, txn_summary(self.newest, change.txn)
        if change.insert is None:
            return self._truncated(change, summary)
        if change.operation == REPLACE:
            return self._replaced(change)
        added = named_now(change.files, change.insert.definition, state.loaded)
        if change.merge is None:
            order = None
            if state.definition.stamped:
                order = order_with(change.insert, order_of(state.metadata), state.version, self.live)
            return SnapshotChange("append", added, summary=summary, order=order)
        first = stamps_missing(change.insert, state.definition)  # the first order to remember
        merged = SnapshotChange("merge", added, change.removed, summary, order=RowOrder() if first else None)
        after = definition_after(change.merge, state.definition)
        if after == state.definition:
            return merged
        updates = definition_updates(state.metadata, state.definition, after)
        return replace(merged, updates=updates, requirements=same_schema(state.metadata))

    def _truncated(self, change: Change, summary: Mapping[str, str]) -> SnapshotChange:
        metadata, store = self.newest.metadata, ObjectStore(self.table.location)
        name, updates = put_index(FileIndex(), store, metadata) if self.has_sidecar() else (None, ())
        summary = {**({INDEX: name} if name else {}), **summary}
        order = folded_order(metadata, self.newest.version)
        return SnapshotChange("truncate", (), change.removed, summary, updates, order=order)

    def _replaced(self, change: Change) -> SnapshotChange:
        assert change.merge is not None
        state, metadata = self.newest, self.newest.metadata
        emptied = self._truncated(change, {})
        after = definition_after(change.merge, state.definition)
        schema = evolved_schema(metadata, state.definition, after)
        spec, partitions = spec_updates(metadata, after, schema)
        updates = (*definition_updates(metadata, state.definition, after), *partitions)
        return replace(
            emptied,
            operation=REPLACE,
            added=change.files,
            updates=(*updates, *emptied.updates),
            requirements=same_schema(metadata),
            layout=(schema, spec),
        )

    def _rewritten(self, change: Change) -> SnapshotChange:
        assert change.rewrite is not None
        written, metadata, store = change.rewrite.definition, self.newest.metadata, ObjectStore(self.table.location)
        added = named_now(change.rows, written, self.newest.loaded)
        if written.external:  # rows are ordered by the sequence number of the new files
            check_deletes(change.table, self.newest)
            return SnapshotChange("compact", added, change.removed)
        index = open_index(store, carried(metadata).get(INDEX))
        sidecar = change.sidecar if change.replace_sidecar else index.sidecar
        name, updates = put_index(index.rewritten(store, change.removed, change.rows, sidecar), store, metadata)
        return SnapshotChange(
            change.operation,
            added,
            change.removed,
            {INDEX: name},
            updates,
            rewrites=True,
            order=folded_order(metadata, change.table.version or 0) if change.replace_sidecar else None,
            deletes=change.deletes,
        )

    def restore(self, then: State, definition: TableDefinition) -> int | None:
        """Put a snapshot that makes an earlier one the newest again, and return its version; None for no change."""
        state, store = self.newest, ObjectStore(self.table.location)
        metadata, now = state.metadata, carried(state.metadata)
        assert then.snapshot is not None
        index, updates = index_of(metadata, then.snapshot), tuple[TableUpdate, ...]()
        same = self.snapshots.files(self.table, then) == self.snapshots.files(self.table, state)
        if same and definition == state.definition:
            return None
        if index is None and INDEX in now:
            index, updates = put_index(FileIndex(), store, metadata)
        updates += definition_updates(metadata, state.definition, definition)
        if definition.replaced != state.definition.replaced:
            updates += spec_updates(metadata, definition, evolved_schema(metadata, state.definition, definition))[1]
        change = SnapshotChange(
            "restore",
            summary={} if index is None else {INDEX: index},
            updates=updates,
            requirements=same_schema(metadata),
            order=order_of(metadata, then.snapshot) if ORDER in now else None,
            restored=then.snapshot,
        )
        return put_snapshot(self.snapshots, state, change)

    def after(self, change: Change, version: int) -> None:
        if change.deletes:
            warn_of_views(self.table, version, before=self.live(), deletes=change.deletes)
