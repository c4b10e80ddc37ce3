"""An Iceberg catalog that is driven through the SPI alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyiceberg.table import Table as IcebergTable

from trinity.spi import ConnectorContext, TableHandle
from trinity_iceberg import IcebergConnector, IcebergFormat

__all__ = ["TYPES", "open_catalog", "with_pyiceberg"]

TYPES: dict[str, Any] = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32767,
    "int": -(2**31),
    "bigint": 2**62,
    "float": 1.5,
    "double": -2.5,
    "decimal(10,2)": Decimal("-12345678.90"),
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "string": "grüße",
    "char(4)": "ab  ",
    "varchar(9)": "abc",
    "binary": b"\x00\xff",
    "date": dt.date(1969, 7, 20),
    "timestamp": dt.datetime(2013, 1, 1, 5, 17, 0, 123456, dt.UTC),
    "timestamp_ntz": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    "time": dt.time(23, 59, 59, 999999),
    "array<int>": [1, None, 3],
    "map<string,array<bigint>>": [("a", [1]), ("b", None)],
    "struct<x:int,y:struct<z:string>>": {"x": 1, "y": {"z": "q"}},
}
"""Type -> a value of it."""


def open_catalog(warehouse: Path, name: str = "lake", **options: Any) -> IcebergConnector:
    """The catalog; nothing may ask for a Spark."""

    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return IcebergFormat().create(name, {"warehouse": str(warehouse), **options}, ConnectorContext(no_spark))


def with_pyiceberg(lake: IcebergConnector, table: TableHandle) -> IcebergTable:
    """The table, as PyIceberg sees it."""
    return lake._iceberg.load_table((table.schema, table.table))
