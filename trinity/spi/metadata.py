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
from trinity.spi.sink import RowChangeParadigm

__all__ = ["ConnectorMetadata", "not_supported"]


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
        """Names of the schemas, sorted; ``default`` always exists. Asked by USE, SHOW and for messages."""

    @abstractmethod
    def create_schema(self, schema: str) -> None:
        """Makes an empty schema, for CREATE SCHEMA. Raises SCHEMA_ALREADY_EXISTS, which IF NOT EXISTS relies on."""

    @abstractmethod
    def drop_schema(self, schema: str) -> None:
        """Removes an empty schema; CASCADE has dropped its tables before.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY; NOT_SUPPORTED for ``default``.
        """

    @abstractmethod
    def list_tables(self, schema: str) -> list[str]:
        """Names of the tables of a schema, sorted, for SHOW TABLES and messages. Raises SCHEMA_NOT_FOUND."""

    @abstractmethod
    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """The unpinned handle of a table, or None, also when there is no such schema.

        Called whenever a statement or ``session.table`` names a table: it should be cheap.
        """

    @abstractmethod
    def create_table(self, definition: TableDefinition) -> TableHandle:
        """Makes an empty table in one commit, for CREATE TABLE.

        The engine has checked columns, key and options.

        Raises:
            TrinityError: SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS (also for one made meanwhile); NOT_SUPPORTED for a type
                or partition transform that the format lacks.
        """

    @abstractmethod
    def drop_table(self, table: TableHandle) -> None:
        """Removes the table and its files, for DROP TABLE. Raises TABLE_NOT_FOUND when another was faster."""

    def owns(self, table: TableHandle) -> bool:
        """True when Trinity made the table, so that DROP TABLE removes its files; an external table is only forgotten.

        Answers for a damaged table as well, as long as anything is left that proves it.
        """
        return not self.get_table_definition(table).external

    @abstractmethod
    def alter_table(self, table: TableHandle, change: Callable[[TableDefinition], TableDefinition]) -> None:
        """Changes columns or properties in one commit. Called on the driver.

        Older versions keep their columns. A column is known by its ``field_id``, or by its ``stored`` name in a format
        that goes by names in data files: old files read right under the new definition, and NULL in columns that
        they lack.

        Args:
            table: the table.
            change: gives the new definition for the newest one; called again when another commit came between. What it
                raises passes through, nothing being committed; the same definition commits nothing. The engine has
                seen to it that types only become wider, and that keys and options still name their columns.

        Raises:
            TrinityError: TABLE_NOT_FOUND; NOT_SUPPORTED for a change that the format cannot represent.
        """

    # -- versions ---------------------------------------------------------------------------------------

    def get_table_definition(self, table: TableHandle) -> TableDefinition:
        """The table at the handle's version, or at the newest, without its files.

        Called for DESCRIBE and the like, as an INSERT is analysed, and by ``owns``. The default lists the files too;
        what is seen here and in ``get_splits`` is the same. Raises as ``get_splits``.
        """
        return self.get_splits(table).definition

    @abstractmethod
    def get_splits(self, table: TableHandle) -> SplitSource:
        """Everything a read needs of the handle's version, or of the newest.

        Called once as a read, a row change or a compaction begins.

        Raises:
            TrinityError: TABLE_NOT_FOUND (dropped meanwhile), INVALID_ARGUMENTS (no such version, or removed by
                vacuum: names the oldest readable one), BAD_DATA (corrupt metadata, names the file).
        """

    @abstractmethod
    def history(self, table: TableHandle) -> list[HistoryEntry]:
        """The readable commits, oldest first, with strictly increasing versions and times (L10); never empty.

        Called by ``table.history`` and for TIMESTAMP AS OF.
        """

    # -- appends ----------------------------------------------------------------------------------------

    @abstractmethod
    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        """Pins the newest version (or the handle's own) and says where sinks write. Commits nothing.

        Called as an append, upsert or INSERT begins, before any file is written, and by ``begin_merge``.
        """

    @abstractmethod
    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        """Commits the files of the fragments, in the order of their names, as one version.

        Called once, after all sinks have finished. It fails for no commits of others but those by which the table
        demands more of rows (:meth:`~trinity.spi.InsertTableHandle.check_demands`). With ``txn`` not above
        the highest recorded for its application nothing is committed and the result is ``skipped`` (L4). An empty list
        of fragments commits nothing, unless a ``txn`` has to be recorded.

        Raises:
            TrinityError: TABLE_NOT_FOUND when the table was dropped meanwhile; TRANSACTION_CONFLICT.
        """

    def since_checkpoint(self, table: TableHandle) -> int | None:
        """Return the commits that a first reader finds behind the newest checkpoint of the format's log.

        None, the default, for a format of which no reader has to put commits together, or of which it is not known.
        """
        return None

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        """The highest version recorded for an application, or None when there is none, or it is not known.

        Called before a write with ``txn`` begins: lets a retry skip writing files at all. ``finish_insert`` decides.
        """
        return None

    # -- compaction and care ----------------------------------------------------------------------------

    @abstractmethod
    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        """Starts replacing files of a pinned version by files that mean the same. Commits nothing.

        Called as a compaction begins; ``table`` is pinned to the version whose splits it has read.
        """

    @abstractmethod
    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        """Replaces the files in one commit. Concurrent appends are kept and count as later (K6).

        Called once, after all sinks have finished. Fragments come with the commit number that they must keep.

        Fragments of tier ``sidecar`` become the table's sidecar: instead of the present one when
        ``replace_sidecar``, else it stays as it is.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a replaced file is no longer live.
        """

    def begin_resolve(
        self, table: TableHandle, replaced: Sequence[DataFile], kept: Sequence[DataFile]
    ) -> RewriteTableHandle:
        """Starts a compaction that deletes superseded rows by position and rewrites no base file (R1). Commits nothing.

        Called as ``compact("resolve")`` begins; ``table`` is pinned to the version whose splits it has read.

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
        """Replaces files and sidecar, and deletes rows of base files by position, in one commit.

        Called once, after all sinks have finished. Concurrent appends are kept and count as later (K6).

        Args:
            rewrite: the handle of ``begin_resolve``.
            fragments: of new base files, of the new sidecar, which takes the place of the present one, and of log files
                with row versions that cannot be folded yet (A4).
            deletes: of the sinks of ``create_delete_sink``; each file is named once.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a replaced file is no longer live, or others have deleted rows of a
                file that has rows deleted here.
        """
        raise not_supported(rewrite.table, "deleting rows by position")

    @abstractmethod
    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        """Forgets versions replaced before a time, and removes files that no readable version needs.

        Called by ``table.vacuum``. Records of transactions and the sidecar survive it (L4).

        Files younger than ``older_than_ms`` (milliseconds since the epoch) stay: a statement may be writing them. What
        no version needs goes first, before anything is written: a full disk has no place for that
        (:func:`trinity.storage.delete_around`).
        """

    def sweep(self, schema: str, older_than_ms: int) -> VacuumResult | None:
        """Removes what tables without a name have left in a schema's place: of a CREATE, or a DROP, that was killed.

        Called by ``session.maintain`` with a vacuum. By default nothing is looked for.

        Args:
            schema: the schema.
            older_than_ms: tables of which something is younger stay, somebody may be making them; milliseconds since
                the epoch.

        Returns:
            what was removed, with 0 for the version; None where there was nothing.
        """
        return None

    def repair(self, table: TableHandle, *, version: int | None = None, dry_run: bool = False) -> RepairResult:
        """Make the newest version that can be read the newest one, for a table whose newest metadata is damaged.

        Called by ``session.repair`` alone: nobody else goes back to an older version. Damaged files stay until vacuum,
        or are set aside where no reader looks. Only BAD_DATA is damage: what the adapter does not understand, or cannot
        reach now, may be whole.

        Args:
            table: the table.
            version: the version that the caller expects to be gone back to (see ``trinity.storage.only_told``).
            dry_run: True to change nothing.

        Raises:
            TrinityError: BAD_DATA when no version can be read; INVALID_ARGUMENTS where a confirmation is missing.
        """
        raise not_supported(table, "going back to a readable version")

    # -- row changes: Trino's contract; the defaults refuse, as Trino's do ------------------------------

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """Representation of a changed row in this table. Asked on the driver as a statement starts."""
        raise not_supported(table, "modifying table rows")

    def merge_row_id_column(self, table: TableHandle) -> str:
        """Name of the merge page's last column, which identifies a row of the target. Asked once per statement.

        A STRUCT. Of a plain table (``file`` STRING, ``pos`` BIGINT): the file's path and the row's place in it. Of a
        keyed table key and ordering columns under their names, and every other stored column, which are NULL but in
        rows that leave a tombstone (U5).
        """
        raise not_supported(table, "modifying table rows")

    def insert_layout(self, table: TableHandle) -> tuple[str, ...]:
        """Columns by whose hash inserted rows are distributed to sinks; empty for none. Asked once per statement."""
        return ()

    def update_layout(self, table: TableHandle) -> tuple[str, ...]:
        """Fields of the row id by whose hash changed rows are distributed to sinks; empty for the whole row id.

        Asked once per statement. All changes of a file that is rewritten must reach one sink: ``("file",)``.
        """
        return ()

    def begin_merge(
        self, table: TableHandle, update_case_columns: Mapping[int, tuple[str, ...]], retry: bool = True
    ) -> MergeTableHandle:
        """Pins a version for a MERGE, UPDATE or DELETE, told which columns each UPDATE case changes (S5).

        Called as each attempt at a statement begins: after a TRANSACTION_CONFLICT the statement runs again. Commits
        nothing.

        Args:
            table: the table, pinned.
            update_case_columns: case number -> columns; UPDATE cases only.
            retry: whether sinks may be run more than once for the same rows (S6), as Spark does.
        """
        raise not_supported(table, "modifying table rows")

    def finish_merge(
        self,
        merge: MergeTableHandle,
        sources: Sequence[TableHandle],
        fragments: Sequence[bytes],
        txn: TransactionId | None = None,
    ) -> CommitResult:
        """Commits what the merge sinks wrote as one version: files added, files removed. Called once per attempt.

        Args:
            merge: the handle of ``begin_merge``, its ``scope`` set.
            sources: pinned handles of the tables that were read beside the target.
            fragments: of all sinks, each once: :meth:`DataFile.to_fragment` and :func:`~trinity.spi.files.removal`.
                Never empty: a statement that changes nothing is not finished (M5), but for its ``txn``, which
                ``finish_insert`` records.
            txn: as of ``finish_insert``.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a file of the scope is no longer live, or rows that it concerns
                were committed since the pinned version; TABLE_NOT_FOUND when the table was dropped meanwhile.
        """
        raise not_supported(merge.table, "modifying table rows")

    def truncate(self, table: TableHandle, txn: TransactionId | None = None) -> CommitResult:
        """Removes all rows of the newest version in one commit, tombstones and sidecar with them (M12).

        Called by TRUNCATE. Of an empty table nothing but a ``txn`` is committed. ``rows`` of the result is what was
        removed.

        Args:
            table: the table.
            txn: as of ``finish_insert``.
        """
        raise not_supported(table, "truncating")


def not_supported(table: TableHandle, what: str) -> TrinityError:
    """The error of an adapter that lacks something; the statement fails with it."""
    return TrinityError("NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support {what}.")
