"""A Delta catalog that is driven through the SPI alone."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from trinity.spi import ConnectorContext, TableHandle
from trinity_delta import DeltaConnector, DeltaFormat

__all__ = ["commit_file", "open_catalog"]


def open_catalog(warehouse: Path, spark: SparkSession | None) -> DeltaConnector:
    """The catalog ``lake``; without a Spark nothing may ask for one."""

    def lend() -> SparkSession:
        assert spark is not None, "no JVM is needed here"
        return spark

    connector = DeltaFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(lend))
    assert isinstance(connector, DeltaConnector)
    return connector


def commit_file(table: TableHandle, version: int) -> Path:
    """The file of a version's actions."""
    return Path(table.location, "_delta_log", f"{version:020d}.json")
