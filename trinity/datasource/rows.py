"""Files of changes as Arrow pages with the columns of a stream. Runs in Spark's Python workers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from trinity.datasource.parts import CHANGE_COLUMNS, SourceFile
from trinity.engine.writing.casts import cast_array
from trinity.errors import TrinityError
from trinity.spi import Column
from trinity.storage.bucket_options import learn_options
from trinity.storage.parquet_files import open_parquet


def pages(files: Iterable[SourceFile], columns: Sequence[Column], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, with the stream's columns, those of :data:`CHANGE_COLUMNS` among them.

    Raises:
        TrinityError: BAD_DATA for a missing file; NUMERIC_VALUE_OUT_OF_RANGE for a value of a column that has become
            wider than the stream's.
    """
    for file in files:
        if file.store is not None:
            learn_options(file.store)
        try:
            with open_parquet(file.path) as parquet:
                for page in parquet.iter_batches():
                    yield _stream_page(page, file, columns, schema)
        except FileNotFoundError as error:
            raise TrinityError(
                "BAD_DATA",
                f"File '{file.path}' of version {file.version} is gone: a vacuum has taken it since the batch began. "
                "Start the query again, which makes it anew.",
            ) from error


def _stream_page(
    page: pa.RecordBatch, file: SourceFile, columns: Sequence[Column], schema: pa.Schema
) -> pa.RecordBatch:
    at = dt.datetime.fromtimestamp(file.timestamp_ms / 1000, dt.UTC)
    known: Mapping[object, str] = {column.identity: column.name for column in file.columns}
    constant = {
        "_commit_version": file.version,
        "_commit_timestamp": at,
        **({"_change_type": "insert"} if file.rows else {}),
    }
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        name = known.get(column.identity)
        if column in CHANGE_COLUMNS:
            name = None if column.name in constant else column.name
        if name is not None:
            arrays.append(cast_array(page.column(name), field.type, f"column '{column.name}' of the stream", "UTC"))
        else:
            arrays.append(pa.repeat(pa.scalar(constant.get(column.name), field.type), page.num_rows))
    return pa.record_batch(arrays, schema=schema)
