"""Reads of data files as Arrow data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow
from trinity.engine.reading.bitmaps import NOTHING_HIDDEN, rows_left
from trinity.spi import DataFile
from trinity.storage import in_file, reporting_unreadable_file, stored_pages, stored_row_groups

__all__ = ["located_pages", "read_columns"]

_ROWS: Final = 1 << 20
"""Rows that are read at once of few columns: in small pieces it takes half as long again, to put them together."""


def read_columns(path: str, storage: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return some columns of all rows of a file. Raises as :func:`reporting_unreadable_file`."""
    wanted = pa.schema([storage.field(name) for name in names])
    with reporting_unreadable_file(path):
        return pa.Table.from_batches(stored_pages(path, wanted, _ROWS), wanted).combine_chunks()


def located_pages(
    file: DataFile, storage: pa.Schema, group: int | None = None
) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Yield the rows of a file, or of one of its row groups, that are not deleted by position, with their places in it.

    Raises:
        TrinityError: BAD_DATA naming the file, where it cannot be read.
    """
    left = rows_left(file, NOTHING_HIDDEN)

    def wanted(footer: pq.FileMetaData) -> Sequence[int]:
        return range(footer.num_row_groups) if group is None else [group]

    with reporting_unreadable_file(file.path):
        for where, page in stored_row_groups(file.path, in_file(storage, file.partition), wanted):
            places = np.arange(where.start, where.stop) if isinstance(where, slice) else where
            if left is not None:
                shown = left[places]
                page, places = page.filter(as_arrow(shown)), places[shown]
            yield page, places
