"""The steps of one attempt to put a snapshot on the newest one, by the shared template.

Who was first is decided by the catalog, in ``swap.py``.

Manifests and snapshot are written here with PyIceberg's writers, and given to ``Catalog.commit_table``. PyIceberg's
``Transaction`` is not used: it copies the whole table metadata a dozen times for each commit (110 ms against 40 ms at
100 snapshots), takes the snapshot's time from the clock alone (L10 wants it strictly increasing), and cannot give a
rewritten file the sequence number of the rows in it (K6).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate
from pyiceberg.utils.properties import property_as_bool

from trinity.errors import TrinityError
from trinity.spi import CommitOperation, DataFile, MergeTableHandle, RowOrder, TableDefinition
from trinity.storage import (
    Change,
    CommitRaced,
    DeletesFragment,
    FileChange,
    ObjectStore,
    TableAttempt,
    definition_after,
    next_timestamp_ms,
    order_with,
    stamps_missing,
)
from trinity.storage.location import local_path
from trinity.storage.parquet_sink import is_sink_file
from trinity_iceberg.adopt import check_own_writable
from trinity_iceberg.carried import (
    INDEX,
    OPERATION,
    ORDER,
    carried_facts,
    folded_order,
    index_of,
    on_record,
    order_of,
    version_of,
)
from trinity_iceberg.deletes import DeletesWriter, delete_file, position_deletes, target_path, warn_of_views
from trinity_iceberg.expire import AGE, expire, expiry_due
from trinity_iceberg.index import FileIndex, open_index, put_index
from trinity_iceberg.manifests import NewManifests, deleted, existing, iceberg_file, live_manifests, schema_with
from trinity_iceberg.partition import check_names, named_now, spec_updates
from trinity_iceberg.restored import kept_removals, restored_is_there
from trinity_iceberg.schema import column_paths, definition_updates, evolved_schema, history_updates
from trinity_iceberg.snapshot import Snapshots
from trinity_iceberg.state import State, txn_summary
from trinity_iceberg.swap import commit_updates, same_schema, set_ref


@dataclass(frozen=True)
class IcebergAttempt(TableAttempt[State]):
    """An attempt at a commit to an Iceberg table; ``snapshots`` reads versions of the catalog's tables."""

    snapshots: Snapshots

    def live(self) -> Collection[DataFile]:
        return self.snapshots.files(self.table, self.newest)[0]

    def sidecar(self) -> Collection[DataFile]:
        return self.snapshots.files(self.table, self.newest)[1]

    def changes(self, merge: MergeTableHandle) -> list[FileChange] | None:
        return self.snapshots.changes(merge.table, self.newest)

    def put(self, change: Change) -> int:
        return self._put(self._snapshot(change))

    def _put(self, change: SnapshotChange) -> int:
        """Put a snapshot on top of the newest version as it was loaded, and return its own version.

        Raises:
            CommitRaced: another commit was first.
            TrinityError: TRANSACTION_CONFLICT when a removed file is no longer live; BAD_DATA for damaged metadata;
                FILESYSTEM_ERROR when metadata cannot be written.
        """
        return _Producer(self.snapshots, self.newest).run(change)

    def _snapshot(self, change: Change) -> SnapshotChange:
        if change.rewrite is not None:
            return self._rewritten(change)
        state, summary = self.newest, txn_summary(self.newest, change.txn)
        if change.insert is None:
            return self._truncated(change, summary)
        if change.operation == CommitOperation.REPLACE:
            return self._replaced(change)
        added = named_now(change.files, change.insert.definition, state.loaded)
        if change.merge is None:
            order = None
            if state.definition.stamped:
                order = order_with(change.insert, order_of(state.metadata), state.version, self.live)
            return SnapshotChange(CommitOperation.APPEND, added, summary=summary, order=order)
        first = stamps_missing(change.insert, state.definition)  # the first order to remember
        order = RowOrder() if first else None
        merged = SnapshotChange(CommitOperation.MERGE, added, change.removed, summary, order=order)
        after = definition_after(change.merge, state.definition)
        if after == state.definition:
            return merged
        updates = definition_updates(state.metadata, state.definition, after)
        return replace(merged, updates=updates, requirements=same_schema(state.metadata))

    def _truncated(self, change: Change, summary: Mapping[str, str]) -> SnapshotChange:
        metadata, store = self.newest.metadata, ObjectStore(self.table.location)
        name, updates = put_index(FileIndex(), store, metadata) if self.sidecar() else (None, ())
        summary = {**({INDEX: name} if name else {}), **summary}
        order = folded_order(metadata, self.newest.version)
        return SnapshotChange(CommitOperation.TRUNCATE, (), change.removed, summary, updates, order=order)

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
            operation=CommitOperation.REPLACE,
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
            return SnapshotChange(CommitOperation.COMPACT, added, change.removed)
        index = open_index(store, carried_facts(metadata).get(INDEX))
        sidecar = change.sidecar if change.replace_sidecar else index.sidecar
        name, updates = put_index(index.rewritten(store, change.removed, change.rows, sidecar), store, metadata)
        return SnapshotChange(
            change.operation,
            added,
            change.removed,
            {INDEX: name},
            (*updates, *history_updates(metadata, self.newest.definition)),
            rewrites=True,
            order=folded_order(metadata, change.table.version or 0) if change.replace_sidecar else None,
            deletes=change.deletes,
        )

    def redefine(self, definition: TableDefinition) -> int:
        state = self.newest
        check_names(state.definition, definition, state.loaded.specs().values())
        updates = definition_updates(state.metadata, state.definition, definition)
        requirements = same_schema(state.metadata)
        return self._put(SnapshotChange(CommitOperation.ALTER, updates=updates, requirements=requirements))

    def at(self, version: int | None) -> State:
        return self.newest.at(replace(self.table, version=version))

    def files(self, version: State) -> Collection[DataFile]:
        files, sidecar = self.snapshots.files(self.table, version)
        return *files, *sidecar

    def restore(self, then: State, definition: TableDefinition) -> int | None:
        check_names(self.newest.definition, definition, self.newest.loaded.specs().values())
        state, store = self.newest, ObjectStore(self.table.location)
        metadata, now = state.metadata, carried_facts(state.metadata)
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
            CommitOperation.RESTORE,
            summary={} if index is None else {INDEX: index},
            updates=updates,
            requirements=same_schema(metadata),
            order=order_of(metadata, then.snapshot) if ORDER in now else None,
            restored=then.snapshot,
        )
        return self._put(change)

    def forget(self, oldest: int, older_than_ms: int) -> int | None:
        return self.newest.version if expire(self.newest.loaded, older_than_ms) else None

    def after(self, change: Change, version: int) -> None:
        if change.deletes:
            warn_of_views(self.table, version, before=self.live(), deletes=change.deletes)


