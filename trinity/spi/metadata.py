"""Metadata of one catalog: the methods that the engine calls on the driver (see :mod:`trinity.spi.connector`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from trinity.errors import TrinityError
from trinity.spi.files import DataFile
from trinity.spi.handles import (
    CommitResult,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableHandle,
    TransactionId,
    VacuumResult,
)
from trinity.spi.schema import TableDefinition


class ConnectorMetadata(ABC):
    """Names, schemas, versions and commits of one catalog.

    Called on the driver only, from any thread, and never by a sink. Names arrive lower case. Every ``finish_*``,
    ``create`` and ``alter`` is one atomic commit of the format, made by the adapter's own reload-check-commit loop
    (:func:`trinity.storage.commit_loop`).

    Raises, from every method:
        TrinityError: FILESYSTEM_ERROR, PERMISSION_DENIED, BAD_DATA naming the file; TRANSACTION_CONFLICT when others
            kept committing for longer than ``commit.retry.timeout``. Anything else counts as a defect of the adapter.
    """

    # -- schemas and tables -----------------------------------------------------------------------------

    @abstractmethod
    def list_schemas(self) -> list[str]:
        """Return the names of the schemas, sorted; ``default`` always exists. Called by USE, SHOW and for messages."""

    @abstractmethod
    def create_schema(self, schema: str) -> None:
        """Make an empty schema, for CREATE SCHEMA. Raises SCHEMA_ALREADY_EXISTS, which IF NOT EXISTS relies on."""

    @abstractmethod
    def drop_schema(self, schema: str) -> None:
        """Remove an empty schema; CASCADE has dropped its tables before.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY; NOT_SUPPORTED for ``default``.
        """

    @abstractmethod
    def list_tables(self, schema: str) -> list[str]:
        """Return the names of a schema's tables, sorted, for SHOW TABLES and messages. Raises SCHEMA_NOT_FOUND."""

    @abstractmethod
    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """Return the unpinned handle of a table; None when there is no such table or schema.

        Called whenever a statement or ``session.table`` names a table, so it should be cheap.
        """

    @abstractmethod
    def create_table(self, definition: TableDefinition) -> TableHandle:
        """Make an empty table in one commit, for CREATE TABLE.

        The engine has checked columns, key and properties.

        Returns:
            the table's handle, pinned to its id, so that the first rows go to no other table that gets the name.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS (also for a table made meanwhile); NOT_SUPPORTED for a
                type or partition transform that the format lacks.
        """

    @abstractmethod
    def drop_table(self, table: TableHandle) -> None:
        """Remove the table and its files, for DROP TABLE, or to take back a table that could not be filled.

        Raises:
            TrinityError: TABLE_NOT_FOUND when it was dropped meanwhile, or when the name now has another table than the
                one that the handle is pinned to.
        """

    def rename_table(self, table: TableHandle, schema: str, name: str) -> TableHandle:
        """Give a table another name, for ALTER TABLE … RENAME TO; its versions and its id stay.

        Args:
            table: the table.
            schema: the schema of the new name, of the same catalog.
            name: the new name.

        Raises:
            TrinityError: TABLE_NOT_FOUND, TABLE_ALREADY_EXISTS, SCHEMA_NOT_FOUND; NOT_SUPPORTED by default, for an
                adapter that does not rename.
        """
        raise not_supported(table, "another name; copy it by copy_to(), then drop it")

    def owns(self, table: TableHandle) -> bool:
        """Return whether Trinity made the table. DROP TABLE removes only the files of such a table.

        It also works for a damaged table, as long as anything is left that proves it.
        """
        return not self.get_table_definition(table).external

    @abstractmethod
    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        """Change columns or properties in one commit. Called on the driver.

        Older versions keep their columns. A column is identified by its ``field_id``, or by its ``stored`` name in a
        format that goes by names in data files. So old files stay readable under the new definition, and give NULL for
        columns that they lack.

        Args:
            table: the table.
            change: returns the new definition, given the newest one. It is called again if another commit came between.
                If it raises an error, or returns the same definition, nothing is committed; the error passes through.
                The engine ensures that types only become wider, and that keys and properties still name existing
                columns.

        Raises:
            TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a change that the format cannot represent.
        """

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        """Return the table's definition at the handle's version, or at the newest.

        Called for DESCRIBE and the like, when an INSERT is analysed, and by ``owns``. The default calls ``get_splits``,
        which lists the files too; an override returns the same definition and raises the same errors.
        """
        return self.get_splits(table).definition

    @abstractmethod
    def get_splits(self, table: TableHandle) -> SplitSource:
        """Return all that a read needs of the handle's version, or of the newest.

        Called once when a read, a row change or a compaction begins.

        Raises:
            TrinityError: TABLE_NOT_FOUND (dropped meanwhile); INVALID_ARGUMENTS (no such version, or vacuumed), naming
                the oldest readable one; BAD_DATA (corrupt metadata), naming the file.
        """

    @abstractmethod
    def history(self, table: TableHandle) -> list[HistoryEntry]:
        """Return the readable commits, oldest first, with strictly increasing versions and times (L10); never empty.

        Called by ``table.history`` and for TIMESTAMP AS OF.
        """

    # -- appends ----------------------------------------------------------------------------------------

    @abstractmethod
    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        """Pin the newest version, or the handle's own, and return where sinks write. Nothing is committed.

        Called when an append, upsert or INSERT begins, before any file is written, and by ``begin_merge``.
        """

    @abstractmethod
    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        """Commit the files of the fragments, in the order of their names, as one version.

        Called once, after all sinks have finished. Concurrent commits do not make it fail, except those that add
        constraints (:meth:`~trinity.spi.InsertTableHandle.check_demands`). A ``txn`` that is not above the highest one
        recorded for its application commits nothing, and the result is ``skipped`` (L4). An empty list of fragments
        commits nothing, unless a ``txn`` has to be recorded.

        Raises:
            TrinityError: TABLE_NOT_FOUND when the table was dropped meanwhile; TRANSACTION_CONFLICT.
        """

    def since_checkpoint(self, table: TableHandle) -> int | None:
        """Return the number of commits that a new reader must replay after the newest checkpoint of the format's log.

        None, the default, when readers replay no commits, or when the number is not known.
        """
        return None

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        """Return the highest version recorded for an application; None when there is none, or it is not known.

        Called before a write with ``txn`` begins, so that a retry need not write files. ``finish_insert`` decides.
        """
        return None

    # -- compaction and maintenance ---------------------------------------------------------------------

    @abstractmethod
    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        """Start to replace files of a pinned version by files that mean the same. Nothing is committed.

        Called when a compaction begins; ``table`` is pinned to the version whose splits it has read.
        """

    @abstractmethod
    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        """Replace the files in one commit. Concurrent appends are kept and count as later (K6).

        Called once, after all sinks have finished. The new files keep the commit numbers of their fragments. When
        ``replace_sidecar``, the fragments of tier ``sidecar`` become the table's sidecar; else the sidecar stays as it
        is.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a replaced file is no longer live.
        """

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        """Start a compaction that deletes superseded rows by position, and rewrites no base file (R1).

        Called when ``compact("resolve")`` begins; ``table`` is pinned to the version whose splits it has read.

        Args:
            table: the table.
            replaced: files that are folded into new ones: the log.
            kept: base files that stay, and may have rows deleted by position.

        Raises:
            TrinityError: NOT_SUPPORTED by default, before anything was written.
        """
        raise TrinityError(
            "NOT_SUPPORTED",
            f"The connector of '{table.full_name}' cannot delete rows by position, as compact('resolve') does; "
            "use compact(full=True).",
        )

    def finish_resolve(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], deletes: Sequence[bytes]
    ) -> CommitResult:
        """Replace files and sidecar, and delete rows of base files by position, in one commit.

        Called once, after all sinks have finished. Concurrent appends are kept and count as later (K6).

        Args:
            rewrite: the handle of ``begin_resolve``.
            fragments: fragments of new base files, of the sidecar that replaces the present one, and of log files with
                row versions that cannot be folded yet (A4).
            deletes: fragments of the sinks of ``create_delete_sink``; each file is named once.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a replaced file is no longer live, or when another writer deleted
                rows of a file whose rows are deleted here.
        """
        raise not_supported(rewrite.table, "deleting rows by position")

    @abstractmethod
    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        """Forget versions that were replaced before a time, and remove files that no readable version needs.

        Called by ``table.vacuum``. Recorded transactions and the sidecar survive it (L4).

        Files younger than ``older_than_ms`` (milliseconds since the epoch) stay: a statement may be writing them. Files
        that no version needs are removed before anything is written, since the disk may be full
        (:func:`trinity.storage.delete_around`).
        """

    def restore(
        self, table: TableHandle, change: Callable[[TableDefinition, TableDefinition], TableDefinition]
    ) -> CommitResult:
        """Make the rows of an earlier version those of the newest one, in one commit (L11).

        Called by ``table.restore``. Files, sidecar, order of rows and commit numbers are those of that version.
        Recorded transactions stay (L4). If nothing differs, nothing is committed, and the result is ``skipped``.

        Args:
            table: the table, pinned to the version.
            change: returns the new definition, given the newest one and that of the version. It is called again if
                another commit came between. If it raises an error, nothing is committed; the error passes through.

        Returns:
            the commit; rows, files and bytes are those of the version.

        Raises:
            TrinityError: INVALID_ARGUMENTS for a version that cannot be read, or of which a file is gone.
        """
        raise not_supported(table, "going back to an earlier version")

    def sweep(self, schema: str, older_than_ms: int) -> VacuumResult | None:
        """Remove tables without a name, which a killed CREATE or DROP has left.

        Called by ``session.maintain`` with a vacuum. The default removes nothing.

        Args:
            schema: the schema.
            older_than_ms: milliseconds since the epoch. A table with anything younger stays: someone may be making it.

        Returns:
            the numbers of removed files and bytes, with 0 for the version; None when there was nothing.
        """
        return None

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        """Go back to the newest readable version of a table whose newest metadata is damaged.

        Called by ``session.repair`` only. Damaged files stay until vacuum, or are moved to where no reader looks. Only
        BAD_DATA is damage: metadata that the adapter does not understand, or cannot reach now, may be intact.

        Args:
            table: the table.
            version: confirms the version to go back to (see ``trinity.storage.repair_preview``).
            dry_run: True to change nothing.

        Raises:
            TrinityError: BAD_DATA when no version can be read; INVALID_ARGUMENTS when a confirmation is missing.
        """
        raise not_supported(table, "going back to a readable version")

    # -- row changes: after Trino's contract; the defaults refuse, as Trino's do -------------------------

    def begin_merge(
        self,
        table: TableHandle,
        update_case_columns: Mapping[int, tuple[str, ...]],
        after: TableDefinition | None = None,
    ) -> MergeTableHandle:
        """Begin a MERGE, UPDATE or DELETE at the version of a pinned table. Nothing is committed.

        Called when each attempt at a statement begins: after a TRANSACTION_CONFLICT the statement runs again.

        Args:
            table: the table, pinned.
            update_case_columns: case number -> columns that the UPDATE case changes (S5); UPDATE cases only.
            after: the definition that the commit gives to the table: one with further columns; for
                :meth:`finish_replace` any; None if the definition stays.
        """
        raise not_supported(table, "modifying table rows")

    def finish_merge(
        self, merge: MergeTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        """Commit the result of the merge sinks as one version: files added, files removed. Called once per attempt.

        Args:
            merge: the handle of ``begin_merge``, with its ``scope``.
            fragments: the fragments of all sinks, each once: :meth:`DataFile.to_fragment` and
                :func:`~trinity.spi.files.removal`. Never empty, unless the definition changes: for a statement that
                changes nothing this is not called (M5); ``finish_insert`` records its ``txn``.
            txn: as in ``finish_insert``.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a file of the scope is no longer live, or when rows within the
                scope's bounds were committed since the pinned version, or, if the definition changes, when anything
                was; TABLE_NOT_FOUND when the table was dropped meanwhile.
        """
        raise not_supported(merge.table, "modifying table rows")

    def finish_replace(self, merge: MergeTableHandle, fragments: Sequence[bytes]) -> CommitResult:
        """Give the table another definition and other rows in one commit, with neither tombstones nor sidecar (L13).

        Called by CREATE OR REPLACE TABLE. Recorded transactions stay (L4), and so do earlier versions.

        Args:
            merge: the handle of ``begin_merge``, which was given the definition.
            fragments: the fragments of the sinks of its ``insert``; empty for a table without rows.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when anything was committed since the pinned version.
        """
        raise not_supported(merge.table, "replacing a table by another one")

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        """Remove all rows of the newest version in one commit, with tombstones and sidecar (M12).

        Called by TRUNCATE. For an empty table it commits nothing, except a ``txn``. ``rows`` of the result is the
        number of removed rows.

        Args:
            table: the table. A handle that is pinned to a version other than the newest one raises
                TRANSACTION_CONFLICT.
            txn: as in ``finish_insert``.
        """
        raise not_supported(table, "truncating")


def not_supported(table: TableHandle, what: str) -> TrinityError:
    """Return the NOT_SUPPORTED error of an adapter that lacks a capability."""
    return TrinityError("NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support {what}.")
