"""Parquet files by the paths of file lists, opened with pyarrow through the storage seam."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.storage.naming import columns_in
from trinity.storage.nested import conformed
from trinity.storage.renewing import with_renewed_keys
from trinity.storage.store import ObjectStore

__all__ = ["open_parquet", "parquet_footer", "parquet_schema", "stored_pages"]

_PAGE_ROWS: Final = 65_536
_R = TypeVar("_R")


def open_parquet(path: str) -> pq.ParquetFile:
    """Open a file, which the caller closes. Raises FileNotFoundError, and pyarrow's errors for a damaged file."""
    return _opened(path, pq.ParquetFile)


def parquet_footer(path: str) -> pq.FileMetaData:
    """Return the footer of a file. Raises as :func:`open_parquet`."""
    return _opened(path, pq.read_metadata)


def parquet_schema(path: str) -> pa.Schema:
    """Return the Arrow schema of a file. Raises as :func:`open_parquet`."""
    return _opened(path, pq.read_schema)


def _opened(path: str, way: Callable[..., _R]) -> _R:
    store = ObjectStore(path)
    return with_renewed_keys(store.location, lambda: way(store.location.for_arrow, filesystem=store.filesystem))


def stored_pages(path: str, storage: pa.Schema, most_rows: int = _PAGE_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data file, page by page, in storage form; a column that the file lacks is NULL.

    Args:
        path: the file.
        storage: the wanted columns.
        most_rows: maximum number of rows of a page.

    Raises:
        FileNotFoundError: and pyarrow's errors, as :func:`open_parquet`, with the first page.
    """
    with open_parquet(path) as file:
        in_file = file.schema_arrow
        present = columns_in(in_file, storage)
        for page in file.iter_batches(most_rows, columns=[name for name in present if name is not None]):
            columns = [
                pa.nulls(page.num_rows, f.type)
                if name is None
                else conformed(page.column(name), in_file.field(name), f)
                for f, name in zip(storage, present, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=storage)
