"""Handles: frozen, picklable values that pass between the engine, the adapter and the executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from trinity.spi.files import DataFile
from trinity.spi.schema import TableDefinition

__all__ = [
    "CommitResult",
    "HistoryEntry",
    "InsertTableHandle",
    "MergeTableHandle",
    "RewriteTableHandle",
    "SplitSource",
    "TableHandle",
    "TransactionId",
    "VacuumResult",
    "WriteTarget",
]

TransactionId = tuple[str, int]
"""(application, version): a retry with the same or a lower version is a no-op (L4)."""


@dataclass(frozen=True)
class TableHandle:
    """A table of one catalog.

    Attributes:
        catalog, schema, table: its name.
        location: absolute folder or URI of the table.
        version: the version that a statement is pinned to, or None for the newest.
    """

    catalog: str
    schema: str
    table: str
    location: str
    version: int | None = None

    @property
    def full_name(self) -> str:
        """``catalog.schema.table``."""
        return f"{self.catalog}.{self.schema}.{self.table}"


@dataclass(frozen=True)
class WriteTarget:
    """Where and how sinks write; all that an executor needs.

    Attributes:
        folder: absolute folder or URI for new files.
        storage: physical Arrow schema of the files: the columns of the table in order, with the format's own
            names, types and field ids.
        statistics: physical columns whose bounds go into fragments.
        statement: unique prefix of the file names of this statement.
    """

    folder: str
    storage: pa.Schema
    statistics: tuple[str, ...]
    statement: str


@dataclass(frozen=True)
class InsertTableHandle:
    """What :meth:`ConnectorMetadata.begin_insert` returns.

    Attributes:
        table: the handle, pinned to the version that the statement saw.
        definition: the table at that version.
        target: where sinks write.
        reads: True when the rows were derived from a read of the pinned version, so that ``finish_insert``
            must refuse (TRANSACTION_CONFLICT) when other rows were committed since.
    """

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget
    reads: bool = False


@dataclass(frozen=True)
class RewriteTableHandle:
    """What :meth:`ConnectorMetadata.begin_rewrite` returns: the files that compaction replaces, and where it writes."""

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget
    replaced: tuple[DataFile, ...]


@dataclass(frozen=True)
class MergeTableHandle:
    """What :meth:`ConnectorMetadata.begin_merge` returns (Trino's ``ConnectorMergeTableHandle``).

    Attributes:
        table: the handle passed to ``begin_merge``, pinned.
        insert: the handle under which the sinks' new rows are written.
        update_case_columns: case number -> columns that this UPDATE case changes (S5).
    """

    table: TableHandle
    insert: InsertTableHandle
    update_case_columns: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SplitSource:
    """One version of a table: all that a read needs.

    Attributes:
        version: the format's own version number.
        timestamp_ms: commit time, milliseconds since the epoch.
        definition: columns, key and properties at that version.
        storage: physical Arrow schema of the files (see :class:`WriteTarget`).
        files: live base and log files, each with its commit number.
        sidecar: files with tombstones that compaction took out of the base.
    """

    version: int
    timestamp_ms: int
    definition: TableDefinition
    storage: pa.Schema
    files: tuple[DataFile, ...]
    sidecar: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class CommitResult:
    """What a write did.

    Attributes:
        version: version of the table after the call.
        rows, files, bytes: what was written.
        skipped: True when ``txn`` had been recorded before, so that nothing was written (L4).
    """

    version: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    skipped: bool = False


@dataclass(frozen=True)
class HistoryEntry:
    """One commit of a table, as ``history()`` shows it.

    Attributes:
        version: what ``version=`` takes (L10).
        timestamp_ms: commit time, milliseconds since the epoch.
        operation: ``create``, ``append``, ``compact``, ``alter``, ``vacuum`` or the format's own word.
        details: further facts, as text.
    """

    version: int
    timestamp_ms: int
    operation: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VacuumResult:
    """What a vacuum removed.

    Attributes:
        files: number of Parquet files (data and sidecar) that were deleted.
        bytes: their size.
        oldest_version: the oldest version that can still be read.
    """

    files: int
    bytes: int
    oldest_version: int
