"""The rows that win their keys, found by key, ordering columns and marks of deletion alone.

Only these columns are in memory, for a share of the keys at a time. The winners' other columns are read afterwards,
page by page, by position.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.reading.data_files import NOTHING_HIDDEN, located_pages, read_columns, rows_left
from trinity.engine.reading.file_arrival import FileArrival
from trinity.engine.reading.hidden_rows import searched_columns
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.row_arrival import RowArrival, with_stamp
from trinity.hidden import ARRIVAL, DELETED, MOMENT, POSITION, SINCE
from trinity.merge.arrow.fold import compared_columns, is_deleted, losers, taking_part, winners
from trinity.merge.kernels.keys import Keys
from trinity.spi import STAMP, DataFile
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import reporting_unreadable_file, rows_in, stored_pages

_STAYS: Final = 1
_DELETES: Final = 2
"""Mark of a row that stays as a tombstone."""


def stored_schema(storage: pa.Schema) -> pa.Schema:
    """Return the schema of :meth:`RetainedRows.pages`."""
    return pa.schema([*storage, pa.field(DELETED, pa.bool_()), pa.field(SINCE, pa.int64())])


@dataclass(frozen=True)
class RetainedRows:
    """Rows of one file that a rewrite keeps.

    Attributes:
        marks: one byte per row: 0 for a dropped row, ``_DELETES`` for a tombstone that stays, ``_STAYS`` for others.
        stamped: True when rows of another engine get the stamp of their commit.
    """

    file: DataFile
    marks: np.ndarray
    stamped: bool = False

    @classmethod
    def all_of(cls, file: DataFile, lost: np.ndarray | None = None) -> RetainedRows:
        """Return all rows that are neither deleted by position nor at the positions ``lost``."""
        left = rows_left(file, NOTHING_HIDDEN)
        marks = np.ones(rows_in(file), np.uint8) if left is None else left.astype(np.uint8)
        if lost is not None:
            marks[lost] = 0
        return cls(file, marks)

    def pages(self, storage: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows in storage form, with ``DELETED`` and ``SINCE``.

        Raises:
            TrinityError: BAD_DATA naming the file, where it cannot be read.
        """
        first, schema = 0, stored_schema(storage)
        read = storage.append(schema.field(SINCE))
        stamp = FileArrival.of(self.file).stamp if self.stamped and STAMP in storage.names else None
        with reporting_unreadable_file(self.file.path):
            for page in stored_pages(self.file.path, in_file(read, self.file.partition)) if self.marks.any() else ():
                marks = self.marks[first : first + page.num_rows]
                positions = np.flatnonzero(marks)
                if len(positions):
                    kept = page if len(positions) == page.num_rows else page.take(as_arrow(positions))
                    kept = kept if stamp is None else with_stamp(kept, stamp)
                    columns = [*kept.columns[:-1], as_arrow(marks[positions] == _DELETES), kept.column(SINCE)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
                first += page.num_rows


class LogFiles:
    """The files of sidecar, runs and log, in arrival order. A row's index among all their rows identifies the row."""

    def __init__(self, fold: FoldPlan) -> None:
        self.files: Sequence[DataFile] = [
            *fold.splits.sidecar,
            *fold.runs,
            *fold.splits.in_arrival_order(fold.log),
        ]
        self._first = np.cumsum([0, *(rows_in(file) for file in self.files)])
        self._key = fold.spec.key
        self._marks = np.zeros(self._first[-1], np.uint8)
        self._arrival = RowArrival.of(fold.splits, fold.spec)
        self._storage = searched_columns(fold.splits, fold.spec)
        moments = [pa.field(MOMENT, pa.int64())] if self._arrival else []
        self.schema = pa.schema([*self._storage, *moments, pa.field(ARRIVAL, pa.int64())])

    def rows_of(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield key, ordering columns and marks of deletion of a file's rows.

        ``ARRIVAL`` is their number among the rows of all files.

        Raises:
            TrinityError: BAD_DATA naming the file, where it cannot be read.
        """
        file = self.files[number]
        for page, positions in located_pages(file, self._storage):
            if self._arrival is not None:
                page = self._arrival.with_moments(page, FileArrival.of(file))
            arrival = as_arrow(positions + self._first[number])
            yield pa.RecordBatch.from_arrays([*page.columns, arrival], schema=self.schema)

    def retain(self, positions: np.ndarray, deleted: np.ndarray) -> None:
        """Mark rows that stay, by index; ``deleted`` says which of them are tombstones."""
        self._marks[positions] = np.where(deleted, _DELETES, _STAYS)

    def retain_keyless(self, rows: pa.RecordBatch) -> None:
        """Mark rows with a NULL in their key as rows that stay: they are versions of no row (K1)."""
        for name in self._key:
            column = rows.column(name)
            if column.null_count:
                self._marks[as_numpy(rows.column(ARRIVAL).filter(column.is_null()))] = _STAYS

    def retained(self) -> list[RetainedRows]:
        """Return the marked rows of each file."""
        ends = itertools.pairwise(self._first)
        return [RetainedRows(file, self._marks[first:end]) for file, (first, end) in zip(self.files, ends, strict=True)]


@dataclass(frozen=True)
class LogWinners:
    """The winners of a share of the keys.

    Attributes:
        rows: the winner of each key, by the key's number: key, ordering columns, marks of deletion, index, ``DELETED``.
        position_column: name of the column with a row's index among all rows of the log.
    """

    fold: FoldPlan
    keys: Keys
    rows: pa.Table
    position_column: str

    @classmethod
    def of(cls, fold: FoldPlan, versions: pa.Table) -> LogWinners:
        """Fold all row versions of a share of the keys. Raises BAD_DATA naming a key whose winner is unknown (L3)."""
        arrival, position_column = RowArrival.of(fold.splits, fold.spec), ARRIVAL
        if arrival is not None:
            position_column = POSITION
            versions = arrival.in_order(versions.sort_by(ARRIVAL))
            versions = versions.rename_columns({ARRIVAL: position_column}).append_column(
                ARRIVAL, as_arrow(np.arange(len(versions)))
            )
        keys, won = winners(fold.spec, taking_part(fold.spec, versions))
        if arrival is not None:
            arrival.check(versions, as_numpy(won.column(ARRIVAL)))
        return cls(fold, keys, won.append_column(DELETED, is_deleted(fold.spec, won)), position_column)

    def losers(self, file: DataFile) -> tuple[np.ndarray, np.ndarray]:
        """Return (positions of a base file's losing rows, ascending; numbers of winners that lose to its rows)."""
        spec, storage = self.fold.spec, self.fold.splits.storage
        base = read_columns(file.path, storage, compared_columns(spec))
        return losers(spec, base, self.keys, self.rows, file.deletes)

    def keep_in(self, files: LogFiles, beaten: np.ndarray, *, deleted_too: bool) -> None:
        """Mark the winners that stay in their files: all but the ``beaten``, and tombstones only if ``deleted_too``."""
        positions, deleted = as_numpy(self.rows.column(self.position_column)), as_numpy(self.rows.column(DELETED))
        stays = np.ones(len(positions), bool) if deleted_too else ~deleted
        stays[beaten] = False
        files.retain(positions[stays], deleted[stays])
