"""Parquet files by the paths of file lists, opened with pyarrow through the storage seam."""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice, repeat, takewhile
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trinity.arrays import as_arrow
from trinity.errors import TrinityError
from trinity.loggers import logger
from trinity.spi import DataFile
from trinity.storage.cache import Cache
from trinity.storage.errors import system_trouble, with_renewed_credentials
from trinity.storage.file_schema import columns_in, conformed, values_of_absent
from trinity.storage.old_calendar import julian_columns
from trinity.storage.page_index import MOST_BY_PAGE, PagedGroup, paged_groups
from trinity.storage.page_reads import rows_of_pages
from trinity.storage.store import ObjectStore

_PAGE_ROWS: Final = 65_536
_MOST_CHUNKS: Final = 2_000
"""The page index of a file with more column chunks is not used, as its footer is decoded in Python."""
_R = TypeVar("_R")


def open_parquet(path: str) -> pq.ParquetFile:
    """Open a file, which the caller closes. Raises FileNotFoundError, and pyarrow's errors for a damaged file."""
    return _opened(path, partial(pq.ParquetFile, coerce_int96_timestamp_unit="us"))


def parquet_footer(path: str) -> pq.FileMetaData:
    """Return the footer of a file. Raises as :func:`open_parquet`."""
    return _opened(path, pq.read_metadata)


def parquet_schema(path: str) -> pa.Schema:
    """Return the Arrow schema of a file. Raises as :func:`open_parquet`."""
    return _opened(path, pq.read_schema)


def _opened(path: str, way: Callable[..., _R]) -> _R:
    store = ObjectStore(path)
    return with_renewed_credentials(store.location, lambda: way(store.location.for_arrow, filesystem=store.filesystem))


def rows_in(file: DataFile) -> int:
    """Return the number of a file's rows, deleted ones too; from its footer, if the format's metadata lacks it.

    Raises:
        TrinityError: BAD_DATA naming the file, where its footer cannot be read.
    """
    if file.rows_known:
        return file.rows
    with reporting_unreadable_file(file.path):
        return _counts.get(file.path, lambda: parquet_footer(file.path).num_rows)


def live_rows_in(files: Iterable[DataFile]) -> int:
    """Return the number of live rows of files; a damaged file, whose rows are unknown, counts as empty."""
    every = list(files)
    unknown = [file for file in every if not file.rows_known]
    found = zip(unknown, _counted(unknown), strict=True)
    counted = sum(max(0, replace(file, rows=rows).live_rows) for file, rows in found)
    return sum(file.live_rows for file in every if file.rows_known) + counted


def have_more_rows(files: Iterable[DataFile], most: int) -> bool:
    """Return whether files have more than ``most`` rows, deleted ones too.

    Footers are read only where the known numbers do not decide, and only until they do. A damaged file counts as in
    :func:`live_rows_in`.
    """
    every = list(files)
    found = sum(file.rows for file in every if file.rows_known)
    unknown = [file for file in every if not file.rows_known] if found <= most else []
    return any(rows > most for rows in accumulate(_counted(unknown), initial=found))


def _counted(files: Sequence[DataFile]) -> Iterator[int]:
    """Return the numbers of rows of files; several threads read their footers.

    A damaged file has no rows, and a warning names it: it must not keep its table from being truncated or repaired.
    """

    def count(file: DataFile) -> int:
        try:
            return rows_in(file)
        except TrinityError as error:
            if error.code != "BAD_DATA":
                raise
            _log.warning("The rows of a file are not counted: %s", error)  # the error names the file
            return 0

    parts = (partial(count, file) for file in files)
    return results_ahead(parts, _FOOTERS_AT_ONCE, _FOOTERS_AT_ONCE) if files else iter(())


_FOOTERS_AT_ONCE: Final = 8
_counts: Final[Cache[str, int]] = Cache(100_000)
_log: Final = logger("trinity.storage")


