"""Parts of a batch: files, and the change columns. Few imports, since planning processes are short-lived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from trinity.spi import Column

CHANGE_COLUMNS: Final = (
    Column("_change_type", "string"),
    Column("_commit_version", "bigint"),
    Column("_commit_timestamp", "timestamp"),
)
"""The change columns, which follow the table's columns, named as in :meth:`trinity.Table.changes`."""
_AT_ONCE: Final = 16 * 1024 * 1024
"""Maximum bytes of small files that one task reads."""


@dataclass(frozen=True)
class SourceFile:
    """A Parquet file of a batch.

    Attributes:
        columns: the table's columns in it.
        version: the version of all its rows.
        timestamp_ms: when the version was committed, in milliseconds since the epoch.
        rows: True for rows of the version, which count as inserted; False for changes, each with its type.
        store: how the file's bucket is reached, for :func:`~trinity.storage.bucket_options.learn_options`; None on a
            disk. Workers that read a data source lack the environment that Spark gives to those of functions.
    """

    path: str
    bytes: int
    columns: tuple[Column, ...]
    version: int
    timestamp_ms: int
    rows: bool
    store: str | None = field(default=None, repr=False)


def grouped(files: Iterable[SourceFile]) -> list[list[SourceFile]]:
    """Return the files of each task, in their order: large files alone, small ones together."""
    found: list[list[SourceFile]] = []
    room = 0
    for file in files:
        if not found or file.bytes > room:
            found.append([])
            room = _AT_ONCE
        found[-1].append(file)
        room -= file.bytes
    return found
