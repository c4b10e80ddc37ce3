"""The page index of a Parquet file: where the pages of each column are, and the bounds of their values.

pyarrow writes it, but does not read it. With the index single rows are read without the pages of other rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from trinity.spi import ColumnStats
from trinity.storage.cache import Cache
from trinity.storage.entries import Stat
from trinity.storage.store import ObjectStore
from trinity.storage.thrift_compact import Struct, raw_footer, read_struct
from trinity.storage.thrift_compact import field as of

MOST_BY_PAGE: Final = 0.5
"""The share of a row group's rows above which reading the whole group is faster than reading page by page."""

_UNCOMPRESSED: Final = 0
_PLAIN: Final = 0
_WIDTHS: Final = {1: 4, 2: 8, 4: 4, 5: 8}
"""Physical type of numbers -> bytes of a value."""
_NUMBERS: Final = (1, 2)
"""Physical types of whole numbers: INT32 and INT64."""

_MOST_FILES: Final = 256
"""Number of files whose indexes the process caches: an index of 200 pages and ten columns has some hundred KB."""


@dataclass(frozen=True)
class ColumnPages:
    """The pages of a top-level column without nested values, in a row group.

    Attributes:
        name: the column's name in the file.
        element: the column's element of the file's schema.
        meta: the metadata of its column chunk.
        offsets: the byte at which each page begins.
        sizes: bytes of each page.
        first_rows: number of the first row of each page within the row group.
        bounds: the bytes of the column index; empty without one.
        cached_statistics: Arrow type -> statistics of each page.
    """

    name: str
    element: Struct
    meta: Struct
    offsets: np.ndarray
    sizes: np.ndarray
    first_rows: np.ndarray
    bounds: bytes = field(repr=False)
    cached_statistics: dict[pa.DataType, list[ColumnStats]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def plain_width(self) -> int:
        """The bytes of a value, if pages end with plain, uncompressed numbers, none of them NULL; else 0."""
        pages, levels = of(self.meta, 13, (0, []))[1], of(of(self.meta, 16, {}), 3, (0, []))[1]
        as_they_are = of(self.meta, 4) == _UNCOMPRESSED and {of(page, 2) for page in pages} == {_PLAIN}
        return _WIDTHS.get(of(self.meta, 1), 0) if as_they_are and levels == [0, of(self.meta, 5)] else 0

    def pages_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the page that holds each row."""
        return np.searchsorted(self.first_rows, rows, "right") - 1

    def statistics(self, kind: pa.DataType) -> Sequence[ColumnStats]:
        """Return the statistics of each page; without bounds for types whose bounds are not decoded here."""
        if kind not in self.cached_statistics:
            numbers = of(self.meta, 1) in _NUMBERS
            self.cached_statistics[kind] = _statistics(self.bounds, kind, len(self.offsets), numbers=numbers)
        return self.cached_statistics[kind]


@dataclass(frozen=True)
class PagedGroup:
    """A row group of a file.

    Attributes:
        path: the file.
        rows: number of rows of the group.
        chunks: column name in the file -> (element of the schema, column chunk), for columns with a page index.
        cached_columns: column name -> pages, of columns whose index has been read.
    """

    path: str
    rows: int
    chunks: dict[str, tuple[Struct, Struct]] = field(repr=False)
    cached_columns: dict[str, ColumnPages] = field(default_factory=dict, repr=False, compare=False)

    def column(self, name: str) -> ColumnPages | None:
        """Return the pages of a column; None without a page index. Raises the store's errors."""
        if name not in self.chunks:
            return None
        if name not in self.cached_columns:
            self.cached_columns[name] = _pages(self.path, name, *self.chunks[name])
        return self.cached_columns[name]


_kept: Final[Cache[tuple[str, Stat | None], list[PagedGroup]]] = Cache(_MOST_FILES)


def paged_groups(path: str) -> list[PagedGroup]:
    """Return the row groups of a file. Raises the store's errors."""
    # other engines may put another file under the same name
    return _kept.get((path, ObjectStore(path).stat("")), lambda: _read(path))


def _read(path: str) -> list[PagedGroup]:
    store = ObjectStore(path)
    with store.filesystem.open_input_file(store.location.for_arrow) as file:
        meta = raw_footer(file)
    elements = _flat_columns(of(meta, 2)[1])
    return [PagedGroup(path, of(group, 3), _chunks(group, elements)) for group in of(meta, 4)[1]]


def _chunks(group: Struct, elements: dict[int, Struct]) -> dict[str, tuple[Struct, Struct]]:
    """Return the column chunks that have an offset index."""
    chunks = enumerate(of(group, 1)[1])
    known = [(elements[number], chunk) for number, chunk in chunks if number in elements and of(chunk, 4) is not None]
    return {of(element, 4).decode(): (element, chunk) for element, chunk in known}


def _pages(path: str, name: str, element: Struct, chunk: Struct) -> ColumnPages:
    store = ObjectStore(path)
    with store.filesystem.open_input_file(store.location.for_arrow) as file:
        index = read_struct(file.read_at(of(chunk, 5), of(chunk, 4)))
        bounds = file.read_at(of(chunk, 7), of(chunk, 6)) if of(chunk, 6) is not None else b""
    locations = np.array([[of(page, number) for number in (1, 2, 3)] for page in of(index, 1)[1]], np.int64)
    offsets, sizes, first_rows = locations.reshape(-1, 3).T
    return ColumnPages(name, element, of(chunk, 3), offsets, sizes, first_rows, bounds)


def _flat_columns(schema: Sequence[Struct]) -> dict[int, Struct]:
    """Return number of a leaf -> its element, for top-level columns that are not nested."""
    found, leaf, at = dict[int, Struct](), 0, 1
    for _ in range(of(schema[0], 5, 0)):
        last = _end(schema, at)
        if last == at + 1 and of(schema[at], 3) != _REPEATED:
            found[leaf] = schema[at]
        leaf += sum(not of(element, 5) for element in schema[at:last])
        at = last
    return found


_REPEATED: Final = 2


def _end(schema: Sequence[Struct], at: int) -> int:
    """Return the index after an element and all elements within it."""
    last = at + 1
    for _ in range(of(schema[at], 5, 0)):
        last = _end(schema, last)
    return last


def _statistics(data: bytes, kind: pa.DataType, pages: int, *, numbers: bool) -> list[ColumnStats]:
    if not data:
        return [ColumnStats()] * pages
    index = read_struct(data)
    lows, highs = ([_value(bound, kind, numbers=numbers) for bound in of(index, part)[1]] for part in (2, 3))
    nulls = of(index, 5, (0, [None] * pages))[1]
    empty = of(index, 1)[1]
    return [
        ColumnStats(nulls=count) if none else ColumnStats(low, high, count)
        for none, low, high, count in zip(empty, lows, highs, nulls, strict=True)
    ]


def _value(data: bytes, kind: pa.DataType, *, numbers: bool) -> Any:
    """Return a bound as a Python value; None for types that are not decoded.

    ``numbers`` tells that the column is stored as whole numbers. Decimals that are stored as bytes are not decoded.
    """
    try:
        if pa.types.is_string(kind):
            return data.decode()
        if pa.types.is_binary(kind):
            return data
        if not numbers:
            return None
        number = int.from_bytes(data, "little", signed=not pa.types.is_unsigned_integer(kind))
        if pa.types.is_decimal(kind):
            return Decimal(number).scaleb(-kind.scale)
        if pa.types.is_date32(kind):
            return dt.date(1970, 1, 1) + dt.timedelta(days=number)
        if pa.types.is_timestamp(kind) and kind.unit == "us":
            return dt.datetime(1970, 1, 1, tzinfo=dt.UTC if kind.tz else None) + dt.timedelta(microseconds=number)
        return number if pa.types.is_integer(kind) else None
    except (ValueError, OverflowError):
        return None