MERGE_AT: Final = 16
"""How many manifests of one order of magnitude are merged: so a read after n commits opens O(log n) manifests."""


@dataclass(frozen=True)
class SnapshotChange:
    """The changes from one snapshot to the next.

    Attributes:
        operation: what it does to the table.
        added: new files; those with a commit number keep it as their sequence number (K6).
        removed: absolute paths of live files that are replaced.
        summary: entries of the snapshot summary, in addition to those carried forward.
        updates: further changes of the table's metadata in the same commit.
        rewrites: True for a compaction: the same rows in other files.
        order: the order of rows to remember, where the commit changes it.
        deletes: rows deleted by position, of files that stay (R1).
        requirements: conditions that the table has to meet at the commit.
        layout: schema and partition spec of the new files, if the commit changes the spec.
        restored: the earlier snapshot whose files are the table's again (L11); None for any other change.
    """

    operation: CommitOperation
    added: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    summary: Mapping[str, str] = field(default_factory=dict)
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    rewrites: bool = False
    order: RowOrder | None = None
    deletes: Sequence[DeletesFragment] = ()
    restored: Snapshot | None = None
    layout: tuple[Schema, PartitionSpec] | None = None


class _Producer:
    """A producer of one snapshot. It removes the files that it has written if another commit was first."""

    def __init__(self, snapshots: Snapshots, state: State) -> None:
        self.snapshots = snapshots
        self.table = state.loaded
        self.metadata = state.metadata
        self.parent = state.snapshot
        self.snapshot_id = self.metadata.new_snapshot_id()
        self.sequence = self.metadata.next_sequence_number()
        self.written = NewManifests(self.table, self.snapshot_id, snapshots.entries)
        self.summary = SnapshotSummaryCollector()
        self.restored = frozenset[str]()  # paths of files that a restore brings back

    def run(self, change: SnapshotChange) -> int:
        try:
            snapshot = self._snapshot(change)
            restoring = self._restoring(change)
        except TrinityError:
            self.written.discard()
            raise
        try:
            recorded = on_record(self.metadata, self.sequence, self._own_summary(change), change.updates)
            appends = change.operation == CommitOperation.APPEND and not change.updates
            expired = expiry_due(self.metadata) if appends and AGE in self.metadata.properties else ()
            updates = (*change.updates, *recorded, *expired, *restoring, *self._append(snapshot))
            commit_updates(
                self.table,
                updates,
                change.requirements,
                lambda now: now.snapshot_by_id(snapshot.snapshot_id) is not None,
            )
        except CommitRaced:  # after any other error the commit may stand, so its files stay
            self.written.discard()
            raise
        return version_of(snapshot)

    def _restoring(self, change: SnapshotChange) -> tuple[TableUpdate, ...]:
        if (then := change.restored) is None:
            return ()
        return *restored_is_there(then), *kept_removals(self.table, then, self.restored)

    def _append(self, snapshot: Snapshot) -> tuple[TableUpdate, ...]:
        return AddSnapshotUpdate(snapshot=snapshot), set_ref(MAIN_BRANCH, SnapshotRefType.BRANCH, snapshot)

    def _snapshot(self, change: SnapshotChange) -> Snapshot:
        manifests = self.snapshots.manifest_list(self.table, self.parent)
        check_own_writable(self.table, manifests)
        if change.restored is not None:
            manifests = self._restored_manifests(manifests, change.restored)
        if change.removed or change.deletes:
            manifests = self._with_positions(manifests, change)
        if change.removed:
            manifests = self._without_deletes(self._without(manifests, change))
        if change.added:
            schema, spec = change.layout or (self.table.schema(), self.metadata.spec())
            added = self._added(change.added, schema, spec)
            manifests = [self.written.manifest(added, spec, schema=schema), *manifests]
        location, listed = self.written.manifest_list(self._merged_manifests(manifests), self.parent, self.sequence)
        self.snapshots.remember(location, listed)
        return Snapshot.model_validate(
            {
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": self.parent.snapshot_id if self.parent else None,
                "sequence-number": self.sequence,
                "timestamp-ms": next_timestamp_ms(self.parent.timestamp_ms if self.parent else 0),
                "manifest-list": location,
                "summary": self._summary(change),
                "schema-id": _schema_id(change, self.metadata.current_schema_id),
            }
        )

    def _summary(self, change: SnapshotChange) -> Summary:
        # PyIceberg computes totals for an overwrite only; those of a compaction are computed in the same way
        counted = Operation.OVERWRITE if change.rewrites else _operation(change)
        summary = Summary(operation=counted, **self.summary.build(), **self._own_summary(change))
        found = update_snapshot_summaries(summary, self.parent.summary if self.parent else None)
        return Summary(operation=_operation(change), **found.additional_properties)

    def _own_summary(self, change: SnapshotChange) -> dict[str, str]:
        own = {OPERATION: change.operation.value, **carried_facts(self.metadata), **change.summary}
        if change.order or ORDER in own:
            order = change.order or order_of(self.metadata)
            own[ORDER] = replace(order, through=self.sequence).to_json()
        return own

    def _added(self, files: Iterable[DataFile], schema: Schema, spec: PartitionSpec) -> list[ManifestEntry]:
        entries, paths = [], column_paths(schema)
        for file in files:
            found = iceberg_file(file, schema, paths, spec)
            self.summary.add_file(found, schema, spec)
            entries.append(self._new_entry(found, file.commit))
        return entries

    def _new_entry(self, file: IcebergFile, sequence: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self.snapshot_id,
            sequence_number=sequence,
            data_file=file,
        )

    def _spec(self, manifest: ManifestFile) -> PartitionSpec:
        return self.metadata.specs()[manifest.partition_spec_id]

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        return self.snapshots.entries.of(self.table.io, manifest)

    def _restored_manifests(self, manifests: list[ManifestFile], then: Snapshot) -> list[ManifestFile]:
        """Return manifests with only the files of an earlier snapshot; they keep their sequence numbers from there."""
        back = {
            entry.data_file.file_path: (manifest, entry)
            for manifest in self.snapshots.manifest_list(self.table, then)
            for entry in self._entries(manifest)
        }
        kept, wanted = [], frozenset(back)
        for manifest in manifests:
            entries = self._entries(manifest)
            gone = {e.data_file.file_path for e in entries} - wanted
            for entry in entries:
                back.pop(entry.data_file.file_path, None)
            spec, removed = self._spec(manifest), {local_path(path) for path in gone}
            marked = self._marked(entries, removed, spec) if gone else []
            kept.append(self.written.manifest(marked, spec, _writer(manifest)) if gone else manifest)
        self.restored = frozenset(back)
        groups: dict[str, tuple[ManifestFile, list[ManifestEntry]]] = {}
        for manifest, entry in back.values():
            groups.setdefault(manifest.manifest_path, (manifest, []))[1].append(self._restored_entry(entry, manifest))
        return [*(self.written.manifest(e, self._spec(m), _writer(m)) for m, e in groups.values()), *kept]

    def _restored_entry(self, entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
        """Return the entry of a restored file. The entry of another engine's file keeps that engine's snapshot id."""
        file, spec = entry.data_file, self._spec(manifest)
        file.spec_id = spec.spec_id
        self.summary.add_file(file, schema_with(self.metadata, spec), spec)
        is_own = is_sink_file(file.file_path.rpartition("/")[2])
        return self._new_entry(file, entry.sequence_number) if is_own else existing(entry)

    def _without(self, manifests: list[ManifestFile], change: SnapshotChange) -> list[ManifestFile]:
        """Return the manifests; those with removed files are written again, with these marked as deleted."""
        missing = set(change.removed)
        kept = []
        for manifest in manifests:
            entries = self._entries(manifest) if manifest.content == ManifestContent.DATA else []
            gone = {local_path(e.data_file.file_path) for e in entries} & change.removed
            missing -= gone
            spec = self._spec(manifest)
            kept.append(self.written.manifest(self._marked(entries, gone, spec), spec) if gone else manifest)
        if missing:
            raise _replaced(self.table, min(missing))
        return kept

    def _with_positions(self, manifests: list[ManifestFile], change: SnapshotChange) -> list[ManifestFile]:
        """Return the manifests with the change's delete files, without the older delete files that these replace."""
        stale = {*change.removed, *(made.of for made in change.deletes)}
        kept = []
        for manifest in manifests:
            known = None if manifest.content == ManifestContent.DATA else position_deletes(self.table, manifest)
            gone = {local_path(e.data_file.file_path) for e in known or () if target_path(e) in stale}
            spec = self._spec(manifest)
            marked = self._marked(known, gone, spec) if known and gone else None
            kept.append(self.written.manifest(marked, spec, DeletesWriter) if marked else manifest)
        return [*self._new_positions(manifests, change), *kept]

    def _new_positions(self, manifests: list[ManifestFile], change: SnapshotChange) -> list[ManifestFile]:
        wanted = {made.of: made for made in change.deletes}
        found = []
        for manifest in manifests if wanted else ():
            if manifest.content != ManifestContent.DATA:
                continue
            spec, entries = self._spec(manifest), []
            for entry in self._entries(manifest):
                if (made := wanted.pop(local_path(entry.data_file.file_path), None)) is not None:
                    file = delete_file(made, entry.data_file)
                    file.spec_id = spec.spec_id
                    self.summary.add_file(file, schema_with(self.metadata, spec), spec)
                    entries.append(self._new_entry(file, None))
            if entries:
                found.append(self.written.manifest(entries, spec, DeletesWriter))
        if wanted:
            raise _replaced(self.table, min(wanted))
        return found

    def _without_deletes(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Remove delete files once no data file is left for which they were written."""
        # manifests that mark files as deleted stay, as readers of changes look there
        data = [m for m in manifests if m.content == ManifestContent.DATA]
        if live_manifests(data):
            return manifests
        for manifest in manifests:
            if manifest.content != ManifestContent.DATA:
                spec = self._spec(manifest)
                for entry in self._entries(manifest):
                    self.summary.remove_file(entry.data_file, schema_with(self.metadata, spec), spec)
        return data

    def _marked(self, entries: Iterable[ManifestEntry], gone: set[str], spec: PartitionSpec) -> list[ManifestEntry]:
        marked = []
        for entry in entries:
            is_gone = local_path(entry.data_file.file_path) in gone
            if is_gone:
                self.summary.remove_file(entry.data_file, schema_with(self.metadata, spec), spec)
            marked.append(deleted(entry, self.snapshot_id) if is_gone else existing(entry))
        return marked

    def _merged_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Merge manifests of one order of magnitude once there are enough of them."""
        if not property_as_bool(self.metadata.properties, "commit.manifest-merge.enabled", True):
            return manifests
        groups: dict[int, list[ManifestFile]] = defaultdict(list)
        for manifest in manifests:
            own_spec = manifest.partition_spec_id == self.metadata.default_spec_id
            # files of this commit have no sequence number until it is made
            if own_spec and manifest.content == ManifestContent.DATA and manifest.added_snapshot_id != self.snapshot_id:
                groups[_magnitude(manifest)].append(manifest)
        for group in groups.values():
            if len(group) >= MERGE_AT:
                entries = [e for m in group for e in self._entries(m)]
                merged = self.written.manifest(map(existing, entries))
                return [*(m for m in manifests if m not in group), merged]
        return manifests


def _replaced(table: Table, path: str) -> TrinityError:
    return TrinityError(
        "TRANSACTION_CONFLICT",
        f"'{path}' was to be replaced and is no longer part of table {'.'.join(table.name())}: another writer replaced "
        "it first. Run the statement again.",
    )


def _writer(manifest: ManifestFile) -> type[DeletesWriter] | None:
    """Return the class that writes a manifest with such content; None for a manifest of data files."""
    return None if manifest.content == ManifestContent.DATA else DeletesWriter


def _operation(change: SnapshotChange) -> Operation:
    """Return Iceberg's operation for a commit: readers of changes skip a replace, which changes no rows."""
    if change.rewrites:
        return Operation.REPLACE
    if change.restored is not None:
        return Operation.OVERWRITE
    if not change.removed:
        return Operation.APPEND
    return Operation.OVERWRITE if change.added else Operation.DELETE


def _schema_id(change: SnapshotChange, current: int) -> int:
    """Return the id of the schema with which the commit's files are read: the one that it sets, else ``current``."""
    added = [u.schema_.schema_id for u in change.updates if u.action == "add-schema"]
    put = [u.schema_id for u in change.updates if u.action == "set-current-schema" and u.schema_id >= 0]
    return (added or put or [current])[-1]


def _magnitude(manifest: ManifestFile) -> int:
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return int(math.log(max(files, 1), MERGE_AT))
