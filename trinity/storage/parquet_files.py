"""Parquet files by the paths that lists of files have, opened with pyarrow through the seam."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.storage.store import ObjectStore

__all__ = ["open_parquet", "parquet_footer", "parquet_schema"]


def open_parquet(path: str) -> pq.ParquetFile:
    """A file, to be closed. Raises FileNotFoundError, and what pyarrow raises for one that is damaged."""
    store = ObjectStore(path)
    return pq.ParquetFile(store.location.for_arrow, filesystem=store.filesystem)


def parquet_footer(path: str) -> pq.FileMetaData:
    """The footer of a file. Raises as :func:`open_parquet` does."""
    store = ObjectStore(path)
    return pq.read_metadata(store.location.for_arrow, filesystem=store.filesystem)


def parquet_schema(path: str) -> pa.Schema:
    """A file's columns. Raises as :func:`open_parquet` does."""
    store = ObjectStore(path)
    return pq.read_schema(store.location.for_arrow, filesystem=store.filesystem)
