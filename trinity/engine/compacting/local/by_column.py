"""Compaction of tables whose engine folds column by column, in this process: only keys of the log are folded.

All other rows of base and sidecar are copied, page by page. In base files that stay, the rows of the folded keys are
deleted by position.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.compacting.bucket_merge import in_order
from trinity.engine.compacting.local.parts import PartLayout, Parts
from trinity.engine.compacting.rewrite_task import RewriteTask
from trinity.engine.reading.data_files import live_pages
from trinity.engine.reading.files import may_share_keys
from trinity.engine.reading.local.fold_by_column import FoldedKeys, rows_of_keys
from trinity.engine.reading.plan import FoldPlan
from trinity.hidden import ARRIVAL, BUCKET, DELETED, LEFT, SINCE
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.kernels.keys import Keys
from trinity.merge.row_kinds import StoredKind
from trinity.merge.sidecar import Retention
from trinity.spi import CARRIED, ROW_KIND


class ColumnRewrite:
    """A compaction of sidecar and log with the whole base, or, if the base ``stays``, with its rows of their keys."""

    def __init__(self, fold: FoldPlan, count: int, retention: Retention, *, stays: bool = False) -> None:
        self.fold, self.spec, self.storage = fold, fold.spec, fold.splits.storage
        self.layout = PartLayout(self.spec.key, count)
        self.retention = retention
        optional = [f.with_nullable(True) for f in self.storage]
        facts = pa.schema([(SINCE, pa.int64()), (ARRIVAL, pa.int64()), (DELETED, pa.bool_()), (LEFT, pa.bool_())])
        self.schema = pa.schema([*optional, *facts])
        self.in_log = False
        newer = [*fold.log, *fold.splits.sidecar]
        self.touched = may_share_keys(fold.base, newer, fold.splits.definition) if stays else []
        self.replaced = [*([] if stays else fold.base), *fold.runs]
        self.lost = dict[str, list[pa.Array]]()
        """Path of a base file that stays -> positions of rows that were folded."""

    @contextmanager
    def lay_out(self) -> Iterator[Parts]:
        """Yield the rows of the new base, of the new sidecar, and those that stay in the log, by their parts.

        Raises:
            TrinityError: BAD_DATA naming a file that cannot be read.
        """
        with Parts(self.schema) as parts:
            self._add_all(parts)
            yield parts

    def _add_all(self, parts: Parts) -> None:
        read = self.storage.append(pa.field(SINCE, pa.int64()))
        keys = self._keys(FoldedKeys.of(self.fold, read))
        earlier = list(keys.sidecar_rows)
        placed = read.append(pa.field(ARRIVAL, pa.int64()))
        for file in self.fold.splits.sidecar:
            for page in keys.split(live_pages(file, placed))[0]:
                self._add(parts, pa.Table.from_batches([page]), deleted=True)
        for file in self.touched:
            rows, positions = rows_of_keys(file, read, keys.keys)
            earlier.append(keys.without_kept(rows))
            self.lost |= {file.path: [as_arrow(positions)]} if len(positions) else {}
        for file in self.replaced:
            for page in live_pages(file, read):
                [others], matching = keys.split([page])
                earlier += map(keys.without_kept, matching)
                self._add(parts, self._as_folded(pa.Table.from_batches([others])))
        by_column = ColumnFold(self.fold.splits.definition, self.spec)
        given = by_column.contributions(pa.concat_tables([*earlier, keys.log]))
        found = by_column.rewritten(given, self.storage, self.retention)
        self.in_log = len(found.left) > 0
        self._add(parts, found.base)
        self._add(parts, found.left, left=True)
        self._add(parts, found.sidecar_rows, deleted=True)

    def _keys(self, keys: FoldedKeys) -> FoldedKeys:
        """Return the keys that are folded: with a retention also those of the sidecar, whose old rows are dropped."""
        if self.retention.limit_ms is None:
            return keys
        wanted = pa.schema([self.storage.field(name) for name in self.spec.key])
        pages = [page for file in self.fold.splits.sidecar for page in live_pages(file, wanted)]
        both = pa.concat_tables([keys.log.select(self.spec.key), pa.Table.from_batches(pages, wanted)])
        return replace(keys, given=Keys.of(both, self.spec.key)[0])

    def _as_folded(self, rows: pa.Table) -> pa.Table:
        """Mark base rows as rows that are the fold of others."""
        for name, value in ((ROW_KIND, StoredKind.FOLDED), (CARRIED, None)):
            if name in self.storage.names:
                marks = pa.repeat(pa.scalar(value, self.storage.field(name).type), len(rows))
                rows = rows.set_column(rows.schema.get_field_index(name), name, marks)
        return rows

    def _add(self, parts: Parts, rows: pa.Table, *, deleted: bool = False, left: bool = False) -> None:
        count = len(rows)
        columns = [rows.column(f.name) for f in self.storage]
        nothing = pa.nulls(count, pa.int64())
        order = [self.retention.since(rows), rows.column(ARRIVAL)] if deleted else [nothing, nothing]
        marks = [pa.repeat(deleted, count), pa.repeat(left, count)]
        whole = pa.Table.from_arrays([*columns, *order, *marks], schema=self.schema)
        for page in whole.combine_chunks().to_batches():
            parts.add(page, self.layout.of_rows(page))

    def write(self, parts: Parts, part: int, task: RewriteTask) -> list[bytes]:
        """Write a part, sorted by key."""
        rows = parts.take(part)
        if task.buckets:
            rows = rows.append_column(BUCKET, as_arrow(np.full(len(rows), part, np.int32)))
        return replace(task, in_log=self.in_log)(part, in_order(rows, np.arange(len(rows)), self.spec.key))
