"""What adapters share: the storage seam, the Parquet sink, the commit loop, folder catalogs, vacuum."""

from trinity.storage.commits import COMMIT_TIMEOUT_S, CommitRaced, commit_loop, next_timestamp_ms
from trinity.storage.folders import FolderCatalog, FolderMetadata
from trinity.storage.orphans import delete_orphans
from trinity.storage.parquet_sink import ParquetPageSink, ParquetSinkProvider
from trinity.storage.store import AlreadyExists, Entry, ObjectStore, local_path

__all__ = [
    "COMMIT_TIMEOUT_S",
    "AlreadyExists",
    "CommitRaced",
    "Entry",
    "FolderCatalog",
    "FolderMetadata",
    "ObjectStore",
    "ParquetPageSink",
    "ParquetSinkProvider",
    "commit_loop",
    "delete_orphans",
    "local_path",
    "next_timestamp_ms",
]
