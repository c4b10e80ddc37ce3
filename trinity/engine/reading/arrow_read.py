"""A merged read in the process, as Arrow data: no Spark, no JVM.

Rows that a read does not show are told by their places (:mod:`trinity.engine.reading.passed_rows`), so that all that
is left to do is to read files, and to leave these rows out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trinity.calls.spark import spark_errors
from trinity.engine.appending.casts import cast_array
from trinity.engine.reading.arrow_fold import unreadable
from trinity.engine.reading.deleted_rows import NOTHING_PASSED, leaves_out, words_left_out
from trinity.engine.reading.merged_read import filtered_read
from trinity.engine.reading.passed_rows import Outlook
from trinity.engine.reading.scan import tiers
from trinity.engine.target import Host
from trinity.errors import TrinityError
from trinity.merge.parse import merge_spec
from trinity.merge.quoting import quoted
from trinity.spi import Column, DataFile, Origin, SplitSource, arrival_order
from trinity.storage import stored_pages

__all__ = ["arrow_rows"]


def arrow_rows(
    session: Host, splits: SplitSource, columns: Sequence[str] | None, where: str | None, limit: int | None
) -> pa.Table:
    """The merged rows of a version, as of :meth:`trinity.Table.to_arrow`. Raises as that does."""
    if limit is not None and limit < 0:
        raise TrinityError("INVALID_ARGUMENTS", f"limit={limit} is less than 0.")
    wanted = _wanted(splits, columns)
    pages = _merged_pages(splits, wanted) if where is None else None
    return _at_most(
        pages or _pages_of_spark(session, splits, wanted, where, limit),
        pa.schema([c.to_arrow() for c in wanted]),
        limit,
    )


def _wanted(splits: SplitSource, names: Sequence[str] | None) -> Sequence[Column]:
    shown = replace(splits.definition, columns=tuple(splits.definition.visible))
    if names is None:
        return shown.columns
    if len({name.lower() for name in names}) < len(names):
        raise TrinityError("DUPLICATE_COLUMN_NAME", f"A column is named twice among {', '.join(names)}.")
    return [shown.column(name) for name in names]


def _at_most(pages: Iterable[pa.RecordBatch], schema: pa.Schema, limit: int | None) -> pa.Table:
    found, left = list[pa.RecordBatch](), sys.maxsize if limit is None else limit
    for page in pages:
        found.append(page.slice(0, left))
        left -= len(found[-1])
        if not left:
            break
    return pa.Table.from_batches(found, schema)


def _pages_of_spark(
    session: Host, splits: SplitSource, columns: Sequence[Column], where: str | None, limit: int | None
) -> list[pa.RecordBatch]:
    rows = filtered_read(session, splits, where).select(*[quoted(c.name) for c in columns])
    with spark_errors():
        found = (rows if limit is None else rows.limit(limit)).toArrow()
    return [_logical(page, columns) for page in found.to_batches()]


def _logical(page: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    named = zip(columns, page.columns, strict=True)
    arrays = [cast_array(a, c.to_arrow().type, f"column '{c.name}'", "UTC") for c, a in named]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([c.to_arrow() for c in columns]))


def _merged_pages(splits: SplitSource, columns: Sequence[Column]) -> Iterator[pa.RecordBatch] | None:
    """The merged rows of a version in their logical types, in no order; None where they are left to Spark.

    Those are tables that fold by column, files of other engines, keys and orders that Arrow compares otherwise, and
    logs of more keys than the process should hold.

    Args:
        splits: the version.
        columns: the visible columns that are wanted.

    Raises:
        TrinityError: BAD_DATA naming a corrupt or missing file.
    """
    if splits.native is not None or any(f.origin is not Origin.OWN for f in splits.files):
        return None
    passed: Mapping[str, np.ndarray] | None = NOTHING_PASSED
    if splits.definition.keyed and tiers(splits.files)[1]:
        outlook = Outlook.of(splits, merge_spec(splits.definition), least=0)
        passed = outlook.passed(None) if outlook is not None and outlook.is_searchable else None
    if passed is None:
        return None
    return _Read(splits, tuple(columns)).pages(sorted(splits.files, key=arrival_order), passed)


@dataclass(frozen=True)
class _Read:
    splits: SplitSource
    columns: tuple[Column, ...]

    def pages(self, files: Sequence[DataFile], passed: Mapping[str, np.ndarray]) -> Iterator[pa.RecordBatch]:
        """The rows of files but for deleted ones and those of some bits; several files are read side by side."""
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            for pages in pool.map(lambda file: list(self._file(file, passed)), files):
                yield from pages

    def _file(self, file: DataFile, passed: Mapping[str, np.ndarray]) -> Iterator[pa.RecordBatch]:
        stays = _stays(file, passed)
        storage = self.splits.storage
        stored = dict(zip(self.splits.definition.columns, storage, strict=True))
        wanted = pa.schema([stored[column] for column in self.columns])
        first = 0
        with unreadable(file.path):
            for page in stored_pages(file.path, wanted):
                end = first + page.num_rows
                yield _logical(page if stays is None else page.filter(pa.array(stays[first:end])), self.columns)
                first = end


def _stays(file: DataFile, passed: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """True for each row of a file that is shown; None where all are."""
    if not leaves_out(file, passed):
        return None
    words = words_left_out(file, passed.get(file.path))
    stays: np.ndarray = np.unpackbits(words.view(np.uint8), count=file.rows, bitorder="little") == 0
    return stays