def stored_pages(path: str, storage: pa.Schema, most_rows: int = _PAGE_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file, page by page, in storage form; a column that the file lacks is NULL.

    Raises, with the first page:
        FileNotFoundError: there is no file; pyarrow's errors for a damaged one.
    """
    with open_parquet(path) as file:
        yield from _pages(path, file, storage, range(file.num_row_groups), most_rows)


def stored_row_groups(
    path: str,
    storage: pa.Schema,
    wanted: Callable[[pq.FileMetaData], Sequence[int]],
    rows_wanted: Callable[[pa.Schema, PagedGroup, int], np.ndarray | None] | None = None,
) -> Iterator[tuple[np.ndarray | slice, pa.RecordBatch]]:
    """Yield pages of some row groups of a data file, each with the positions of its rows.

    Raises as :func:`stored_pages`.

    Args:
        path: the file.
        storage: the wanted columns.
        wanted: chooses row groups by the footer.
        rows_wanted: chooses rows of such a row group, by the file's schema, the group's page index and the position of
            the group's first row. It returns row numbers within the group, ascending, or None for all rows.
    """
    with open_parquet(path) as file:
        footer = file.metadata
        by_page = footer.num_columns * footer.num_row_groups <= _MOST_CHUNKS
        by_page &= not julian_columns(footer)  # whose days are checked as whole pages are read
        for group in wanted(footer):
            first = sum(footer.row_group(before).num_rows for before in range(group))
            if rows_wanted is not None and by_page:
                paged = paged_groups(path)[group]
                rows = rows_wanted(file.schema_arrow, paged, first)
                found = None if rows is None else rows_of_pages(path, file.schema_arrow, storage, paged, rows)
                if found is not None:
                    yield rows + first, found
                    continue
            for page in _pages(path, file, storage, [group], _PAGE_ROWS):
                yield slice(first, first + page.num_rows), page
                first += page.num_rows


def stored_rows(path: str, storage: pa.Schema, positions: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Yield the rows at some positions, ascending, of a data file. Few rows are read by their pages alone.

    Raises as :func:`stored_pages`.
    """

    def groups(footer: pq.FileMetaData) -> list[int]:
        ends = np.cumsum([footer.row_group(group).num_rows for group in range(footer.num_row_groups)])
        found: list[int] = np.unique(np.searchsorted(ends, positions, "right")).tolist()
        return found

    def within(_: pa.Schema, group: PagedGroup, first: int) -> np.ndarray | None:
        mine = _between(positions, first, first + group.rows) - first
        return mine if len(mine) <= group.rows * MOST_BY_PAGE else None

    # in a bucket few large reads are faster than many small ones
    by_page = within if ObjectStore(path).location.on_disk else None
    for found, page in stored_row_groups(path, storage, groups, by_page):
        if isinstance(found, slice):
            mine = _between(positions, found.start, found.stop) - found.start
            page = page if len(mine) == page.num_rows else page.take(as_arrow(mine))
        if page.num_rows:
            yield page


def _between(positions: np.ndarray, first: int, end: int) -> np.ndarray:
    return positions[slice(*np.searchsorted(positions, (first, end)))]


def _pages(
    path: str, file: pq.ParquetFile, storage: pa.Schema, groups: Sequence[int], most_rows: int
) -> Iterator[pa.RecordBatch]:
    in_file, julian = file.schema_arrow, julian_columns(file.metadata)
    present = columns_in(in_file, storage)
    names = [name for name in present if name is not None]
    for page in file.iter_batches(most_rows, row_groups=groups, columns=names):
        columns = [
            values_of_absent(f, page.num_rows) if name is None else conformed(page.column(name), in_file.field(name), f)
            for f, name in zip(storage, present, strict=True)
        ]
        for column, name in zip(columns, present, strict=True) if julian else ():
            if name is not None and any(of == name or of.startswith(f"{name}.") for of in julian):
                _check_days(path, name, column)
        yield pa.RecordBatch.from_arrays(columns, schema=storage)


_DAY: Final = dt.date(1582, 10, 15)
_MOMENT: Final = dt.datetime(1900, 1, 1)
"""The first instant from which Spark's conversion changes nothing: before, the zones of the calendars differ, too.

From :data:`_DAY` on both calendars have the same days.
"""


class OldDays(TrinityError):
    """The error of a value that only Spark converts."""


def _check_days(path: str, column: str, values: pa.Array) -> None:
    """Refuse dates and timestamps of the Julian calendar that differ from those of today's.

    Raises:
        OldDays: NOT_SUPPORTED naming the file and the column.
    """
    for part in _parts(values):
        first = _DAY if pa.types.is_date(part.type) else _MOMENT
        least = pc.min(part).cast(pa.date32() if first is _DAY else pa.timestamp("us"))
        if least.is_valid and pc.less(least, pa.scalar(first, least.type)).as_py():
            raise OldDays(
                "NOT_SUPPORTED",
                f"'{path}' was written by the Julian calendar, and column '{column}' has a value before {first}, which "
                "only Spark converts: read the table by to_arrow() with engine='auto', by to_df(), or with "
                "engine='spark'.",
            )


def _parts(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of dates and timestamps within a column."""
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield values
    elif pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _parts(part)
    elif pa.types.is_map(kind):
        yield from _parts(values.keys)
        yield from _parts(values.items)
    elif pa.types.is_list(kind):
        yield from _parts(values.flatten())


@contextmanager
def reporting_unreadable_file(path: str) -> Iterator[None]:
    """Raise BAD_DATA for a data file that is missing or damaged; other errors for trouble of the store or system."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (OSError, MemoryError, pa.ArrowException) as error:
        damaged = TrinityError("BAD_DATA", f"'{path}' cannot be read ({error}).")
        raise system_trouble(error, path) or damaged from error


def check_not_missing(files: Iterable[DataFile]) -> None:
    """Check that files exist, before a plan is made that opens them. Raises BAD_DATA naming a missing file."""
    for file in files:
        if not ObjectStore(file.path).exists(""):
            raise missing_file(file.path)


def missing_file(path: str) -> TrinityError:
    """Return the error of a data file that is missing."""
    return TrinityError(
        "BAD_DATA",
        f"A data file is missing: {path}. Restore it from a copy, or read an older version of the table "
        "that does not need it.",
    )


_MOST_AHEAD: Final = 4

_T = TypeVar("_T")


def read_ahead(items: Iterable[_T]) -> Iterator[_T]:
    """Yield the items of an iterable; a thread computes the next few ahead. Raises the iterable's errors."""
    source = iter(items)
    for found in takewhile(bool, results_ahead(repeat(lambda: list(islice(source, 1))), 1, _MOST_AHEAD)):
        yield from found


def results_ahead(parts: Iterable[Callable[[], _T]], threads: int, ahead: int) -> Iterator[_T]:
    """Yield the results of the parts in their order, computed ahead by threads. Raises the parts' errors.

    Closing the iterator early does not join the threads: a finalizer may run in a starting thread, and deadlock.
    """
    waiting = deque[Future[_T]]()
    pool, wait = ThreadPoolExecutor(threads), True
    try:
        for part in parts:
            waiting.append(pool.submit(part))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except GeneratorExit:
        wait = False
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)
