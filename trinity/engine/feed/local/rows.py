"""Rows of a version in the columns of a feed, which are those of its last version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trinity.engine.executes import NotLocal
from trinity.engine.reading.local.selection import ROWS_AT_ONCE, to_user_columns
from trinity.engine.writing.casts import cast_array
from trinity.spi import Column, DataFile, SplitSource
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import parquet_footer, reporting_unreadable_file, rows_in, stored_rows


def why_not_shown(old: Sequence[Column], columns: Sequence[Column]) -> NotLocal | None:
    """Return why rows with the ``old`` columns of another version cannot be shown in the feed's; None if they can."""
    known = {c.identity: c for c in old}
    for column in columns:
        before = known.get(column.identity)
        if before and column.within and before.within and (column.within, column.type) != (before.within, before.type):
            return NotLocal(f"fields within column '{column.name}' were changed")
    return None


@dataclass(frozen=True)
class InColumns:
    """The conversion of a version's rows to the columns of a feed: a missing one is NULL, a dropped one is left out."""

    splits: SplitSource
    columns: Sequence[Column]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the feed."""
        return pa.schema([c.to_arrow() for c in self.columns])

    def at(self, wanted: Iterable[tuple[DataFile, np.ndarray]]) -> pa.Table:
        """Return rows of files by position, ascending in each file.

        Raises:
            TrinityError: BAD_DATA naming a file that cannot be read.
        """
        parts = [(file, part) for file, positions in wanted for part in _by_row_group(file, positions)]
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            found = pool.map(lambda part: list(self.of_file(*part)), parts)
            return pa.Table.from_batches([page for pages in found for page in pages], self.schema)

    def of_file(self, file: DataFile, positions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield rows of a file by position, ascending. Raises as :meth:`at`."""
        if not len(positions):
            return
        definition = self.splits.definition
        stored = dict(zip(definition.columns, self.splits.storage, strict=True))
        known = {c.identity: c for c in definition.visible}
        there = [known[c.identity] for c in self.columns if c.identity in known]
        with reporting_unreadable_file(file.path):
            for page in stored_rows(
                file.path, in_file(pa.schema([stored[c] for c in there]), file.partition), positions
            ):
                yield self.shown(to_user_columns(page, there), there)

    def shown(self, rows: pa.RecordBatch, old: Sequence[Column]) -> pa.RecordBatch:
        """Convert rows, which have the ``old`` columns in logical types, to the columns of the feed."""
        known = {c.identity: rows.column(index) for index, c in enumerate(old)}
        arrays = []
        for column in self.columns:
            kind, found = column.to_arrow().type, known.get(column.identity)
            if found is None:
                arrays.append(pa.nulls(rows.num_rows, kind))
            else:
                arrays.append(cast_array(found, kind, f"column '{column.name}'", "UTC"))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _by_row_group(file: DataFile, positions: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the wanted positions of each row group of a large file, or all of a small file."""
    if not len(positions) or rows_in(file) <= ROWS_AT_ONCE.value:
        yield positions
        return
    with reporting_unreadable_file(file.path):
        footer = parquet_footer(file.path)
    ends = np.cumsum([footer.row_group(group).num_rows for group in range(footer.num_row_groups)])
    yield from np.split(positions, np.searchsorted(positions, ends[:-1]))
