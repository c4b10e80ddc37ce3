"""The rows of a file that a read leaves out, as a bit for each row: that of row n is bit n % 64 of word n // 64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from trinity.arrays import as_numpy
from trinity.spi import DataFile, Deletes
from trinity.storage import Cache, rows_in

__all__ = ["NOTHING_HIDDEN", "bitmap_left_out", "bitmap_of", "has_left_out", "places_left", "rows_left"]

NOTHING_HIDDEN: Final[Mapping[str, np.ndarray]] = {}
"""Path of a file -> the bits of its hidden rows, where there are none."""
_deleted: Final[Cache[tuple[Deletes, int], np.ndarray]] = Cache(256)


def bitmap_of(places: np.ndarray, rows: int) -> np.ndarray:
    """Return the words of a file with this number of rows; the bits of some places are set."""
    marks = np.zeros(-(-rows // 64) * 64, np.uint8)
    marks[places] = 1
    return np.packbits(marks, bitorder="little").view("<i8").astype(np.int64)


def has_left_out(file: DataFile, hidden: Mapping[str, np.ndarray]) -> bool:
    """Return True when a read leaves a row of the file out: a deleted one, or a hidden one."""
    return file.path in hidden or file.deletes is not None


def bitmap_left_out(file: DataFile, hidden: np.ndarray | None) -> np.ndarray:
    """Return the bits of the rows that a read leaves out of a file that has some: deleted and hidden ones."""
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


def places_left(file: DataFile) -> np.ndarray:
    """Return the places of a file's rows that are not deleted by position."""
    left = rows_left(file, NOTHING_HIDDEN)
    return np.arange(rows_in(file)) if left is None else np.flatnonzero(left)
