"""The SPI: the classes that a format adapter implements.

An entry point of the group ``trinity.formats`` names a :class:`Format`. A format makes a :class:`Connector` for each
catalog. A connector has :class:`ConnectorMetadata` (driver only) and a :class:`PageSinkProvider` (executors). The
adapter lists files, keeps metadata and commits. The engine reads and folds. The shared Parquet sink of
:mod:`trinity.storage` writes. The classes follow Trino's ``ConnectorMetadata`` and ``ConnectorPageSinkProvider``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trinity.errors import TrinityError
from trinity.spi.capabilities import EVERYTHING, Capability
from trinity.spi.files import Bucket, Tier
from trinity.spi.handles import MergeTableHandle, RewriteTableHandle, TableHandle, WriteTarget
from trinity.spi.metadata import ConnectorMetadata, not_supported
from trinity.spi.sink import DeleteSink, MergeSink, PageSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENTRY_POINT_GROUP = "trinity.formats"
"""Group of the entry points that name the format classes of installed packages."""


@dataclass(frozen=True)
class SparkRequirements:
    """Packages and settings that a format needs in Spark. Most formats need none.

    Attributes:
        packages: Maven coordinates ``group:artifact:version`` with which a Spark of the caller's has to be started.
        settings: Spark settings; comma lists (``spark.sql.extensions``) are joined across formats.
        probes: class name -> coordinate. A Spark session that the caller gives must have these classes.
        jvm: whether tables on a disk need the JVM of a local Spark, which Spark Connect does not have.
        jars: a file of a Python package, such as ``trinity_delta/delta.jars``, which lists the JARs of the packages and
            of those dependencies that Spark lacks, a line each: ``group:artifact:version[:classifier] bytes sha256``.
            Trinity fetches these for the Spark that it starts. Without a list Spark's Ivy resolves the packages.
    """

    packages: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, str] = field(default_factory=dict)
    jvm: bool = False
    jars: str | None = None


@dataclass(frozen=True)
class ConnectorContext:
    """The context that a session gives to its connectors: Spark, on demand.

    Attributes:
        spark: returns the session's Spark; the first call starts it.
        spark_runs: returns whether the process runs a Spark already, whose caches may hold tables; it starts none.
    """

    spark: Callable[[], SparkSession]
    spark_runs: Callable[[], bool] = bool  # which returns False


@dataclass(frozen=True)
class SinkId:
    """The identity of a sink within its statement, and the kind of file that it writes.

    Attributes:
        order: index in the arrival order of the commit: Spark's partition number; 0 without Spark.
        tier: tier of the files that it writes.
        bucket: the bucket of a file that a compaction writes by bucket.
        commit: commit number that a compacted file carries (K6).
    """

    order: int = 0
    tier: Tier = Tier.LOG
    bucket: Bucket | None = None
    commit: int | None = None


class PageSinkProvider(ABC):
    """The provider of a connector's sinks. It is pickled to executors, so it holds no session, client or lock."""

    @abstractmethod
    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        """Return a sink for the rows of one task.

        Called on an executor when a task of an append or a compaction begins, and again when it is retried; for Arrow
        data in the driver's process.

        Args:
            target: the target of the handle; for a compaction's sidecar one with a folder of its own.
            sink: identifies the sink within the statement.
        """

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        """Return a sink for merge pages. Called on an executor as a task of a MERGE, UPDATE or DELETE begins to write.

        Raises:
            TrinityError: NOT_SUPPORTED by default, as in Trino.
        """
        raise not_supported(merge.table, "modifying table rows")

    def updates_in_place(self, merge: MergeTableHandle) -> bool:
        """Return whether merge sinks take rows as :attr:`MergeTableHandle.in_place` says; False by default."""
        return False

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """Return a sink for positions of deleted rows. Called on an executor by each task of a resolve that has some.

        Raises:
            TrinityError: NOT_SUPPORTED by default.
        """
        raise not_supported(rewrite.table, "deleting rows by position")


class Connector:
    """One catalog of one format. A subclass is needed only to override :meth:`open_external` or :meth:`close`.

    Attributes:
        metadata: names and commits of the catalog; the same object for the life of the connector.
        sinks: the provider of sinks for the catalog's tables; picklable.
    """

    def __init__(self, metadata: ConnectorMetadata, sinks: PageSinkProvider) -> None:
        self.metadata = metadata
        self.sinks = sinks

    def open_external(self, table: TableHandle) -> ConnectorMetadata:
        """Return the metadata of an external table, which lies outside the catalog.

        Args:
            table: the name under which the table is registered, and its location. The engine calls the returned
                metadata with this handle: for versions, appends and row changes, never for names or maintenance.

        Raises:
            TrinityError: NOT_SUPPORTED by default; INVALID_ARGUMENTS when no table of this format lies there. The
                message says what lies there.
        """
        raise TrinityError(
            "NOT_SUPPORTED", f"The connector of '{table.full_name}' has no external tables; it knows only its own."
        )

    def close(self) -> None:
        """Release clients and files. Called on the driver when the session closes, if the catalog was used."""


class Format(ABC):
    """A table format, by which an adapter is found: an entry point of the group ``trinity.formats`` names its class."""

    @property
    def property_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the format's own table properties, such as ``("delta.",)``.

        Read for every CREATE TABLE and change of properties. Keys with a prefix pass unchecked; other unknown keys are
        refused.
        """
        return ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the format's tables: all, unless an adapter declares fewer.

        The adapter itself refuses what it does not declare. The conformance suite checks that every declared capability
        works, and that all others are refused.
        """
        return EVERYTHING

    @property
    def spark(self) -> SparkRequirements:
        """JARs and settings that the format needs in Spark. Read when a session starts Spark, or is given one."""
        return SparkRequirements()

    @property
    def in_object_stores(self) -> bool:
        """True when a catalog's ``warehouse`` may be in an object store, such as ``s3://bucket/path``.

        Read when a session opens. When False, the session refuses such a catalog.
        """
        return False

    def hands_out_keys(self, options: Mapping[str, Any]) -> bool:
        """Return whether a catalog with these options gives out credentials for its tables' locations in object stores.

        Called when a session opens. When True, ``storage_options`` only say where the store is, and are among the
        options that :meth:`create` gets. False by default.

        Args:
            options: the catalog's settings without ``connector``.

        Raises:
            TrinityError: NOT_SUPPORTED for a way of giving out credentials that the format does not know.
        """
        return False

    def folder(self, options: Mapping[str, Any]) -> str | None:
        """Return the location of a catalog's tables, on a disk or in an object store; None if only its service knows.

        Called to place files beside the tables, and to check that Spark can reach them. By default ``warehouse``.

        Args:
            options: the catalog's settings without ``connector``.
        """
        return options.get("warehouse")

    @abstractmethod
    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        """Open a catalog. Called on the driver when the catalog is first used.

        Args:
            catalog: its name, for handles and messages.
            options: the catalog's settings without ``connector``; by convention ``warehouse`` is its folder.
            context: gives access to the session's Spark.

        Raises:
            TrinityError: CONFIGURATION_INVALID for unknown or missing options.
        """
