"""The stored row versions of a table, as they are: before any fold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.reading.data_files import positions_left
from trinity.engine.reading.local.selection import to_user_columns
from trinity.spi import DataFile, SplitSource
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import reporting_unreadable_file, stored_pages

_ORIGIN = pa.schema(
    [("_commit_version", pa.int64()), ("_file", pa.string()), ("_pos", pa.int64()), ("_tier", pa.string())]
)


def row_versions(splits: SplitSource) -> pa.RecordBatchReader:
    """Return stored row versions with ``_commit_version`` BIGINT, ``_file``, ``_pos`` and ``_tier``, for ``log()``."""
    schema = pa.schema([*(c.to_arrow() for c in splits.definition.visible), *_ORIGIN])
    files = [*splits.files, *splits.sidecar]
    return pa.RecordBatchReader.from_batches(
        schema, (page for file in files for page in _of_file(splits, file, schema))
    )


def _of_file(splits: SplitSource, file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    stored = dict(zip(splits.definition.columns, splits.storage, strict=True))
    columns, positions, first = splits.definition.visible, positions_left(file), 0
    with reporting_unreadable_file(file.path):
        for page in stored_pages(file.path, in_file(pa.schema([stored[c] for c in columns]), file.partition)):
            begin, end = np.searchsorted(positions, (first, first + page.num_rows))
            here = positions[begin:end]
            rows = to_user_columns(page.take(as_arrow(here - first)), columns)
            origin = (file.commit, file.path, None, file.tier.value)
            facts = [pa.repeat(pa.scalar(v, f.type), len(here)) for v, f in zip(origin, _ORIGIN, strict=True)]
            facts[2] = as_arrow(here, pa.int64())
            yield pa.RecordBatch.from_arrays([*rows.columns, *facts], schema=schema)
            first += page.num_rows
