"""Handles: frozen, picklable values that pass between the engine, the adapter and the executors.

An adapter makes them on the driver; what ``begin_*`` returns comes back to its ``finish_*``, and goes with each task to
its sinks. An adapter may subclass a handle to carry more of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, SupportsIndex

import pyarrow as pa

from trinity.calls import public
from trinity.errors import TrinityError
from trinity.spi.deletes import Deletes
from trinity.spi.files import DataFile
from trinity.spi.scan import NativeScan
from trinity.spi.schema import TableDefinition
from trinity.spi.sink import RowChangeParadigm
from trinity.spi.stamps import RowOrder

__all__ = [
    "CommitResult",
    "HistoryEntry",
    "InsertTableHandle",
    "MergeTableHandle",
    "ReadScope",
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
    """A table of one catalog: made by the adapter, pinned to a version by it or by the engine.

    Attributes:
        catalog, schema, table: its name.
        location: absolute folder or URI of the table.
        version: the version that a statement is pinned to, or None for the newest.
        id: :attr:`TableDefinition.id` of the table that a statement is pinned to, or None for whichever has the name.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that is no whole number.
    """

    catalog: str
    schema: str
    table: str
    location: str
    version: int | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.version, bool) or not (self.version is None or isinstance(self.version, SupportsIndex)):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Version '{self.version}' of '{self.full_name}' is no whole number; history() shows those there are.",
            )

    @property
    def full_name(self) -> str:
        """``catalog.schema.table``."""
        return f"{self.catalog}.{self.schema}.{self.table}"

    def pinned(self, version: int | None, id: str) -> TableHandle:  # noqa: A002 - the attribute's name
        """This handle for one table alone, should another come under its name, at a version or at its newest."""
        return replace(self, version=version, id=id)

    def same_place(self, other: TableHandle) -> bool:
        """True when both are handles of what stands in one place, at whatever versions."""
        return (self.catalog, self.location) == (other.catalog, other.location)

    def check_same(self, id: str) -> None:  # noqa: A002 - the attribute's name
        """Check that the table is still the one that the handle is pinned to, made whenever an adapter loads it.

        Args:
            id: of the table that has the name now.

        Raises:
            TrinityError: TRANSACTION_CONFLICT.
        """
        if self.id is not None and self.id != id:
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table '{self.full_name}' was dropped and made anew since this statement began; run it again.",
            )


@dataclass(frozen=True)
class WriteTarget:
    """Place and manner in which sinks write: made on the driver by ``begin_*``, and all that an executor needs.

    Attributes:
        folder: absolute folder or URI for new files.
        storage: physical Arrow schema of the files: the columns of the table in order, with the format's own
            names, types and field ids.
        statistics: physical columns whose bounds go into fragments.
        statement: unique prefix of the file names of this statement.
        partition_by: partition fields over the physical columns, as in :attr:`TableDefinition.partition_by`; each file
            holds rows of one partition. Empty for files of any rows.
        sync: whether files and their folders must be on disk before a sink says that it has finished.
        stamp: what rows have in :data:`~trinity.spi.STAMP`, unless they have something there; None for files without
            that column.
        ending: of the files' names: ``.parquet`` for rows of the table, another one for what no reader of the table's
            folder is to take for them.
    """

    folder: str
    storage: pa.Schema
    statistics: tuple[str, ...]
    statement: str
    partition_by: tuple[str, ...] = ()
    sync: bool = True
    stamp: int | None = None
    ending: str = ".parquet"


@dataclass(frozen=True)
class InsertTableHandle:
    """An append between ``begin_insert`` and ``finish_insert``.

    Attributes:
        table: the handle, pinned to the version that the statement saw.
        definition: the table at that version, which is given the catalog's name.
        target: where sinks write.
    """

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", replace(self.definition, catalog=self.table.catalog))

    def check_demands(self, now: TableDefinition) -> None:
        """Check that the rows may still be added, made by ``finish_insert`` and ``finish_merge`` in each attempt (M6).

        Args:
            now: the table as it is when the rows are committed.

        Raises:
            TrinityError: TRANSACTION_CONFLICT naming what rows have to meet since the statement began.
        """
        if new := now.demands_beyond(self.definition):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Rows of '{self.table.full_name}' must meet {new[0]} since this statement began; run it again.",
            )


@dataclass(frozen=True)
class RewriteTableHandle:
    """A compaction between ``begin_rewrite`` and ``finish_rewrite``, or ``begin_resolve`` and ``finish_resolve``.

    Attributes:
        table: the handle, pinned to the version that it folds.
        definition: the table at that version.
        target: where sinks write.
        replaced: the files that it replaces.
        kept: the files that stay, as they were, some of whose rows it may delete by position.
    """

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget
    replaced: tuple[DataFile, ...]
    kept: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class ReadScope:
    """The part of its target that a statement read: commits of others to it must not be overlooked (L7).

    Attributes:
        files: paths of the files of the pinned version that it read.
        bounds: column -> (smallest, largest) value, None for an open side. Only a row within all of them could have
            mattered to the statement; a column that is not named sets no bound.
    """

    files: frozenset[str] = frozenset()
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def concerns(self, file: DataFile) -> bool:
        """True when the file may hold a row that could have mattered."""
        return all(_may_overlap(file, column, low, high) for column, (low, high) in self.bounds.items())


def _may_overlap(file: DataFile, column: str, low: Any, high: Any) -> bool:
    known = file.bounds(column)
    if known is None:
        return True
    smallest, largest = known
    try:
        return bool((high is None or smallest <= high) and (low is None or low <= largest))
    except TypeError:  # bounds of another type: no knowledge
        return True


@dataclass(frozen=True)
class MergeTableHandle:
    """A row change between ``begin_merge`` and ``finish_merge`` (Trino's ``ConnectorMergeTableHandle``).

    Attributes:
        table: the handle passed to ``begin_merge``, pinned.
        insert: the handle under which the sinks' new rows are written.
        update_case_columns: case number -> columns that this UPDATE case changes (S5).
        paradigm: how the sinks are told of a changed row.
        scope: what the statement read; set by the engine before ``finish_merge``.
        deletes: path of a file -> its rows that are deleted by position, of those that have any; set by the engine
            before the sinks are made.
    """

    table: TableHandle
    insert: InsertTableHandle
    update_case_columns: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    paradigm: RowChangeParadigm = RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
    scope: ReadScope = field(default_factory=ReadScope)
    deletes: Mapping[str, Deletes] = field(default_factory=dict)


@dataclass(frozen=True)
class SplitSource:
    """One version of a table: all that a read needs. What :meth:`ConnectorMetadata.get_splits` returns.

    Attributes:
        version: the format's own version number.
        timestamp_ms: commit time, milliseconds since the epoch.
        definition: columns, key and properties at that version.
        storage: physical Arrow schema of the files (see :class:`WriteTarget`).
        files: live base and log files, each with its commit number.
        sidecar: files with tombstones that compaction took out of the base.
        native: how to read files that are not to be read one by one; ``storage`` then has the columns' own names.
        order: what is remembered of the order of rows, for files that are not in the order of their commits.
        commit: as of :class:`HistoryEntry`.
    """

    version: int
    timestamp_ms: int
    definition: TableDefinition
    storage: pa.Schema
    files: tuple[DataFile, ...]
    sidecar: tuple[DataFile, ...] = ()
    native: NativeScan | None = None
    order: RowOrder = field(default_factory=RowOrder)
    commit: str = ""

    @property
    def commit_id(self) -> str:
        """Return the id of the commit, the same as of its :class:`HistoryEntry`."""
        return self.commit or str(self.timestamp_ms)


@public
@dataclass(frozen=True)
class CommitResult:
    """Result of a write: returned by ``finish_*`` and ``truncate``, and by the engine to the user.

    Attributes:
        version: version of the table after the call.
        rows, files, bytes: what was written. Files and bytes are those of the sidecar too, rows are not.
        skipped: True when ``txn`` had been recorded before, so that nothing was written (L4).
    """

    version: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    skipped: bool = False


@public
@dataclass(frozen=True)
class LostCommit:
    """A commit that a repair takes back.

    Attributes:
        version: its number; None where what is damaged does not say.
        what: the damage, naming the file; of a commit that is whole what it did.
        damaged: False for one that is whole, and cannot be read because one before it is damaged.
    """

    version: int | None
    what: str
    damaged: bool = True


@public
@dataclass(frozen=True)
class RepairResult(CommitResult):
    """Result of ``session.repair``: ``skipped`` when nothing was damaged.

    Attributes:
        back_to: the version whose rows are current after the repair, or would be.
        lost: the commits behind it, newest first.
    """

    back_to: int = 0
    lost: tuple[LostCommit, ...] = ()


@dataclass(frozen=True)
class HistoryEntry:
    """One commit of a table, as ``history()`` shows it.

    Attributes:
        version: what ``version=`` takes (L10).
        timestamp_ms: commit time, milliseconds since the epoch.
        operation: ``create``, ``append``, ``compact``, ``alter``, ``vacuum`` or the format's own word.
        details: further facts, as text.
        commit: unique to the commit. A table that is put back to an earlier state uses version numbers a second time;
            by this a stream notices. Empty in a format that has nothing of the kind.
    """

    version: int
    timestamp_ms: int
    operation: str
    details: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""

    @property
    def commit_id(self) -> str:
        """Return what tells the commit from any other of its number: its id, or in a format without one its time."""
        return self.commit or str(self.timestamp_ms)


@public
@dataclass(frozen=True)
class VacuumResult:
    """Result of a vacuum: files and bytes removed.

    Attributes:
        files: number of Parquet files (data and sidecar) that were deleted.
        bytes: their size.
        oldest_version: the oldest version that can still be read.
    """

    files: int
    bytes: int
    oldest_version: int
