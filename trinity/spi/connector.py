"""The SPI: what a format adapter implements, in one sitting.

A :class:`Format` is what the entry point ``trinity.formats`` names. It makes a :class:`Connector` for each
catalog; that gives :class:`ConnectorMetadata` (driver only) and a :class:`PageSinkProvider` (executors). The
adapter's part is metadata, commit and file listing; the engine reads and folds, and the shared Parquet sink
of :mod:`trinity.storage` writes. After Trino's ``ConnectorMetadata`` and ``ConnectorPageSinkProvider``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trinity.errors import TrinityError
from trinity.spi.files import Bucket, Tier
from trinity.spi.handles import MergeTableHandle, RewriteTableHandle, TableHandle, WriteTarget
from trinity.spi.metadata import ConnectorMetadata, not_supported
from trinity.spi.sink import DeleteSink, MergeSink, PageSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Connector",
    "ConnectorContext",
    "Format",
    "PageSinkProvider",
    "SinkId",
    "SparkRequirements",
]

ENTRY_POINT_GROUP = "trinity.formats"
"""The entry points by which packages name the classes of their formats."""


@dataclass(frozen=True)
class SparkRequirements:
    """Packages and settings that a format needs of Spark; none, for most.

    Attributes:
        packages: Maven coordinates ``group:artifact:version``, with what they need in turn; or
            ``group:artifact:version:classifier``, that file alone.
        settings: Spark settings; comma lists (``spark.sql.extensions``) are joined across formats.
        probes: class name -> coordinate, looked up in a Spark that the caller brought.
        jvm: whether tables on a disk are worked on through Spark's JVM beside Python, which Spark Connect has not.
    """

    packages: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, str] = field(default_factory=dict)
    jvm: bool = False


@dataclass(frozen=True)
class ConnectorContext:
    """The session's part of a connector: Spark, on demand.

    Attributes:
        spark: the session's Spark, started by the first call.
        spark_runs: True where the process has a Spark already, whose caches then know of tables. It starts none.
    """

    spark: Callable[[], SparkSession]
    spark_runs: Callable[[], bool] = bool  # False


@dataclass(frozen=True)
class SinkId:
    """Number of a sink within its statement, and the kind of files that it writes.

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
        """A sink for the rows of one task.

        Called on an executor as each task of an append or a compaction begins, or in the process for Arrow data; again
        for a task that is retried.

        Args:
            target: the handle's; of a compaction also a folder of its own for the sidecar.
            sink: which sink of the statement it is.
        """

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        """A sink for merge pages. Called on an executor as each task of a MERGE, UPDATE or DELETE begins to write.

        Raises:
            TrinityError: NOT_SUPPORTED by default, as in Trino.
        """
        raise not_supported(merge.table, "modifying table rows")

    def create_delete_sink(self, rewrite: RewriteTableHandle, sink: SinkId) -> DeleteSink:
        """A sink for positions of deleted rows. Called on an executor as each task of a resolve that found some begins.

        Raises:
            TrinityError: NOT_SUPPORTED by default.
        """
        raise not_supported(rewrite.table, "deleting rows by position")


class Connector:
    """One catalog of one format. A subclass is needed only by who has to override :meth:`close`.

    Args:
        metadata: names and commits; the same object for the life of the connector.
        sinks: makes sinks; picklable.
    """

    def __init__(self, metadata: ConnectorMetadata, sinks: PageSinkProvider) -> None:
        self._metadata = metadata
        self._sinks = sinks

    @property
    def metadata(self) -> ConnectorMetadata:
        """Names and commits of the catalog."""
        return self._metadata

    @property
    def sinks(self) -> PageSinkProvider:
        """Provider of sinks for the catalog's tables."""
        return self._sinks

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
        """Releases clients and files. Called on the driver when the session closes, if the catalog was used."""


class Format(ABC):
    """An adapter, as named by an entry point of the group ``trinity.formats``."""

    @property
    def property_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the format's own table properties, passed through unread: ``("delta.",)``.

        Asked for every CREATE TABLE and change of properties: other unknown keys are refused.
        """
        return ()

    @property
    def spark(self) -> SparkRequirements:
        """JARs and settings that the format needs of Spark. Asked as a session starts Spark, or is given one."""
        return SparkRequirements()

    @property
    def in_object_stores(self) -> bool:
        """True when a catalog's ``warehouse`` may be in an object store, as ``s3://bucket/path``.

        Asked as a session is opened, which otherwise refuses such a catalog by name.
        """
        return False

    def hands_out_keys(self, options: Mapping[str, Any]) -> bool:
        """True when a catalog with these options hands out the keys of its tables' places in object stores by itself.

        Asked as a session is opened. ``storage_options`` then say where the store is alone, and stand among the
        options that :meth:`create` is given. False by default.

        Args:
            options: the catalog's settings without ``connector``.

        Raises:
            TrinityError: NOT_SUPPORTED for a way to do so that the format does not know.
        """
        return False

    def folder(self, options: Mapping[str, Any]) -> str | None:
        """The place of a catalog's tables on a disk or in an object store; None where its service alone knows it.

        Asked for what is kept beside the tables, and for whether Spark sees the place. By default ``warehouse``.

        Args:
            options: the catalog's settings without ``connector``.
        """
        return options.get("warehouse")

    @abstractmethod
    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        """Opens a catalog, on the driver, when it is first used.

        Args:
            catalog: its name, for handles and messages.
            options: the catalog's settings without ``connector``; by custom ``warehouse`` is its folder.
            context: what the session lends.

        Raises:
            TrinityError: CONFIGURATION_INVALID for unknown or missing options.
        """
