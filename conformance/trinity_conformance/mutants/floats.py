"""Faults of adapters in the bounds of floating-point columns: the in-memory format, which lists none by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.memory import MemoryMetadata
from trinity.spi import ColumnStats, DataFile, PageSink, SinkId, SplitSource, TableHandle, WriteTarget
from trinity.storage import ParquetSinkProvider


class _Bounded(MemoryMetadata):
    """Metadata that list bounds of floating-point columns, which they take from the files."""

    def get_splits(self, table: TableHandle) -> SplitSource:
        splits = super().get_splits(table)
        names = splits.definition.stored_names
        return replace(splits, files=tuple(self._with_bounds(file, names) for file in splits.files))

    def _with_bounds(self, file: DataFile, names: Mapping[str, str]) -> DataFile:
        rows = pq.read_table(file.path)
        floats = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
        return replace(file, stats={**file.stats, **{names.get(c, c): self._stats(rows[c]) for c in floats}})

    def _stats(self, column: pa.ChunkedArray) -> ColumnStats:
        values = column.drop_null().to_pylist()
        return ColumnStats(*(self.bounds(values) if values else (None, None)), column.null_count)

    def bounds(self, values: Sequence[float]) -> tuple[float | None, float | None]:
        """Return the smallest and the largest of the values of a file."""
        raise NotImplementedError


class NaNIsLargest(_Bounded):
    """The largest value of a file is NaN if it has one, with which no comparison is true (against L9)."""

    def bounds(self, values: Sequence[float]) -> tuple[float | None, float | None]:
        ordered = sorted(values, key=lambda value: (isnan(value), value))
        return ordered[0], ordered[-1]


class NaNIsBothBounds(_Bounded):
    """The smallest and the largest value of a file are NaN if it has one (against L9)."""

    def bounds(self, values: Sequence[float]) -> tuple[float | None, float | None]:
        return (nan, nan) if any(map(isnan, values)) else (min(values), max(values))


class BoundsWithoutSignOfZero(_Bounded):
    """A bound that is -0.0 is listed as 0.0, which is larger to who compares bits or text (against L9)."""

    def bounds(self, values: Sequence[float]) -> tuple[float | None, float | None]:
        numbers = [value + 0.0 for value in values if not isnan(value)]
        return min(numbers, default=None), max(numbers, default=None)


class _BoundedPages(PageSink):
    """A sink whose files are written again, with bounds of all columns."""

    def __init__(self, inner: PageSink) -> None:
        self._inner = inner

    def append_page(self, page: pa.RecordBatch) -> None:
        self._inner.append_page(page)

    def finish(self) -> list[bytes]:
        return [_with_all_bounds(json.loads(fragment)) for fragment in self._inner.finish()]

    def abort(self) -> None:
        self._inner.abort()


def _with_all_bounds(fragment: dict[str, Any]) -> bytes:
    path = fragment["path"]
    pq.write_table(pq.read_table(path), path)
    return json.dumps({**fragment, "size": Path(path).stat().st_size}).encode()


class FloatsHaveBoundsInFooters(ParquetSinkProvider):
    """Files have bounds of floats, as Arrow writes them, which leave out NaN: Spark passes over it (against L9)."""

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        return _BoundedPages(super().create_page_sink(target, sink))


FLOAT_BOUNDS: Final = (NaNIsLargest, NaNIsBothBounds, BoundsWithoutSignOfZero)
"""Metadata with a fault each."""
