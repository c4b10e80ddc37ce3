"""Reads of single rows of a Parquet file: only the pages that hold them are decoded.

pyarrow decodes whole column chunks. So the wanted pages, and the dictionary before them, are put together in memory as
a small Parquet file. Its metadata are those of the real file, with other offsets and counts. Numbers that are neither
encoded nor compressed are read directly at their offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trinity.arrays import as_arrow
from trinity.storage.file_schema import columns_in, conformed, values_of_absent
from trinity.storage.page_index import ColumnPages, PagedGroup
from trinity.storage.store import ObjectStore
from trinity.storage.thrift_compact import BINARY, I32, I64, LIST, STRUCT, Struct, written
from trinity.storage.thrift_compact import field as of

_MAGIC: Final = b"PAR1"


def rows_of_pages(
    path: str, in_file: pa.Schema, storage: pa.Schema, group: PagedGroup, rows: np.ndarray
) -> pa.RecordBatch | None:
    """Return the wanted rows of a row group in storage form; None unless every column has a page index.

    Args:
        path: the file.
        in_file: its Arrow schema.
        storage: the wanted columns.
        group: the row group.
        rows: numbers of the wanted rows within the group, ascending.

    Raises:
        FileNotFoundError: there is no file; pyarrow's errors for a damaged one.
    """
    if not len(rows):
        return pa.RecordBatch.from_pylist([], schema=storage)
    present = columns_in(in_file, storage)
    columns = {name: pages for name in present if name is not None and (pages := group.column(name)) is not None}
    if not all(name is None or name in columns for name in present):
        return None
    store = ObjectStore(path)
    with store.filesystem.open_input_file(store.location.for_arrow) as file:
        arrays = []
        for field, name in zip(storage, present, strict=True):
            if name is None:
                arrays.append(values_of_absent(field, len(rows)))
            else:
                stored = in_file.field(name)
                values = _values(file, columns[name], stored.type, group.rows, rows)
                arrays.append(conformed(values, stored, field))
    return pa.RecordBatch.from_arrays(arrays, schema=storage)


def _values(file: Any, column: ColumnPages, kind: pa.DataType, all_rows: int, rows: np.ndarray) -> pa.Array:
    """Return the values of the wanted rows."""
    if column.plain_width and column.plain_width * 8 == _bits(kind):
        return as_arrow(_plain_values(file, column, column.plain_width, all_rows, rows)).view(kind)
    wanted = np.diff(np.append(np.searchsorted(rows, column.first_rows), len(rows)))
    pages = np.flatnonzero(wanted)
    counts = np.diff(np.append(column.first_rows, all_rows))[pages]
    decoded = _decoded(_small_file(file, column, pages, int(counts.sum())))
    if len(rows) == len(decoded):
        return decoded
    starts = np.cumsum(counts) - counts - column.first_rows[pages]
    return decoded.take(as_arrow(rows + np.repeat(starts, wanted[pages])))


_GAP: Final = 4096
"""Largest gap in bytes between two reads that are merged into one: a further system call costs as much."""


def _bits(kind: pa.DataType) -> int:
    """Return the bits of a value, for types that Parquet stores as Arrow does; 0 for other types."""
    return 0 if pa.types.is_decimal(kind) or not pa.types.is_primitive(kind) else int(kind.bit_width)


def _plain_values(file: Any, column: ColumnPages, width: int, all_rows: int, rows: np.ndarray) -> np.ndarray:
    """Return plain values as integers of ``width`` bytes. The values are the last bytes of each page."""
    counts = np.diff(np.append(column.first_rows, all_rows))
    starts = column.offsets + column.sizes - width * (counts + column.first_rows)
    byte_offsets = starts[column.pages_of(rows)] + width * rows
    cuts = np.flatnonzero(np.diff(byte_offsets) > _GAP) + 1
    kind, found = np.dtype(f"<i{width}"), np.empty(len(rows), f"<i{width}")
    for first, stop in zip(np.append(0, cuts).tolist(), np.append(cuts, len(rows)).tolist(), strict=True):
        mine = byte_offsets[first:stop] - byte_offsets[first]
        size = int(mine[-1]) + width
        data = file.read_at(size, int(byte_offsets[first]))
        if len(data) < size:
            raise OSError(f"it ends within column '{column.name}'")
        found[first:stop] = np.ndarray(size - width + 1, kind, data, strides=1)[mine]  # values need not be aligned
    return found


def _decoded(data: pa.Buffer) -> pa.Array:
    with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, coerce_int96_timestamp_unit="us") as file:
        found = file.read(use_threads=False).column(0)
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def _small_file(file: Any, column: ColumnPages, pages: np.ndarray, rows: int) -> pa.Buffer:
    """Return a Parquet file, in memory, of the given pages of a column."""
    first, dictionary = len(_MAGIC), of(column.meta, 11)
    parts = [(int(dictionary), int(column.offsets[0]))] if dictionary else []
    parts += [(int(column.offsets[m]), int(column.offsets[n] + column.sizes[n])) for m, n in _runs(column, pages)]
    size = sum(end - start for start, end in parts)
    footer = _footer(column, first, parts[0][1] - parts[0][0] if dictionary else 0, size, rows)
    ending = footer + len(footer).to_bytes(4, "little") + _MAGIC
    out = memoryview(bytearray(first + size + len(ending)))
    out[:first], out[first + size :] = _MAGIC, ending
    at = first
    for start, end in parts:
        file.seek(start)
        file.readinto(out[at : at + end - start])
        at += end - start
    return pa.py_buffer(out)


def _footer(column: ColumnPages, first: int, dictionary: int, size: int, rows: int) -> bytes:
    """Return the footer of a file with some pages of a column.

    Args:
        column: the column.
        first: byte at which its dictionary, or without one its first page, begins.
        dictionary: bytes of the dictionary; 0 without one.
        size: bytes of dictionary and pages together.
        rows: number of rows in the pages.
    """
    meta: Struct = {number: column.meta[number] for number in (1, 2, 3, 4, 6)}
    if dictionary:
        meta[11] = (I64, first)
    meta[9] = (I64, first + dictionary)
    meta[5], meta[7] = (I64, rows), (I64, size)
    chunk: Struct = {2: (I64, 0), 3: (STRUCT, meta)}
    group: Struct = {1: (LIST, (STRUCT, [chunk])), 2: (I64, size), 3: (I64, rows)}
    root: Struct = {4: (BINARY, b"schema"), 5: (I32, 1)}
    return written(
        {
            1: (I32, 2),
            2: (LIST, (STRUCT, [root, column.element])),
            3: (I64, rows),
            4: (LIST, (STRUCT, [group])),
        }
    )


def _runs(column: ColumnPages, pages: np.ndarray) -> Sequence[tuple[int, int]]:
    """Return (first, last) of each run of pages that lie side by side in the file."""
    breaks = np.flatnonzero(np.diff(pages) > 1)
    firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(pages) - 1)
    return list(zip(pages[firsts].tolist(), pages[lasts].tolist(), strict=True))
