"""The SPI: what a format adapter implements, in one sitting.

A :class:`Format` is what the entry point ``trinity.formats`` names. It makes a :class:`Connector` for each
catalog; that gives :class:`ConnectorMetadata` (driver only) and a :class:`PageSinkProvider` (executors). The
adapter's part is metadata, commit and file listing; the engine reads and folds, and the shared Parquet sink
of :mod:`trinity.storage` writes. After Trino's ``ConnectorMetadata`` and ``ConnectorPageSinkProvider``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trinity.errors import TrinityError
from trinity.spi.files import Bucket, DataFile, Tier
from trinity.spi.handles import (
    CommitResult,
    HistoryEntry,
    InsertTableHandle,
    MergeTableHandle,
    RewriteTableHandle,
    SplitSource,
    TableHandle,
    TransactionId,
    VacuumResult,
    WriteTarget,
)
from trinity.spi.schema import TableDefinition
from trinity.spi.sink import MergeSink, PageSink, RowChangeParadigm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Connector",
    "ConnectorContext",
    "ConnectorMetadata",
    "Format",
    "PageSinkProvider",
    "SinkId",
    "SparkRequirements",
]

ENTRY_POINT_GROUP = "trinity.formats"


@dataclass(frozen=True)
class SparkRequirements:
    """What a format needs of Spark; nothing, for most.

    Attributes:
        packages: Maven coordinates ``group:artifact:version``.
        settings: Spark settings; comma lists (``spark.sql.extensions``) are joined across formats.
        probes: class name -> coordinate, looked up in a Spark that the caller brought.
    """

    packages: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConnectorContext:
    """What the session lends to a connector.

    Attributes:
        spark: the session's Spark, started by the first call.
    """

    spark: Callable[[], SparkSession]


@dataclass(frozen=True)
class SinkId:
    """Which sink of a statement this is.

    Attributes:
        order: place in the arrival order of the commit: Spark's partition number, 0 in the process.
        tier: what kind of file it writes.
        bucket: the bucket of a compacted file.
        commit: commit number that a compacted file carries (K6).
    """

    order: int = 0
    tier: Tier = Tier.LOG
    bucket: Bucket | None = None
    commit: int | None = None


class PageSinkProvider(ABC):
    """Makes sinks. Pickled to executors: holds no session, no client, no lock."""

    @abstractmethod
    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """A sink for the rows of one task. Called on an executor, or in the process for Arrow data."""

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        """A sink for merge pages. Called on an executor.

        Raises:
            TrinityError: NOT_SUPPORTED by default, as in Trino.
        """
        raise _not_supported(merge.table, "modifying table rows")


class ConnectorMetadata(ABC):
    """Names, schemas, versions and commits of one catalog. Called on the driver, from any thread.

    Names arrive lower case. Every ``finish_*``, ``create`` and ``alter`` is one atomic commit of the format,
    made by the adapter's own reload-check-commit loop.
    """

    # -- schemas and tables -----------------------------------------------------------------------------

    @abstractmethod
    def list_schemas(self) -> list[str]:
        """Names of the schemas, sorted. ``default`` always exists."""

    @abstractmethod
    def create_schema(self, schema: str) -> None:
        """Makes an empty schema. Raises SCHEMA_ALREADY_EXISTS."""

    @abstractmethod
    def drop_schema(self, schema: str) -> None:
        """Removes an empty schema. Raises SCHEMA_NOT_FOUND, SCHEMA_NOT_EMPTY; NOT_SUPPORTED for ``default``."""

    @abstractmethod
    def list_tables(self, schema: str) -> list[str]:
        """Names of the tables of a schema, sorted. Raises SCHEMA_NOT_FOUND."""

    @abstractmethod
    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """The unpinned handle of a table, or None."""

    @abstractmethod
    def create_table(self, definition: TableDefinition) -> TableHandle:
        """Makes an empty table in one commit. Raises SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS."""

    @abstractmethod
    def drop_table(self, table: TableHandle) -> None:
        """Removes the table and its files."""

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

    @abstractmethod
    def get_splits(self, table: TableHandle) -> SplitSource:
        """Everything a read needs of the handle's version, or of the newest.

        Raises:
            TrinityError: TABLE_NOT_FOUND (dropped meanwhile), INVALID_ARGUMENTS (no such version, or removed by
                vacuum: names the oldest readable one), BAD_DATA (corrupt metadata, names the file).
        """

    @abstractmethod
    def history(self, table: TableHandle) -> list[HistoryEntry]:
        """The readable commits, oldest first, with strictly increasing versions and times (L10)."""

    # -- appends ----------------------------------------------------------------------------------------

    @abstractmethod
    def begin_insert(self, table: TableHandle) -> InsertTableHandle:
        """Pins the newest version (or the handle's own) and says where sinks write."""

    @abstractmethod
    def finish_insert(
        self, insert: InsertTableHandle, fragments: Sequence[bytes], txn: TransactionId | None = None
    ) -> CommitResult:
        """Commits the files of the fragments, in the order of their names, as one version.

        It never fails for the commits of others. With ``txn`` not above the highest
        recorded for its application nothing is committed and the result is ``skipped`` (L4). An empty list of
        fragments commits nothing, unless a ``txn`` has to be recorded.

        Raises:
            TrinityError: TABLE_NOT_FOUND when the table was dropped meanwhile.
        """

    def recorded_txn(self, table: TableHandle, application: str) -> int | None:
        """The highest version recorded for an application, or None: lets a retry skip writing files at all."""
        return None

    # -- compaction and care ----------------------------------------------------------------------------

    @abstractmethod
    def begin_rewrite(self, table: TableHandle, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        """Starts replacing files of a pinned version by files that mean the same."""

    @abstractmethod
    def finish_rewrite(
        self, rewrite: RewriteTableHandle, fragments: Sequence[bytes], *, replace_sidecar: bool
    ) -> CommitResult:
        """Replaces the files in one commit. Concurrent appends are kept and count as later (K6).

        Fragments of tier ``sidecar`` become the table's sidecar: instead of the present one when
        ``replace_sidecar``, else it stays as it is.

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a replaced file is no longer live.
        """

    @abstractmethod
    def vacuum(self, table: TableHandle, older_than_ms: int) -> VacuumResult:
        """Forgets versions replaced before a time, and removes files that no readable version needs.

        Files younger than ``older_than_ms`` (milliseconds since the epoch) stay: a statement may be writing them.
        """

    # -- row changes: Trino's contract; the defaults refuse, as Trino's do ------------------------------

    def row_change_paradigm(self, table: TableHandle) -> RowChangeParadigm:
        """How this table represents a changed row. Asked on the driver as a statement starts."""
        raise _not_supported(table, "modifying table rows")

    def merge_row_id_column(self, table: TableHandle) -> str:
        """Name of the merge page's last column, which identifies a row of the target.

        A STRUCT. Of a plain table (``file`` STRING, ``pos`` BIGINT): the file's path and the row's place in it. Of a
        keyed table key and ordering columns under their names, and every other stored column, which are NULL but in
        rows that leave a tombstone (U5).
        """
        raise _not_supported(table, "modifying table rows")

    def insert_layout(self, table: TableHandle) -> tuple[str, ...]:
        """Columns by whose hash inserted rows are distributed to sinks; empty for none."""
        return ()

    def update_layout(self, table: TableHandle) -> tuple[str, ...]:
        """Fields of the row id by whose hash changed rows are distributed to sinks; empty for the whole row id."""
        return ()

    def begin_merge(
        self, table: TableHandle, update_case_columns: Mapping[int, tuple[str, ...]], retry: bool = True
    ) -> MergeTableHandle:
        """Pins a version for a MERGE, UPDATE or DELETE, told which columns each UPDATE case changes (S5).

        Args:
            table: the table.
            update_case_columns: case number -> columns; UPDATE cases only.
            retry: whether sinks may be run more than once for the same rows (S6), as Spark does.
        """
        raise _not_supported(table, "modifying table rows")

    def finish_merge(
        self, merge: MergeTableHandle, sources: Sequence[TableHandle], fragments: Sequence[bytes]
    ) -> CommitResult:
        """Commits what the merge sinks wrote as one version: files added, files removed.

        Args:
            merge: the handle of ``begin_merge``, its ``scope`` set.
            sources: pinned handles of the tables that were read beside the target.
            fragments: of all sinks, each once: :meth:`DataFile.to_fragment` and :func:`~trinity.spi.files.removal`.
                Never empty: a statement that changes nothing is not finished (M5).

        Raises:
            TrinityError: TRANSACTION_CONFLICT when a file of the scope is no longer live, or rows that it concerns
                were committed since the pinned version; TABLE_NOT_FOUND when the table was dropped meanwhile.
        """
        raise _not_supported(merge.table, "modifying table rows")

    def truncate(self, table: TableHandle) -> CommitResult:
        """Removes all rows of the newest version in one commit, tombstones and sidecar with them (M12)."""
        raise _not_supported(table, "truncating")


class Connector(ABC):
    """One catalog of one format."""

    @property
    @abstractmethod
    def metadata(self) -> ConnectorMetadata:
        """Names and commits; the same object for the life of the connector."""

    @property
    @abstractmethod
    def sinks(self) -> PageSinkProvider:
        """Makes sinks; picklable."""

    def open_external(self, table: TableHandle) -> ConnectorMetadata:
        """The metadata of a table that others wrote, which lies outside of the catalog.

        Args:
            table: the name under which the table is registered, and its location. The metadata that is returned is
                asked with this handle: for versions, appends and row changes, never for names and never for care.

        Raises:
            TrinityError: NOT_SUPPORTED by default; INVALID_ARGUMENTS when no table of this format lies there, saying
                what does.
        """
        raise TrinityError(
            "NOT_SUPPORTED", f"The connector of '{table.full_name}' has no external tables; it knows only its own."
        )

    def close(self) -> None:
        """Releases clients and files."""


class Format(ABC):
    """An adapter, as named by an entry point of the group ``trinity.formats``."""

    @property
    def property_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the format's own table properties, passed through unread: ``("delta.",)``."""
        return ()

    @property
    def spark(self) -> SparkRequirements:
        """JARs and settings that the format needs of Spark."""
        return SparkRequirements()

    @abstractmethod
    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        """Opens a catalog. ``options`` are the catalog's settings without ``connector``; ``warehouse`` is its folder.

        Raises:
            TrinityError: CONFIGURATION_INVALID for unknown or missing options.
        """


def _not_supported(table: TableHandle, what: str) -> TrinityError:
    return TrinityError("NOT_SUPPORTED", f"The connector of '{table.full_name}' does not support {what}.")
