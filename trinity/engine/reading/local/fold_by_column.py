"""Reads of tables whose engine folds column by column (partial-update, aggregation), by this process.

Only keys of the log are folded, with their base rows, or with the row versions that the sidecar has of them (E3). All
other base rows are merged rows already, and are returned as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.reading.data_files import live_pages, not_deleted, read_columns
from trinity.engine.reading.file_arrival import FileArrival
from trinity.engine.reading.files import may_share_keys, tiers
from trinity.engine.reading.local.selection import ROWS_AT_ONCE, in_threads
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.row_arrival import RowArrival
from trinity.hidden import ARRIVAL
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.kernels.keys import Keys, without_null_keys
from trinity.merge.row_kinds import FoldKind, StoredKind
from trinity.spi import ROW_KIND, STAMP, DataFile
from trinity.storage.parquet_files import parquet_footer, reporting_unreadable_file, rows_in, stored_rows


def folded_rows(fold: FoldPlan, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the merged rows in no order, with some columns in storage form. Memory holds all rows of the log's keys.

    Raises:
        TrinityError: BAD_DATA naming a corrupt or missing file; NUMERIC_VALUE_OUT_OF_RANGE naming column and key (A4).
    """
    by_column = ColumnFold(fold.splits.definition, fold.spec, columns)
    storage = pa.schema([f for f in fold.splits.storage if f.name in by_column.reads])
    wanted = pa.schema([storage.field(name) for name in columns])
    base, log = tiers(fold.splits.files)
    touched = {file.path for file in may_share_keys(base, log, fold.splits.definition)}
    keys = FoldedKeys.of(fold, storage)
    earlier = list(keys.sidecar_rows)

    def split(file: DataFile, group: int | None) -> list[pa.RecordBatch]:
        if file.path not in touched:
            return list(live_pages(file, wanted, group))
        others, matching = keys.split(live_pages(file, storage, group))
        earlier.extend(map(keys.without_kept, matching))  # in any order: a key has one row in the base
        return [page.select(columns) for page in others]

    yield from in_threads(partial(split, file, group) for file in base for group in _groups(file))
    found = by_column(by_column.contributions(pa.concat_tables([*earlier, keys.log])))
    yield from found.select(columns).to_batches()


@dataclass(frozen=True)
class FoldedKeys:
    """The log of a version, in arrival order, and the keys to fold: those of the log, unless ``given`` has others."""

    fold: FoldPlan
    storage: pa.Schema
    log: pa.Table
    given: Keys | None = None

    @classmethod
    def of(cls, fold: FoldPlan, storage: pa.Schema) -> FoldedKeys:
        """Read the log, several files at a time. Raises BAD_DATA naming a file that cannot be read."""
        files, arrival = fold.splits.in_arrival_order(fold.log), RowArrival.of(fold.splits, fold.spec)
        unread = arrival is not None and STAMP not in storage.names
        stored = storage.append(fold.splits.storage.field(STAMP)) if unread else storage

        def rows_of(file: DataFile) -> pa.Table:
            rows = pa.Table.from_batches(live_pages(file, stored), stored)
            return rows if arrival is None else arrival.with_moments(rows, FileArrival.of(file))

        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            read = list(pool.map(rows_of, files))
        log = without_null_keys(pa.concat_tables(read or [storage.empty_table()]), fold.spec.key)
        if arrival is not None:
            log = arrival.in_order(log).select(storage.names)
        return cls(fold, storage, log).folded_first()

    @cached_property
    def keys(self) -> Keys:
        """The keys that are folded."""
        return Keys.of(self.log, self.fold.spec.key)[0] if self.given is None else self.given

    def split(self, pages: Iterable[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], list[pa.Table]]:
        """Split pages into (rows whose keys are not folded, rows whose keys are)."""
        others, matching = list[pa.RecordBatch](), list[pa.Table]()
        for page in pages:
            positions = as_arrow(self.keys.lookup(pa.Table.from_batches([page]))[0])
            if len(positions):
                matching.append(pa.Table.from_batches([page.take(positions)]))
                stays = np.ones(len(page), bool)
                stays[as_numpy(positions)] = False
                page = page.filter(as_arrow(stays))
            others.append(page)
        return others, matching

    @cached_property
    def sidecar_rows(self) -> Sequence[pa.Table]:
        """One table, the sidecar's row versions of the folded keys, in arrival order; none without a sidecar."""
        placed = self.storage.append(pa.field(ARRIVAL, pa.int64()))
        matching = [rows_of_keys(file, placed, self.keys)[0] for file in self.fold.splits.sidecar]
        return [pa.concat_tables(matching).sort_by(ARRIVAL).select(self.storage.names)] if matching else []

    def without_kept(self, rows: pa.Table) -> pa.Table:
        """Leave out of the rows that are the fold of others those whose versions the sidecar has (E3)."""
        spec = self.fold.spec
        if not spec.history_changed:
            return rows.slice(0, 0) if spec.has_all_history else rows
        stays = np.ones(len(rows), bool)
        stays[self._kept.lookup(rows)[0]] = False
        return rows.filter(as_arrow(stays))

    @cached_property
    def _kept(self) -> Keys:
        """The folded keys of which the sidecar has added rows: it has all the versions of their base rows then."""
        fold = ColumnFold(self.fold.splits.definition, self.fold.spec)
        added = [rows.filter(as_arrow(fold.kinds(rows) == FoldKind.ADD)) for rows in self.sidecar_rows]
        return Keys.of(pa.concat_tables(added or [self.storage.empty_table()]), self.fold.spec.key)[0]

    def folded_first(self) -> FoldedKeys:
        """Put rows of the log that are the fold of others before all other rows, without those of :meth:`without_kept`.

        A compaction leaves such a row in the log for a value out of range (A4); another engine may also rewrite it
        there.
        """
        if ROW_KIND not in self.log.column_names:
            return self
        kinds = self.log.column(ROW_KIND)
        is_folded = pc.fill_null(pc.equal(kinds, pa.scalar(StoredKind.FOLDED, kinds.type)), False)
        if not pc.any(is_folded).as_py():
            return self
        # the keys of rows that are left out are folded, too
        first, others = self.without_kept(self.log.filter(is_folded)), self.log.filter(pc.invert(is_folded))
        return replace(self, log=pa.concat_tables([first, others]), given=self.keys)


def _groups(file: DataFile) -> Iterable[int | None]:
    """Return the parts of a file that are held at once: row groups of a large one; None for a whole one."""
    if rows_in(file) <= ROWS_AT_ONCE.value:
        return [None]
    with reporting_unreadable_file(file.path):
        return range(parquet_footer(file.path).num_row_groups)


def rows_of_keys(file: DataFile, storage: pa.Schema, keys: Keys) -> tuple[pa.Table, np.ndarray]:
    """Return the rows of a file that have some keys and are not deleted by position, and their positions, ascending.

    Raises:
        TrinityError: BAD_DATA naming the file, where it cannot be read.
    """
    positions = not_deleted(keys.lookup(read_columns(file.path, storage, keys.key))[0], file.deletes)
    with reporting_unreadable_file(file.path):
        return pa.Table.from_batches(stored_rows(file.path, storage, positions), storage), positions
