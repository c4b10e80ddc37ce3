"""A table, and the session that it belongs to, as the engine sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from trinity.names import TableName
from trinity.spi import Connector, SplitSource, TableDefinition, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine: TypeAlias = Literal["auto", "local", "spark"]
"""What executes the statements of a session, as for :func:`trinity.connect`."""


class Host(Protocol):
    """A session, as the engine sees it.

    Attributes:
        spark: its Spark, which is started by its first use.
        running_spark: its Spark; None when it does not run.
        timezone: the zone in which a TIMESTAMP column takes timestamps without zone.
        allow_code: whether SQL may reach code and files (N2).
        engine: what executes statements.
        spark_is_given: whether the caller gave the session its Spark.
        local_bytes: maximum bytes of files that a statement may read for this process to execute it.
    """

    @property
    def spark(self) -> SparkSession: ...

    @property
    def running_spark(self) -> SparkSession | None: ...

    @property
    def timezone(self) -> str: ...

    @property
    def allow_code(self) -> bool: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def spark_is_given(self) -> bool: ...

    @property
    def local_bytes(self) -> int: ...


class Target(Protocol):
    """A table, as the engine sees it.

    Attributes:
        name: full name.
        handle: the connector's handle, unpinned.
        connector: the connector of the table's catalog; a registered table has a connector of its own.
        session: the session.
        location: absolute folder or URI.
        definition: columns, key and properties as they are now.
        properties: table properties in canonical spelling.
    """

    @property
    def name(self) -> TableName: ...

    @property
    def handle(self) -> TableHandle: ...

    @property
    def connector(self) -> Connector: ...

    @property
    def session(self) -> Host: ...

    @property
    def location(self) -> str: ...

    @property
    def definition(self) -> TableDefinition: ...

    @property
    def properties(self) -> Mapping[str, str]: ...

    def splits(self, version: int | None = None) -> SplitSource:
        """Return what a read of a version needs (files, statistics, definition), by default of the newest version."""
        ...
