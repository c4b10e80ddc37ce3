"""Handles: frozen, picklable values that pass between the engine, the adapter and the executors.

An adapter makes them on the driver. The handle that a ``begin_*`` returns goes to the sinks of each task, and back to
the ``finish_*``. An adapter may subclass a handle to carry further facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, SupportsIndex, TypeVar

import pyarrow as pa

from trinity.calls import public
from trinity.display import InNotebooks
from trinity.errors import TrinityError
from trinity.spi.files import DataFile, Deletes, RowOrder, arrival_order
from trinity.spi.operations import KEEPS_ROWS
from trinity.spi.scan import NativeScan
from trinity.spi.schema import TableDefinition
from trinity.spi.sink import RowChangeParadigm

TransactionId = tuple[str, int]
"""(application, version): a retry with the same or a lower version is a no-op (L4)."""


@dataclass(frozen=True)
class TableHandle:
    """A table of one catalog. The adapter makes it; the adapter or the engine pins it to a version.

    Attributes:
        catalog, schema, table: the parts of its name.
        location: absolute folder or URI of the table.
        version: the version that a statement is pinned to, or None for the newest.
        id: :attr:`TableDefinition.id` of the table that a statement is pinned to, or None for any table of the name.

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
        """Return this handle, pinned to the table with an id, and to a version of it; None for the newest."""
        return replace(self, version=version, id=id)

    def named(self, definition: TableDefinition) -> TableDefinition:
        """Return a definition under the table's name; a renamed table may still have its old name on record."""
        return replace(definition, catalog=self.catalog, schema=self.schema, name=self.table)

    def same_place(self, other: TableHandle) -> bool:
        """Return whether both handles have the same catalog and location; versions do not count."""
        return (self.catalog, self.location) == (other.catalog, other.location)

    def check_same(self, id: str) -> None:  # noqa: A002 - the attribute's name
        """Check that the table is still the one that the handle is pinned to. An adapter calls it on every load.

        Args:
            id: the id of the table that has the name now.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when it is another table.
        """
        if self.id is not None and self.id != id:
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"Table '{self.full_name}' was dropped and made anew since this statement began; run it again.",
            )


class _Version(Protocol):
    @property
    def definition(self) -> TableDefinition: ...

    @property
    def oldest(self) -> int: ...


_V = TypeVar("_V", bound=_Version)


def version_at(
    table: TableHandle, newest: int, read: Callable[[int], _V], oldest: Callable[[_V], int] = lambda at: at.oldest
) -> _V:
    """Return the handle's version, or the newest.

    Args:
        table: the handle.
        newest: number of the newest version.
        read: reads a version; raises BAD_DATA for a damaged one.
        oldest: returns the number of the oldest readable version, given the newest version.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that does not exist, or no longer; TRANSACTION_CONFLICT for a
            table that was made anew; errors of ``read``.
    """
    try:
        current = read(newest)
    except TrinityError as error:
        if error.code == "BAD_DATA" and table.version is not None and 0 <= table.version < newest:
            return read(table.version)  # it may not need the damaged file
        raise
    table.check_same(current.definition.id)
    if table.version is None or table.version == newest:
        return current
    if not (first := oldest(current)) <= table.version < newest:
        raise no_such_version(table, first, newest)
    return read(table.version)


def no_such_version(table: TableHandle, oldest: int, newest: int) -> TrinityError:
    """Return the error for a version that does not exist, or no longer exists."""
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one is "
        f"{oldest}, the newest {newest}.",
    )


