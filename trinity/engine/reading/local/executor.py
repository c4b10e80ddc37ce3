"""The execution of plans of reads as Arrow data in this process: no Spark, no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow
from trinity.engine.executes import NotLocal
from trinity.engine.reading.data_files import NOTHING_HIDDEN, rows_left
from trinity.engine.reading.files import prune
from trinity.engine.reading.hidden_rows import hidden_rows
from trinity.engine.reading.local.fold_by_column import folded_rows
from trinity.engine.reading.local.selection import Selection, in_threads
from trinity.engine.reading.plan import ReadPlan, ReadStrategy
from trinity.engine.reading.search import Search, search_in_process
from trinity.spi import Column, DataFile, arrival_order
from trinity.storage import Location
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import reporting_unreadable_file, rows_in, stored_row_groups


@dataclass(frozen=True)
class LocalExecutor:
    """The executor of reads in this process, of plans whose ``not_local`` is None; ``columns`` are the wanted ones."""

    columns: Sequence[Column] = ()

    def rows(self, plan: ReadPlan) -> Iterator[pa.RecordBatch] | NotLocal:
        """Return the wanted rows in their logical types, in no order.

        Row groups are read in parallel, and only a few ahead of the consumer, so that memory stays bounded.

        Raises:
            TrinityError: BAD_DATA naming a corrupt or missing file; and, as rows are taken, what the predicate raises.
        """
        if plan.not_local is not None:
            return plan.not_local
        selection = Selection.of(plan.splits, self.columns, plan.predicate)
        if plan.strategy is ReadStrategy.BY_COLUMN:
            assert plan.fold is not None
            return map(selection.shown, folded_rows(plan.fold, [column.name for column in selection.columns]))
        hidden = hidden_rows(plan.state, _search) if plan.state else NOTHING_HIDDEN
        assert hidden is not None
        files = sorted(prune(plan.files, plan.predicate), key=arrival_order)
        return in_threads(
            partial(_rows, selection, file, left, part)
            for file in files
            for left in [rows_left(file, hidden) if hidden or file.deletes else None]
            for part in selection.parts(file)
        )

    def count(self, plan: ReadPlan) -> int | NotLocal:
        """Return the number of merged rows, found by key and ordering columns. Raises as :meth:`rows`."""
        assert plan.predicate is None  # it would have to be evaluated on whole rows
        if plan.not_local is not None:
            return plan.not_local
        if plan.strategy is ReadStrategy.BY_COLUMN:
            definition = plan.splits.definition
            pages = LocalExecutor([definition.column(name) for name in definition.primary_key]).rows(plan)
            return pages if isinstance(pages, NotLocal) else sum(page.num_rows for page in pages)
        hidden = hidden_rows(plan.state, _search) if plan.state else NOTHING_HIDDEN
        assert hidden is not None
        left = [(file, rows_left(file, hidden)) for file in plan.files]
        return sum(rows_in(file) if shown is None else int(shown.sum()) for file, shown in left)


def _search(search: Search, _table: str) -> list[bytes]:
    """Return the fragments of a search. Raises as :func:`search_in_process`."""
    return search_in_process(search, pa.cpu_count())


_ROWS_BY_PAGE: Final = 10_000
"""Number of rows from which on a file's page index is used: a file with fewer is read faster as a whole."""


def _rows(selection: Selection, file: DataFile, left: np.ndarray | None, group: int | None) -> list[pa.RecordBatch]:
    """Read a row group of a file, or, for None, all that may hold wanted rows. ``left`` is from ``rows_left()``."""

    def wanted(footer: pq.FileMetaData) -> list[int]:
        return selection.row_groups(file, footer) if group is None else [group]

    found = []
    # an object store returns few large parts faster than many small ones
    by_page = selection.predicate is not None and rows_in(file) >= _ROWS_BY_PAGE and Location.of(file.path).on_disk
    rows_wanted = partial(selection.rows_by_page, file, left) if by_page else None
    storage = in_file(selection.storage, file.partition)
    with reporting_unreadable_file(file.path):
        for positions, page in stored_row_groups(file.path, storage, wanted, rows_wanted):
            shown = page if left is None else page.filter(as_arrow(left[positions]))
            found.append(selection.shown(shown))
    return found
