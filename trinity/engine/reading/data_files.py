"""Data files as Arrow data, and the rows of a file that a read leaves out.

The rows left out are a bitmap of the file: the bit of row n is bit n % 64 of word n // 64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow, as_numpy
from trinity.spi import DataFile, Deletes
from trinity.storage import Cache
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import reporting_unreadable_file, rows_in, stored_pages, stored_row_groups

NOTHING_HIDDEN: Final[Mapping[str, np.ndarray]] = {}
"""An empty map from the path of a file to the bitmap of its hidden rows."""
_deleted: Final[Cache[tuple[Deletes, int], np.ndarray]] = Cache(256)


def bitmap_of(positions: np.ndarray, rows: int) -> np.ndarray:
    """Return the bitmap of a file with a number of rows, in which the bits of some positions are set."""
    marks = np.zeros(-(-rows // 64) * 64, np.uint8)
    marks[positions] = 1
    return np.packbits(marks, bitorder="little").view("<i8").astype(np.int64)


def has_left_out(file: DataFile, hidden: Mapping[str, np.ndarray]) -> bool:
    """Return True when a read leaves a row of the file out: a deleted one, or a hidden one."""
    return file.path in hidden or file.deletes is not None


def bitmap_left_out(file: DataFile, hidden: np.ndarray | None) -> np.ndarray:
    """Return the bitmap of the rows that a read leaves out of a file: deleted and hidden ones, at least one."""
    if file.deletes is None:
        assert hidden is not None
        return hidden
    deletes = file.deletes
    rows = rows_in(file)
    words = _deleted.get((deletes, rows), lambda: bitmap_of(as_numpy(deletes.positions()), rows))
    return words if hidden is None else words | hidden


def rows_left(file: DataFile, hidden: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return True for each row of a file that is shown; None where all are."""
    if not has_left_out(file, hidden):
        return None
    words = bitmap_left_out(file, hidden.get(file.path))
    left: np.ndarray = np.unpackbits(words.view(np.uint8), count=rows_in(file), bitorder="little") == 0
    return left


def not_deleted(positions: np.ndarray, deletes: Deletes | None) -> np.ndarray:
    """Return those of some positions, which are ascending, whose rows are not deleted by position."""
    return positions if deletes is None else np.setdiff1d(positions, as_numpy(deletes.positions()), assume_unique=True)


def positions_left(file: DataFile) -> np.ndarray:
    """Return the positions of a file's rows that are not deleted by position."""
    left = rows_left(file, NOTHING_HIDDEN)
    return np.arange(rows_in(file)) if left is None else np.flatnonzero(left)


_ROWS: Final = 1 << 20
"""Rows per batch when few columns are read; with smaller batches, concatenation takes half as long again."""


def read_columns(path: str, storage: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return some columns of all rows of a file. Raises as :func:`reporting_unreadable_file`."""
    wanted = pa.schema([storage.field(name) for name in names])
    with reporting_unreadable_file(path):
        return pa.Table.from_batches(stored_pages(path, wanted, _ROWS), wanted).combine_chunks()


def located_pages(
    file: DataFile, storage: pa.Schema, group: int | None = None
) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Yield the rows of a file, or of one of its row groups, that are not deleted by position, and their positions.

    Raises:
        TrinityError: BAD_DATA naming the file, where it cannot be read.
    """
    left = rows_left(file, NOTHING_HIDDEN)

    def wanted(footer: pq.FileMetaData) -> Sequence[int]:
        return range(footer.num_row_groups) if group is None else [group]

    with reporting_unreadable_file(file.path):
        for where, page in stored_row_groups(file.path, in_file(storage, file.partition), wanted):
            positions = np.arange(where.start, where.stop) if isinstance(where, slice) else where
            if left is not None:
                shown = left[positions]
                page, positions = page.filter(as_arrow(shown)), positions[shown]
            yield page, positions


def live_pages(file: DataFile, storage: pa.Schema, group: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, or of one of its row groups, that are not deleted by position.

    Raises as :func:`located_pages`.
    """
    return (page for page, _ in located_pages(file, storage, group))
