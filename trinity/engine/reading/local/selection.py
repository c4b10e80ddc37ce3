"""The selection of wanted rows and columns from pages in storage form, in threads, and in the form that users see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow, where_true
from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.engine.reading.predicate import Predicate
from trinity.engine.writing.casts import cast_array
from trinity.limits import Limit
from trinity.merge.kernels.keys import Keys
from trinity.spi import Column, ColumnStats, DataFile, SplitSource, stored_name
from trinity.storage.file_schema import columns_in
from trinity.storage.old_calendar import statistics_of_others
from trinity.storage.page_index import MOST_BY_PAGE, PagedGroup
from trinity.storage.page_reads import rows_of_pages
from trinity.storage.parquet_files import parquet_footer, reporting_unreadable_file, results_ahead, rows_in

if TYPE_CHECKING:
    from trinity.engine.expressions import Compiled

ROWS_AT_ONCE: Final = Limit(1 << 20)
"""Rows of a file that a thread holds at once: as many as a row group has."""

_T = TypeVar("_T")


def in_threads(parts: Iterable[Callable[[], list[_T]]]) -> Iterator[_T]:
    """Run parts in threads, and yield the items that they return, in order. Raises what they raise."""
    threads = pa.cpu_count()
    for found in results_ahead(parts, threads, threads):
        yield from found


def to_user_columns(page: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """Convert a page to the names and the logical types of some columns."""
    shown = pa.schema([c.to_arrow() for c in columns])
    arrays = [cast_array(a, f.type, f"column '{f.name}'", "UTC") for f, a in zip(shown, page.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=shown)


_NOTHING: Final = np.empty(0, np.int64)


@dataclass(frozen=True)
class Selection:
    """The selection of some columns, in rows for which a predicate is true.

    Attributes:
        columns: the columns to read: the wanted ones, then those that only the predicate needs.
        names: the names of the wanted columns.
    """

    columns: Sequence[Column]
    names: Sequence[str]
    storage: pa.Schema
    predicate: Predicate | None

    @classmethod
    def of(cls, splits: SplitSource, wanted: Sequence[Column], predicate: Predicate | None) -> Selection:
        """Return the selection of some visible columns of a version."""
        names = {column.name for column in wanted}
        needed = predicate.compiled.fields if predicate and not isinstance(predicate.compiled, NotLocal) else ()
        columns = [*wanted, *(c for c in splits.definition.visible if c.name in needed and c.name not in names)]
        stored = dict(zip(splits.definition.columns, splits.storage, strict=True))
        return cls(columns, [c.name for c in wanted], pa.schema([stored[c] for c in columns]), predicate)

    def shown(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the selection from a page in storage form. Raises what the predicate raises for a row."""
        rows = to_user_columns(page, self.columns)
        holds = self.holds(rows)
        return (rows if holds is None else rows.filter(holds)).select(self.names)

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray | None:
        """Evaluate the predicate on rows that have its columns as users see them; None without a predicate."""
        return None if self.predicate is None else self._condition.evaluate(rows)

    @property
    def _condition(self) -> Compiled:
        """The compiled predicate. There must be one, which this process evaluates."""
        assert self.predicate is not None
        assert not isinstance(self.predicate.compiled, NotLocal)
        return self.predicate.compiled

    def parts(self, file: DataFile) -> Sequence[int | None]:
        """Return the parts of a file that threads hold at once: row groups of a large one; None for a whole one.

        Raises:
            TrinityError: BAD_DATA naming a corrupt or missing file.
        """
        if rows_in(file) <= ROWS_AT_ONCE.value:
            return [None]
        with reporting_unreadable_file(file.path):
            return self.row_groups(file, parquet_footer(file.path))

    def row_groups(self, file: DataFile, footer: pq.FileMetaData) -> list[int]:
        """Return the row groups of a file that may hold matching rows, by their statistics."""
        if self.predicate is None:
            return list(range(footer.num_row_groups))
        names = {stored_name(self.storage, c.name): c.name for c in self.columns}
        groups = []
        for number in range(footer.num_row_groups):
            found = statistics_of_others(footer, list(names), number)
            groups.append({names[stored]: stats for stored, stats in found.items()})
        return self._may_hold_rows(groups)

    def rows_by_page(
        self, file: DataFile, left: np.ndarray | None, in_file: pa.Schema, group: PagedGroup, first: int
    ) -> np.ndarray | None:
        """Return the matching rows of a row group, found by pages of the predicate's columns.

        Listed keys are looked for in all pages, if need be.

        Returns:
            positions in the row group; None where most pages may match, so that all rows are to be read.
        """
        rows = self._in_pages(in_file, group)
        if rows is None and self._listed_keys is None:
            return None
        rows = np.arange(group.rows) if rows is None else rows
        if left is not None:
            rows = rows[left[rows + first]]
        needed = [n for n, column in enumerate(self.columns) if column.name in self._condition.fields]
        storage = pa.schema([self.storage.field(n) for n in needed])
        page = rows_of_pages(file.path, in_file, storage, group, rows)
        if page is None:
            return None
        shown = to_user_columns(page, [self.columns[n] for n in needed])
        if self._listed_keys is not None:  # cheaper than the predicate in a sorted file
            positions, _ = self._listed_keys.lookup(pa.Table.from_batches([shown]))
            rows, shown = rows[positions], shown.take(as_arrow(positions))
        holds = self._condition.evaluate(shown)
        found: np.ndarray = rows[where_true(holds)]
        return found

    @cached_property
    def _listed_keys(self) -> Keys | None:
        """The keys of all matching rows, if the predicate lists them; else None."""
        listed = None if self.predicate is None else self.predicate.listed_keys
        return None if listed is None else Keys.of(listed, listed.column_names)[0]

    def _in_pages(self, in_file: pa.Schema, group: PagedGroup) -> np.ndarray | None:
        """Return the rows in whose pages matching rows may be, by the pages' bounds; None where these are most rows."""
        pages = {}
        for column, name in zip(self.columns, columns_in(in_file, self.storage), strict=True):
            found = group.column(name) if name and column.name in self._condition.fields else None
            if found is not None:
                pages[column.name] = found, found.statistics(in_file.field(name).type)
        if not pages:
            return None
        firsts = np.unique(np.concatenate([found.first_rows for found, _ in pages.values()]))
        numbers = {name: found.pages_of(firsts) for name, (found, _) in pages.items()}
        parts = [{name: pages[name][1][numbers[name][n]] for name in pages} for n in range(len(firsts))]
        kept = self._may_hold_rows(parts)
        lasts = np.append(firsts[1:], group.rows)
        if (lasts[kept] - firsts[kept]).sum() > group.rows * MOST_BY_PAGE:
            return None
        return np.concatenate([_NOTHING, *(np.arange(firsts[n], lasts[n]) for n in kept)])

    @deep_recursion()
    def _may_hold_rows(self, parts: Sequence[Mapping[str, ColumnStats]]) -> list[int]:
        """Return the numbers of the parts of a file that may hold matching rows, by their statistics."""
        assert self.predicate is not None
        test = self.predicate.stats_test()
        return [number for number, stats in enumerate(parts) if test(stats)]
