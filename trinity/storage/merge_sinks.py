"""The shared merge sinks: copy-on-write for plain tables, appended row versions for keyed tables (S1-S6)."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.errors import TrinityError
from trinity.limits import Limit
from trinity.merge.carried import carried_columns, carried_marks
from trinity.merge.kernels.order import order_codes
from trinity.merge.row_kinds import tombstone_marks
from trinity.merge.spec import merge_spec
from trinity.spi import (
    CARRIED,
    MergeSink,
    MergeTableHandle,
    Operation,
    PageSink,
    PageSinkProvider,
    RowChangeParadigm,
    SinkId,
    removal,
)
from trinity.storage.location import Location
from trinity.storage.parquet_files import parquet_footer, read_ahead, reporting_unreadable_file, stored_row_groups
from trinity.storage.parquet_sink import ROW_GROUP_BYTES
from trinity.storage.replaced_columns import with_replaced_columns
from trinity.storage.store import ObjectStore

FILE_BYTES: Final = Limit(128 * 1024 * 1024)
"""Bytes of rewritten files that together make one new file; a larger rewritten file makes several."""

_ALLOWED: Final = {
    RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW: frozenset(
        {Operation.INSERT, Operation.DELETE, Operation.UPDATE_INSERT, Operation.UPDATE_DELETE}
    ),
    RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS: frozenset({Operation.INSERT, Operation.DELETE, Operation.UPDATE}),
}
_IN_PLACE: Final = "in place"
_DELETES: Final = (Operation.DELETE, Operation.UPDATE_DELETE)


def merge_sink(provider: PageSinkProvider, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
    """Return the sink that stores the changes of a table in Parquet files."""
    if not merge.insert.definition.keyed:
        return _CopyOnWriteMergeSink(provider, merge, sink)
    by_column = merge_spec(merge.insert.definition).by_column
    return (_ColumnMergeSink if by_column else _VersionMergeSink)(provider, merge, sink)


class _ParquetMergeSink(MergeSink):
    """Base class of the merge sinks: it checks and splits pages, and gives new rows to a page sink."""

    def __init__(self, provider: PageSinkProvider, merge: MergeTableHandle, sink: SinkId) -> None:
        self._provider = provider
        self._merge = merge
        self._sink = sink
        self._storage = merge.insert.target.storage
        self._rows = self._new_sink()

    def store_merged_rows(self, page: pa.RecordBatch) -> None:
        """Take a merge page (S1). Raises INVALID_ARGUMENTS for an operation that the paradigm does not know (S2)."""
        if page.num_rows == 0:
            return
        width = len(self._storage)
        if page.num_columns != width + 3:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"A merge page of '{self._merge.table.full_name}' has {page.num_columns} columns; it takes the "
                f"{width} of the table, then operation, case number and row id (S1).",
            )
        operation = page.column(width)
        self._check(operation)
        deleted = pc.is_in(operation, value_set=pa.array(_DELETES, pa.int8()))
        changed = page.filter(deleted)
        if changed.num_rows:
            self._delete(changed.column(width + 2))
        inserted = page.filter(pc.invert(deleted))
        if inserted.num_rows:
            self._insert(inserted)

    def _check(self, operation: pa.Array) -> None:
        allowed = _ALLOWED[self._merge.paradigm]
        for found in operation.unique().to_pylist():
            if found not in allowed:
                raise TrinityError(
                    "INVALID_ARGUMENTS",
                    f"Invalid merge operation {found} for table '{self._merge.table.full_name}': a sink of paradigm "
                    f"{self._merge.paradigm.value} takes {', '.join(str(int(o)) for o in sorted(allowed))} (S2).",
                )

    def abort(self) -> None:
        """Remove the files of new rows."""
        self._rows.abort()

    def _new_sink(self) -> PageSink:
        return self._provider.create_page_sink(self._merge.insert.target, self._sink)

    def _insert(self, page: pa.RecordBatch) -> None:
        self._rows.append_page(self._data(page.columns))

    def _data(self, columns: list[pa.Array]) -> pa.RecordBatch:
        """Return the data columns of a merge page's columns."""
        return pa.RecordBatch.from_arrays(columns[: len(self._storage)], schema=self._storage)

    @abstractmethod
    def _delete(self, row_ids: pa.StructArray) -> None:
        """Take the row ids of deleted rows."""


