"""The rows that win their keys, found by key, ordering columns and marks of deletion alone.

Only these columns of all row versions are in memory at once. The winners' other columns are read after that, page by
page, from the places where they are stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.reading.data_files import read_columns
from trinity.engine.reading.local.search import Search, SearchedFile
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark_hash import buckets_of
from trinity.hidden import DELETED, FILE_NUMBER, POSITION, SINCE
from trinity.merge.arrow.fold import compared_columns, losers
from trinity.merge.arrow.keys import Keys
from trinity.spi import DataFile, arrival_order
from trinity.storage import reporting_unreadable_file, stored_pages

__all__ = ["LogWinners", "Staying", "stored_schema"]


def stored_schema(storage: pa.Schema) -> pa.Schema:
    """Return the columns of :meth:`Staying.pages`."""
    return pa.schema([*storage, pa.field(DELETED, pa.bool_()), pa.field(SINCE, pa.int64())])


@dataclass(frozen=True)
class Staying:
    """Rows of one file that a rewrite keeps.

    Attributes:
        file: the file.
        places: where they are in it, ascending.
        deleted: whether each deletes its key; None where none does.
    """

    file: DataFile
    places: np.ndarray
    deleted: np.ndarray | None = None

    @classmethod
    def together(cls, shares: Sequence[Staying]) -> Staying:
        """Return rows of one file in one."""
        places, deleted = (np.concatenate([getattr(s, name) for s in shares]) for name in ("places", "deleted"))
        order = np.argsort(places)
        return cls(shares[0].file, places[order], deleted[order])

    def pages(self, storage: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield them in storage form with ``DELETED`` and ``SINCE``.

        Raises:
            TrinityError: BAD_DATA naming the file, where it cannot be read.
        """
        first, schema = 0, stored_schema(storage)
        read = storage.append(schema.field(SINCE))
        with reporting_unreadable_file(self.file.path):
            for page in stored_pages(self.file.path, read) if len(self.places) else ():
                begin, end = np.searchsorted(self.places, (first, first + page.num_rows))
                if begin < end:
                    kept = page
                    if end - begin < page.num_rows:
                        kept = page.take(as_arrow(self.places[begin:end] - first))
                    deleted = np.zeros(end - begin, bool) if self.deleted is None else self.deleted[begin:end]
                    columns = [*kept.columns[:-1], as_arrow(deleted), kept.column(SINCE)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
                first += page.num_rows


@dataclass(frozen=True)
class Share:
    """The keys of one of several parts of equal size, by their hash."""

    key: Sequence[str]
    number: int
    count: int

    def lookup(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Return places of the rows that have such a key; see :meth:`~trinity.merge.arrow.keys.Keys.lookup`."""
        return np.flatnonzero(buckets_of(rows, self.key, self.count) == self.number), np.empty(0, np.int64)


@dataclass(frozen=True)
class LogWinners:
    """The winners of log, sidecar and runs.

    Attributes:
        fold: which files are folded.
        files: these, in arrival order.
        keys: the distinct keys.
        rows: the winner of each by its number: key, ordering columns and marks, with file, place and ``DELETED``.
    """

    fold: FoldPlan
    files: Sequence[DataFile]
    keys: Keys
    rows: pa.Table

    @classmethod
    def of(cls, fold: FoldPlan, share: Share) -> LogWinners:
        """Fold the rows of a share of the keys. Raises BAD_DATA naming a file that cannot be read."""
        splits, spec = fold.splits, fold.spec
        files = [*splits.sidecar, *fold.runs, *sorted(fold.log, key=arrival_order)]
        narrow = pa.schema([f for f in splits.storage if f.name in spec.sidecar_columns])
        searched = tuple(SearchedFile(number, f.path, f.rows, f.deletes) for number, f in enumerate(files))
        folded = Search(spec, narrow, (), searched, {}, only=share if share.count > 1 else None).folded(0)
        return cls(fold, files, folded.keys, folded.winners)

    def losers(self, file: DataFile) -> tuple[np.ndarray, np.ndarray]:
        """Return (places of a base file's rows that lose, ascending; numbers of winners that lose to its rows)."""
        spec, storage = self.fold.spec, self.fold.splits.storage
        base = read_columns(file.path, storage, compared_columns(spec))
        return losers(spec, base, self.keys, self.rows, file.deletes)

    def staying(self, beaten: np.ndarray, *, deleted_too: bool) -> list[Staying]:
        """Return where the winners are, in arrival order of the files.

        Args:
            beaten: numbers of those to leave out.
            deleted_too: False to leave out those that delete their keys.
        """
        numbers, places = (as_numpy(self.rows.column(name)) for name in (FILE_NUMBER, POSITION))
        deleted = as_numpy(self.rows.column(DELETED))
        stays = np.ones(len(numbers), bool)
        stays[beaten] = False
        if not deleted_too:
            stays &= ~deleted
        kept = np.flatnonzero(stays)
        order = kept[np.lexsort((places[kept], numbers[kept]))]
        edges = np.searchsorted(numbers[order], np.arange(len(self.files) + 1))
        parts = (order[first:end] for first, end in itertools.pairwise(edges))
        return [Staying(f, places[part], deleted[part]) for f, part in zip(self.files, parts, strict=True)]
