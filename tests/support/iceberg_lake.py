"""An Iceberg catalog driven through the SPI alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyiceberg.table import Table as IcebergTable

from trinity.spi import ConnectorContext, TableHandle
from trinity_iceberg import IcebergConnector, IcebergFormat


def open_catalog(warehouse: Path, name: str = "lake", **options: Any) -> IcebergConnector:
    """Open the catalog. Asking for a Spark session fails."""

    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return IcebergFormat().create(name, {"warehouse": str(warehouse), **options}, ConnectorContext(no_spark))


def with_pyiceberg(lake: IcebergConnector, table: TableHandle) -> IcebergTable:
    """Return the table as PyIceberg loads it."""
    return lake._iceberg.load_table((table.schema, table.table))