@dataclass(frozen=True)
class WriteTarget:
    """The target of a statement's sinks: where and how they write.

    ``begin_*`` makes it on the driver; an executor needs nothing else.

    Attributes:
        folder: absolute folder or URI for new files.
        storage: physical Arrow schema of the files: the columns of the table in order, with the format's own
            names, types and field ids.
        statistics: physical columns whose bounds go into fragments.
        statement: unique prefix of the file names of this statement.
        partition_by: partition fields over the physical columns, as in :attr:`TableDefinition.partition_by`; each file
            holds rows of one partition. Empty for a table without partitions.
        sync: whether files and their folders must be on disk before a sink finishes.
        stamp: value of :data:`~trinity.spi.STAMP` for rows without a stamp; None for files without that column.
        ending: ending of the file names: ``.parquet`` for rows of the table; another one for files that readers of the
            table's folder must not take for rows.
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
        definition: the table's definition at that version, under the handle's name.
        target: where sinks write.
    """

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", self.table.named(self.definition))

    def check_demands(self, now: TableDefinition) -> None:
        """Check that no constraint was added meanwhile, in each attempt of ``finish_insert`` and ``finish_merge`` (M6).

        Args:
            now: the table's definition when the rows are committed.

        Raises:
            TrinityError: TRANSACTION_CONFLICT naming a constraint that was added since the statement began.
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
        table: the handle, pinned to the version that the compaction folds.
        definition: the table's definition at that version.
        target: where sinks write.
        replaced: the files that the compaction replaces.
        kept: the files that stay as they are; a resolve may delete rows of them by position.
        sidecar: the files of the sidecar that the compaction folds; None if the caller does not say.
    """

    table: TableHandle
    definition: TableDefinition
    target: WriteTarget
    replaced: tuple[DataFile, ...]
    kept: tuple[DataFile, ...] = ()
    sidecar: tuple[DataFile, ...] | None = None


@dataclass(frozen=True)
class ReadScope:
    """The part of its target that a statement read. A concurrent commit to that part is a conflict (L7).

    Attributes:
        files: paths of the files of the pinned version that the statement read.
        bounds: column -> (smallest, largest) value, None for an open side. Only rows within all bounds could have
            changed the statement's result; a column that is not named sets no bound.
    """

    files: frozenset[str] = frozenset()
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def concerns(self, file: DataFile) -> bool:
        """Return whether the file may hold a row within the bounds."""
        return all(_may_overlap(file, column, low, high) for column, (low, high) in self.bounds.items())


def _may_overlap(file: DataFile, column: str, low: Any, high: Any) -> bool:
    known = file.bounds(column)
    if known is None:
        return True
    smallest, largest = known
    try:
        return bool((high is None or smallest <= high) and (low is None or low <= largest))
    except TypeError:  # bounds of different types cannot be compared
        return True


@dataclass(frozen=True)
class MergeTableHandle:
    """A row change between ``begin_merge`` and ``finish_merge`` (Trino's ``ConnectorMergeTableHandle``).

    Attributes:
        table: the handle passed to ``begin_merge``, pinned.
        insert: the handle under which the sinks' new rows are written.
        row_id: name of the merge page's last column, the row id: a STRUCT. For a plain table it is (``file`` STRING,
            ``pos`` BIGINT): the file's path and the row's position in it. For a keyed table it has all stored columns
            under their names; those that are neither key nor ordering columns are NULL, except in rows that leave a
            tombstone (U5).
        update_case_columns: case number -> columns that this UPDATE case changes (S5).
        paradigm: how the sinks receive a changed row.
        insert_layout: columns by whose hash inserted rows go to sinks; empty for none.
        update_layout: fields of the row id by whose hash changed rows go to sinks; empty for the whole row id. All
            changes of a file that is rewritten must reach one sink: ``("file",)``.
        scope: what the statement read; set by the engine before ``finish_merge``.
        deletes: path -> rows deleted by position, for the files that have such rows; set by the engine before the sinks
            are made.
        before: the table's definition, if the commit replaces it by that of ``insert``, which has further columns;
            else None.
        in_place: True if both halves of an update reach one sink, and the new row has only the columns that some
            UPDATE case changes: the others are NULL, and keep their stored values. Set by the engine, for a connector
            that takes such rows.
    """

    table: TableHandle
    insert: InsertTableHandle
    row_id: str
    update_case_columns: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    paradigm: RowChangeParadigm = RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
    insert_layout: tuple[str, ...] = ()
    update_layout: tuple[str, ...] = ()
    scope: ReadScope = field(default_factory=ReadScope)
    deletes: Mapping[str, Deletes] = field(default_factory=dict)
    before: TableDefinition | None = None
    in_place: bool = False

    @property
    def updated_columns(self) -> frozenset[str]:
        """The columns that some UPDATE case changes."""
        return frozenset(name for names in self.update_case_columns.values() for name in names)


