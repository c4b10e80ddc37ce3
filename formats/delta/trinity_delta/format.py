"""The adapter's entry point, which makes catalogs of Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import (
    EVERYTHING,
    TRANSFORMS,
    Capability,
    Connector,
    ConnectorContext,
    ConnectorMetadata,
    Format,
    SparkRequirements,
    TableHandle,
)
from trinity.storage import Location, folders_of
from trinity_delta.options import DeltaOptions
from trinity_delta.sink import DeltaSinkProvider

DELTA_JAR: Final = "io.delta:delta-spark_4.1_2.13:4.4.0"
"""Pinned, as ``jvm.py`` uses classes of Delta that are no public API."""


class DeltaConnector(Connector):
    """One catalog of Delta tables, below a warehouse or under the names of a Spark catalog."""

    def __init__(self, catalog: str, options: DeltaOptions, context: ConnectorContext) -> None:
        from trinity_delta.actions import LOG
        from trinity_delta.metadata import DeltaMetadata
        from trinity_delta.names import SparkNames
        from trinity_delta.snapshot import is_table  # imported late, as connecting has to be fast

        folders = (
            SparkNames(catalog, options.spark_catalog, context)
            if options.spark_catalog
            else folders_of(catalog, str(options.warehouse), is_table, LOG)
        )
        self._own = DeltaMetadata(folders, context)
        super().__init__(self._own, DeltaSinkProvider())

    def open_external(self, table: TableHandle) -> ConnectorMetadata:
        from trinity_delta.snapshot import is_table

        if not is_table(Location.of(table.location)):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}': '{table.location}' is no Delta table: it has no commits in _delta_log. "
                "Give the table's own folder, or another connector.",
            )
        self._own.check_location(table)
        return self.metadata


class DeltaFormat(Format):
    """The format of Delta tables. Some commits to tables on a disk need Spark with Delta's JARs."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - TRANSFORMS

    @property
    def in_object_stores(self) -> bool:
        return True

    @property
    def property_prefixes(self) -> tuple[str, ...]:
        return ("delta.",)

    @property
    def spark(self) -> SparkRequirements:
        return SparkRequirements(
            packages=(DELTA_JAR,),
            settings={
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                # the default of 50 makes every look at a small table ten times slower
                "spark.databricks.delta.snapshotPartitions": "2",
                # Delta would rebuild the table's state by a Spark job for a list that Trinity does not read: after each
                # change of columns, and at each commit of a small table where the time zone is not UTC
                "spark.databricks.delta.allFilesInCrc.enabled": "false",
            },
            probes={"org.apache.spark.sql.delta.DeltaLog": DELTA_JAR},
            jvm=True,
            jars="trinity_delta/delta.jars",
        )

    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        return DeltaConnector(catalog, DeltaOptions.of(catalog, options), context)
