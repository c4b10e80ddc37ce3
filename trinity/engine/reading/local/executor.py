"""Executes plans of reads as Arrow data in this process: no Spark, no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trinity.engine.reading.bitmaps import NOTHING_HIDDEN, rows_left
from trinity.engine.reading.data_files import reporting_unreadable_file
from trinity.engine.reading.hidden_rows import hidden_rows
from trinity.engine.reading.local.columns import to_user_columns
from trinity.engine.reading.local.fold_by_column import folded_rows
from trinity.engine.reading.local.limits import NotLocal
from trinity.engine.reading.local.search import Search, SearchedFile, search_in_process
from trinity.engine.reading.plan import FoldPlan, ReadPlan
from trinity.hidden import DELETED, SINCE
from trinity.spi import Column, DataFile, SplitSource, arrival_order
from trinity.storage import stored_pages

__all__ = ["LocalExecutor"]


@dataclass(frozen=True)
class LocalExecutor:
    """Executes plans by this process, as far as their ``not_local`` says nothing against it.

    Attributes:
        columns: the visible columns that are wanted.
    """

    columns: Sequence[Column] = ()

    def rows(self, plan: ReadPlan) -> Iterator[pa.RecordBatch] | NotLocal:
        """Return the merged rows in their logical types, in no order; several files are read side by side.

        Raises:
            TrinityError: BAD_DATA naming a corrupt or missing file.
        """
        if plan.not_local is not None:
            return plan.not_local
        if plan.fold is not None and plan.fold.spec.by_column:
            return self._folded_by_column(plan.fold)
        hidden = hidden_rows(plan.state, self) if plan.state else NOTHING_HIDDEN
        assert hidden is not None
        return self._pages(plan, hidden)

    def count(self, plan: ReadPlan) -> int | NotLocal:
        """Return the number of merged rows, which key and ordering columns tell. Raises as :meth:`rows`."""
        if plan.not_local is not None:
            return plan.not_local
        hidden = hidden_rows(plan.state, self) if plan.state else NOTHING_HIDDEN
        assert hidden is not None
        left = [(file, rows_left(file, hidden)) for file in plan.files]
        return sum(file.rows if shown is None else int(shown.sum()) for file, shown in left)

    def _pages(self, plan: ReadPlan, hidden: Mapping[str, np.ndarray]) -> Iterator[pa.RecordBatch]:
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            files = sorted(plan.files, key=arrival_order)
            for pages in pool.map(lambda file: list(self._of_file(plan.splits, file, hidden)), files):
                yield from pages

    def _of_file(
        self, splits: SplitSource, file: DataFile, hidden: Mapping[str, np.ndarray]
    ) -> Iterator[pa.RecordBatch]:
        left = rows_left(file, hidden)
        stored = dict(zip(splits.definition.columns, splits.storage, strict=True))
        wanted = pa.schema([stored[column] for column in self.columns])
        first = 0
        with reporting_unreadable_file(file.path):
            for page in stored_pages(file.path, wanted):
                end = first + page.num_rows
                shown = page if left is None else page.filter(pa.array(left[first:end]))
                yield to_user_columns(shown, self.columns)
                first = end

    def _folded_by_column(self, fold: FoldPlan) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in self.columns]
        for page in folded_rows(fold, names):
            yield to_user_columns(page, self.columns)

    def log_winners(self, fold: FoldPlan) -> pa.Table | NotLocal:
        """Return the winner of each key of log, sidecar and runs, in storage form with ``DELETED`` and ``SINCE``.

        Raises:
            TrinityError: BAD_DATA naming a file that is missing or corrupt.
        """
        if fold.not_local is not None:
            return fold.not_local
        splits = fold.splits
        files = [*splits.sidecar, *fold.runs, *sorted(fold.log, key=arrival_order)]
        storage = splits.storage.append(pa.field(SINCE, pa.int64()))
        searched = tuple(SearchedFile(number, f.path, f.rows, f.deletes) for number, f in enumerate(files, 1))
        try:
            winners = Search(fold.spec, storage, (), searched, {}).folded(0).winners
        except pa.ArrowException:
            return NotLocal("its log has texts of more than two gigabytes")
        return winners.select([*splits.storage.names, DELETED, SINCE])

    def search(self, search: Search, table: str) -> list[bytes]:
        """Return the fragments of a search. Raises as the search does."""
        return search_in_process(search, pa.cpu_count())