@dataclass
class _Updates:
    """The updated rows of a file.

    Attributes:
        positions: their positions in the file, an array for each page.
        pages: their new versions: all columns, or only those that updates change.
    """

    positions: list[np.ndarray] = field(default_factory=list)
    pages: list[pa.RecordBatch] = field(default_factory=list)

    def ordered(self) -> tuple[np.ndarray, pa.Table]:
        """Return the positions, ascending, and a row for each."""
        positions = np.concatenate(self.positions)
        order = np.argsort(positions, kind="stable")
        return positions[order], pa.Table.from_batches(self.pages).take(as_arrow(order))


@dataclass(frozen=True)
class _Replaced:
    """New values for some rows of a file's columns; the positions of the rows ascend."""

    positions: np.ndarray
    values: pa.Table

    def updated_rows(self, first: int, stored: pa.Table) -> pa.Table:
        """Return stored rows of the file, of which the first is at a position, with the new values in their places."""
        low, high = np.searchsorted(self.positions, (first, first + len(stored)))
        if low == high:
            return stored
        taken = np.arange(len(stored))
        taken[self.positions[low:high] - first] = len(stored) + np.arange(high - low)
        both = pa.concat_tables([stored, self.values.slice(low, high - low).cast(stored.schema)])
        return both.take(as_arrow(taken))

    def updated_page(self, first: int, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return a page of the file, whose first row is at a position, with the new values of these columns."""
        names = self.values.schema.names
        new = self.updated_rows(first, pa.Table.from_batches([page.select(names)])).combine_chunks()
        for name, column in zip(names, new.columns, strict=True):
            page = page.set_column(page.schema.get_field_index(name), page.schema.field(name), column.chunk(0))
        return page


class _CopyOnWriteMergeSink(_ParquetMergeSink):
    """A sink of plain tables. It rewrites each file that loses rows, without them, so every reader sees the result.

    The row id is STRUCT(``file`` STRING, ``pos`` BIGINT). The update layout is the file, so all deletes of a file reach
    one sink. An updated row stays in its place if both halves of the update reach this sink. If a file has only such
    changes, only the columns that updates change are encoded anew.
    """

    def __init__(self, provider: PageSinkProvider, merge: MergeTableHandle, sink: SinkId) -> None:
        super().__init__(provider, merge, sink)
        definition, changed = merge.insert.definition, merge.updated_columns
        self._updated_columns = [n for n, column in enumerate(definition.columns) if column.name in changed]
        self._held = self._updated_columns if merge.in_place else range(len(self._storage))
        self._held_bytes = 0
        self._positions: defaultdict[str, list[np.ndarray]] = defaultdict(list)
        self._updates: defaultdict[str, _Updates] = defaultdict(_Updates)
        self._copies: list[str] = []
        self._others: list[PageSink] = []

    def finish(self) -> list[bytes]:
        """Rewrite the touched files and return the fragments of new and removed files."""
        fragments: list[bytes] = []
        size, store = 0, ObjectStore(self._merge.table.location)
        for file in sorted(self._positions):
            path = str(Location.of_uri(file))
            before = self._merge.deletes.get(path)
            gone = np.concatenate([*self._positions[file], *([as_numpy(before.positions())] if before else [])])
            about = store.stat(path)
            here = about.size if about else 0
            replaced, gone = self._in_place(file, gone)
            # a large file, or the only one, is not put together with other rewritten files
            large = here >= FILE_BYTES.value // 16 or len(self._positions) == 1
            alone = replaced is not None and not len(gone) and large
            copied = self._copy_with_columns(path, replaced) if replaced is not None and alone else None
            if copied is not None:
                fragments += [copied, removal(path)]
                continue
            fragments += self._rewrite(path, gone, replaced, -(-here // FILE_BYTES.value))
            fragments.append(removal(path))
            size += here
            if size >= FILE_BYTES.value:  # small files become one of a good size
                fragments += self._rows.finish()
                self._rows, size = self._new_sink(), 0
        self._append_updates()
        return [*self._rows.finish(), *fragments]

    def abort(self) -> None:
        """Remove the new files."""
        for sink in self._others:
            sink.abort()
        ObjectStore(self._merge.insert.target.folder).delete(self._copies)
        super().abort()

    # -- updates ------------------------------------------------------------------------------------------

    def _insert(self, page: pa.RecordBatch) -> None:
        width, cases = len(self._storage), pa.array(list(self._merge.update_case_columns), pa.int32())
        updates = pc.and_(
            pc.equal(page.column(width), pa.scalar(Operation.UPDATE_INSERT, pa.int8())),
            pc.is_in(page.column(width + 1), value_set=cases),
        )
        # in a partitioned table the updated row may belong to another partition
        if self._merge.insert.target.partition_by or not pc.any(updates, min_count=0).as_py():
            super()._insert(page)
            return
        super()._insert(page.filter(pc.invert(updates)))
        self._hold(page.filter(updates))

    def _hold(self, page: pa.RecordBatch) -> None:
        data = self._data(page.columns).select(self._held)
        for file, positions, mine in _by_file(page.column(len(self._storage) + 2)):
            self._updates[file].positions.append(positions)
            self._updates[file].pages.append(data.filter(mine))
        self._held_bytes += data.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES.value and not self._merge.in_place:
            self._append_updates()

    def _append_updates(self) -> None:
        """Append the held updates as new rows: they did not become updates in place."""
        for updates in self._updates.values():
            for page in updates.pages:
                self._rows.append_page(page)
        self._updates.clear()
        self._held_bytes = 0

    def _in_place(self, file: str, gone: np.ndarray) -> tuple[_Replaced | None, np.ndarray]:
        """Return a file's updates in place, and the positions of its other deleted rows.

        The updates are None unless both halves of each have reached this sink.
        """
        gone = np.unique(gone)
        if file not in self._updates:
            return None, gone
        positions, rows = self._updates[file].ordered()
        if not np.isin(positions, gone).all():
            return None, gone
        del self._updates[file]
        columns = rows.select([self._storage.field(n).name for n in self._updated_columns])
        return _Replaced(positions, columns), np.setdiff1d(gone, positions, assume_unique=True)

    def _copy_with_columns(self, path: str, replaced: _Replaced) -> bytes | None:
        """Write a file with replaced columns and the bytes of all others, and return its fragment.

        None if all columns have to be encoded anew.
        """
        kinds, target = pa.schema([self._storage.field(n) for n in self._updated_columns]), self._merge.insert.target
        found = with_replaced_columns(target, self._sink, path, kinds, replaced.updated_rows, pa.cpu_count())
        if found is None:
            return None
        self._copies.append(found.path)
        return found.to_fragment()

    # -- rewrites -----------------------------------------------------------------------------------------

    def _rewrite(self, path: str, deleted: np.ndarray, replaced: _Replaced | None, files: int) -> list[bytes]:
        """Write the remaining rows of a file with the sink of new rows; parts of a large file get sinks of their own.

        Return the fragments of these sinks.
        """
        with reporting_unreadable_file(path):
            groups = np.arange(parquet_footer(path).num_row_groups)
        parts = [part.tolist() for part in np.array_split(groups, max(1, min(files, len(groups))))]
        self._others = [self._new_sink() for _ in parts[1:]]
        with ThreadPoolExecutor(len(parts)) as pool:
            copies = partial(self._copy, path, deleted, replaced)
            deque(pool.map(copies, [self._rows, *self._others], parts), 0)
        return [fragment for sink in self._others for fragment in sink.finish()]

    def _copy(
        self, path: str, deleted: np.ndarray, replaced: _Replaced | None, sink: PageSink, groups: Sequence[int]
    ) -> None:
        """Write those rows of some row groups that are not deleted."""
        for positions, page in read_ahead(self._stored(path, groups)):
            assert isinstance(positions, slice)
            if replaced is not None:
                page = replaced.updated_page(positions.start, page)
            low, high = np.searchsorted(deleted, (positions.start, positions.stop))
            stays = np.ones(page.num_rows, dtype=bool)
            stays[deleted[low:high] - positions.start] = False
            sink.append_page(page.filter(as_arrow(stays)))

    def _stored(self, path: str, groups: Sequence[int]) -> Iterator[tuple[np.ndarray | slice, pa.RecordBatch]]:
        with reporting_unreadable_file(path):
            yield from stored_row_groups(path, self._storage, lambda _: groups)

    def _delete(self, row_ids: pa.StructArray) -> None:
        for file, positions, _ in _by_file(row_ids):
            self._positions[file].append(positions)


def _by_file(row_ids: pa.StructArray) -> Iterator[tuple[str, np.ndarray, pa.BooleanArray]]:
    """Yield for each file of the row ids: its name, the rows' positions in it, and a mask of its row ids."""
    files, positions = row_ids.field("file"), row_ids.field("pos")
    for file in files.unique().to_pylist():
        mine = pc.equal(files, file)
        yield file, as_numpy(positions.filter(mine)), mine


class _VersionMergeSink(_ParquetMergeSink):
    """A sink of keyed tables. It appends new row versions and tombstones; nothing is read or rewritten.

    The row id has key and ordering columns, and the other columns of deleted rows. All changes of a key reach one sink.
    For a key that is both deleted and inserted the sink writes only the insert (M7), so that an update that keeps the
    key writes no tombstone. If the inserted row would lose to the deleted one, the tombstone is written too; otherwise
    the deleted row would reappear.
    """

    _insert_replaces = True
    """True if a new row replaces the key's old row as a whole, so that no tombstone is needed before it."""

    def __init__(self, provider: PageSinkProvider, merge: MergeTableHandle, sink: SinkId) -> None:
        super().__init__(provider, merge, sink)
        self._definition = merge.insert.definition
        self._spec = merge_spec(self._definition)
        # a format may store columns under other names, so keys go by position
        self._key = self._indexes(self._spec.key)
        self._ordering = self._indexes(name for name in self._spec.ordering if name not in self._spec.key)
        self._inserted: list[pa.Table] = []
        self._deleted: list[pa.StructArray] = []

    def _indexes(self, names: Iterable[str]) -> list[int]:
        return [self._definition.place(name) for name in names]

    def finish(self) -> list[bytes]:
        """Write the tombstones and return the fragments."""
        if self._deleted:
            self._rows.append_page(self._tombstones())
        return self._rows.finish()

    def _insert(self, page: pa.RecordBatch) -> None:
        super()._insert(page)
        rows = self._identities([page.column(i) for i in (*self._key, *self._ordering)])
        self._inserted.append(rows.append_column(_IN_PLACE, self._in_place(page)))

    def _in_place(self, page: pa.RecordBatch) -> pa.Array:
        """Return a mask of the updates that keep their key. If such an update is late, the row stays as it was (M9)."""
        operation, row_ids = page.column(len(self._storage)), page.column(len(self._storage) + 2)
        same = as_numpy(pc.equal(operation, pa.scalar(int(Operation.UPDATE_INSERT), operation.type)))
        for column in self._key:
            new, old = _codes(
                pa.chunked_array([page.column(column)]), pa.chunked_array([self._old_column(row_ids, column)])
            )
            same = same & (new == old)
        return as_arrow(same)

    def _delete(self, row_ids: pa.StructArray) -> None:
        self._deleted.append(row_ids)

    def _identities(self, columns: list[pa.Array]) -> pa.Table:
        """Return key and ordering columns, under their numbers."""
        # -0.0 equals 0.0 (K2): another writer's file may have one of them and the new row the other
        alike = [pc.add(c, pa.scalar(0.0, c.type)) if pa.types.is_floating(c.type) else c for c in columns]
        return pa.table(alike, names=[str(i) for i in range(len(alike))])

    def _loses_to_new_row(self, row_ids: pa.StructArray) -> np.ndarray:
        """Return a mask of the deleted rows whose key has a new row that wins against the deleted one (U1, K4)."""
        old = self._identities([self._old_column(row_ids, i) for i in (*self._key, *self._ordering)])
        new = pa.concat_tables(self._inserted)
        names, ordering = old.column_names[: len(self._key)], old.column_names[len(self._key) :]
        positions = as_arrow(np.arange(len(old)))
        pairs = old.append_column("row", positions).join(new, names, join_type="inner", right_suffix=" new")
        late = np.zeros(len(pairs), bool)
        for name in reversed(ordering):
            mine, its = _codes(pairs.column(name), pairs.column(f"{name} new"), descending=self._spec.descending)
            late = (mine > its) | ((mine == its) & late)
        late &= ~as_numpy(pairs.column(_IN_PLACE))
        replaced = np.zeros(len(old), bool)
        replaced[as_numpy(pairs.column("row"))[~late]] = True
        return replaced

    def _tombstones(self) -> pa.RecordBatch:
        row_ids = pa.concat_arrays(self._deleted)
        if self._inserted and self._insert_replaces:
            row_ids = row_ids.filter(as_arrow(~self._loses_to_new_row(row_ids)))
        columns = [self._old_column(row_ids, i) for i in range(len(self._storage))]
        marks = tombstone_marks(self._spec, self._definition) if len(row_ids) else {}  # refused without a mark (U6)
        for name, value in marks.items():
            column = self._definition.place(name)
            kind = self._definition.columns[column].to_arrow().type
            columns[column] = pa.repeat(pa.scalar(value, kind), len(row_ids)).cast(self._storage[column].type)
        return pa.RecordBatch.from_arrays(columns, schema=self._storage)

    def _old_column(self, row_ids: pa.StructArray, column: int) -> pa.Array:
        """Return a column of the row ids in storage form; NULL if they lack it."""
        name, stored = self._definition.columns[column].name, self._storage[column].type
        index = row_ids.type.get_field_index(name)
        if index < 0:
            return pa.nulls(len(row_ids), stored)
        return pc.struct_field(row_ids, [index]).cast(stored)


class _ColumnMergeSink(_VersionMergeSink):
    """A sink of tables that fold by column. It stores the columns that updates change, and hard deletes (M11).

    The file of hard deletes sorts before the file of new rows: if one statement deletes a key and inserts it again, the
    key starts with the new row alone.
    """

    _insert_replaces = False

    def __init__(self, provider: PageSinkProvider, merge: MergeTableHandle, sink: SinkId) -> None:
        super().__init__(provider, merge, replace(sink, order=2 * sink.order + 1))
        self._hard_deletes = provider.create_page_sink(merge.insert.target, replace(sink, order=2 * sink.order))

    def finish(self) -> list[bytes]:
        """Write the hard deletes and return the fragments."""
        if self._deleted:
            self._hard_deletes.append_page(self._tombstones())
        return [*self._hard_deletes.finish(), *self._rows.finish()]

    def abort(self) -> None:
        """Remove the files."""
        self._hard_deletes.abort()
        super().abort()

    def _insert(self, page: pa.RecordBatch) -> None:
        operation, case = page.columns[len(self._storage) : len(self._storage) + 2]
        updated = pc.equal(operation, pa.scalar(Operation.UPDATE, pa.int8()))
        new = page.filter(pc.invert(updated))
        if new.num_rows:
            super()._insert(new)
        for number in case.filter(updated).unique().to_pylist():
            of_case = page.filter(pc.and_(updated, pc.equal(case, number)))
            self._rows.append_page(self._carried_columns(of_case, self._merge.update_case_columns[number]))

    def _carried_columns(self, page: pa.RecordBatch, changed: tuple[str, ...]) -> pa.RecordBatch:
        """Return rows with NULL in all columns that they do not carry; NOT NULL ones keep a value, which is ignored."""
        carried = carried_columns(self._spec, changed)
        columns = [
            page.column(n)
            if column.name in carried or not column.nullable
            else pa.nulls(page.num_rows, self._storage[n].type)
            for n, column in enumerate(self._definition.columns)
        ]
        marks = self._definition.place(CARRIED)
        text = carried_marks(self._definition, carried)
        columns[marks] = pa.repeat(pa.scalar(text, self._storage[marks].type), page.num_rows)
        return self._data(columns)


def _codes(one: pa.ChunkedArray, other: pa.ChunkedArray, *, descending: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of numbers that compare as the values of two columns of one type do (K2, K3)."""
    both = pa.chunked_array([*one.chunks, *other.chunks], one.type).combine_chunks()
    codes = order_codes(both, descending=descending)
    return codes[: len(one)], codes[len(one) :]