@dataclass(frozen=True)
class SplitSource:
    """One version of a table, with everything that a read needs. :meth:`ConnectorMetadata.get_splits` returns it.

    Attributes:
        version: the format's own version number.
        timestamp_ms: commit time, milliseconds since the epoch.
        definition: columns, key and properties at that version.
        storage: physical Arrow schema of the files (see :class:`WriteTarget`).
        files: live base and log files, each with its commit number.
        sidecar: files with tombstones that compaction took out of the base.
        native: the scan of files that only the format's own reader understands, or None; with one ``storage`` has the
            columns' own names.
        order: the table's record of the order of its rows, for rows that commit numbers do not order.
        commit: id of the commit, as :attr:`HistoryEntry.commit`.
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
        """Id of the commit, the same as :attr:`HistoryEntry.commit_id`."""
        return self.commit or str(self.timestamp_ms)

    def in_arrival_order(self, files: Iterable[DataFile]) -> list[DataFile]:
        """Return some of the version's files in the order in which their rows arrived."""
        if self.native is None:
            return sorted(files, key=arrival_order)
        paths = {file.path for file in files}
        return [file for file in self.files if file.path in paths]


@public
@dataclass(frozen=True)
class CommitResult(InNotebooks):
    """The result of a write. ``finish_*`` and ``truncate`` return it, and the engine returns it to the user.

    Attributes:
        version: version of the table after the call.
        rows, files, bytes: numbers of rows, files and bytes written. Files and bytes include the sidecar; rows do not.
            ``truncate`` counts the files that it removed, ``restore`` and ``repair`` those of the version that is
            current again: they write none. Where only a file's footer says how many rows it has, and it cannot be read,
            they count no rows of it, and log a warning that names the file.
        skipped: True when nothing was written: ``txn`` had been recorded before (L4), or nothing differs from the
            version that is restored (L11).
    """

    version: int
    rows: int = 0
    files: int = 0
    bytes: int = 0
    skipped: bool = False


@public
@dataclass(frozen=True)
class LostCommit:
    """A commit that a repair loses.

    Attributes:
        version: its number; None when the damaged file does not tell it.
        what: the error of its read, which names the damaged file.
        damaged: False for an undamaged commit that cannot be read because an earlier one is damaged.
    """

    version: int | None
    what: str
    damaged: bool = True


@public
@dataclass(frozen=True)
class RepairResult(CommitResult):
    """The result of ``session.repair``; ``skipped`` is True when nothing was damaged.

    Attributes:
        back_to: the version whose rows are current after the repair, or with ``dry_run`` would be.
        lost: the commits after that version, newest first.
    """

    back_to: int = 0
    lost: tuple[LostCommit, ...] = ()


@dataclass(frozen=True)
class HistoryEntry:
    """One commit of a table, as ``history()`` shows it.

    Attributes:
        version: the version, as the argument ``version=`` takes it (L10).
        timestamp_ms: commit time, milliseconds since the epoch.
        operation: a :class:`CommitOperation`; for a commit of another engine the format's own word where none fits.
        details: ``added_files``, ``added_rows`` and ``removed_files``, each where the format knows it; and further
            facts of the format's own.
        commit: unique id of the commit. A table that is restored to an earlier state uses version numbers again; a
            stream notices that by this id. Empty for a format without such ids.
        same_rows: True for a commit of another engine that is known to have left the rows as they were, where the
            format's own word stands for it. Changes of such a commit are not looked for.
    """

    version: int
    timestamp_ms: int
    operation: str
    details: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""
    same_rows: bool = False

    @property
    def keeps_rows(self) -> bool:
        """True for a commit that left the rows as they were (C3)."""
        return self.same_rows or self.operation in KEEPS_ROWS

    @property
    def commit_id(self) -> str:
        """The commit's id, or its time in a format without ids; it tells commits with the same number apart."""
        return self.commit or str(self.timestamp_ms)


@public
@dataclass(frozen=True)
class VacuumResult(InNotebooks):
    """The result of a vacuum.

    Attributes:
        files: number of Parquet files (data and sidecar) that were deleted.
        bytes: their size.
        oldest_version: the oldest version that can still be read.
    """

    files: int
    bytes: int
    oldest_version: int
