"""Reads of some rows of a Parquet file: only the pages in which they are are decoded.

pyarrow decodes whole column chunks. So the pages that are wanted, and the dictionary before them, are put together in
memory as a small Parquet file, whose metadata are the file's own but for places and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow
from trinity.storage.naming import columns_in, values_of_absent
from trinity.storage.nested import conformed
from trinity.storage.page_index import ColumnPages, PagedGroup
from trinity.storage.store import ObjectStore
from trinity.storage.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct, written
from trinity.storage.thrift_compact import field as of

__all__ = ["rows_of_pages"]

_MAGIC: Final = b"PAR1"


def rows_of_pages(
    path: str, in_file: pa.Schema, storage: pa.Schema, group: PagedGroup, rows: np.ndarray
) -> pa.RecordBatch | None:
    """Return some rows of a row group in storage form; None where the pages of a column are not known.

    Raises:
        FileNotFoundError: and pyarrow's errors for a damaged file.
    """
    if not len(rows):
        return pa.RecordBatch.from_pylist([], schema=storage)
    present = columns_in(in_file, storage)
    columns = {name: pages for name in present if name is not None and (pages := group.column(name)) is not None}
    if not all(name is None or name in columns for name in present):
        return None
    store = ObjectStore(path)
    with store.filesystem.open_input_file(store.location.for_arrow) as file:
        arrays = [
            values_of_absent(f, len(rows))
            if name is None
            else conformed(_values(file, columns[name], group.rows, rows), in_file.field(name), f)
            for f, name in zip(storage, present, strict=True)
        ]
    return pa.RecordBatch.from_arrays(arrays, schema=storage)


def _values(file: Any, column: ColumnPages, all_rows: int, rows: np.ndarray) -> pa.Array:
    """Return the values of some rows."""
    wanted = np.diff(np.append(np.searchsorted(rows, column.first_rows), len(rows)))
    pages = np.flatnonzero(wanted)
    counts = np.diff(np.append(column.first_rows, all_rows))[pages]
    decoded = _decoded(_small_file(file, column, pages, int(counts.sum())))
    if len(rows) == len(decoded):
        return decoded
    starts = np.cumsum(counts) - counts - column.first_rows[pages]
    return decoded.take(as_arrow(rows + np.repeat(starts, wanted[pages])))


def _decoded(data: bytes) -> pa.Array:
    with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
        found = file.read(use_threads=False).column(0)
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def _small_file(file: Any, column: ColumnPages, pages: np.ndarray, rows: int) -> bytes:
    """Return a Parquet file with some pages of a column."""
    out = bytearray(_MAGIC)
    meta: Struct = {number: column.meta[number] for number in (1, 2, 3, 4, 6)}
    dictionary = of(column.meta, 11)
    if dictionary:
        meta[11] = (I64, len(out))
        out += file.read_at(int(column.offsets[0]) - dictionary, dictionary)
    meta[9] = (I64, len(out))
    for first, last in _runs(column, pages):
        start = int(column.offsets[first])
        out += file.read_at(int(column.offsets[last] + column.sizes[last]) - start, start)
    meta[5], meta[7] = (I64, rows), (I64, len(out) - len(_MAGIC))
    chunk: Struct = {2: (I64, 0), 3: (STRUCT, meta)}
    group: Struct = {1: (LIST, (STRUCT, [chunk])), 2: (I64, len(out)), 3: (I64, rows)}
    root: Struct = {4: (BINARY, b"schema"), 5: (I32, 1)}
    footer = written(
        {
            1: (I32, 2),
            2: (LIST, (STRUCT, [root, column.element])),
            3: (I64, rows),
            4: (LIST, (STRUCT, [group])),
        }
    )
    return bytes(out + footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _runs(column: ColumnPages, pages: np.ndarray) -> Sequence[tuple[int, int]]:
    """Return (first, last) of pages that lie side by side."""
    breaks = np.flatnonzero(np.diff(pages) > 1)
    firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(pages) - 1)
    return list(zip(pages[firsts].tolist(), pages[lasts].tolist(), strict=True))
