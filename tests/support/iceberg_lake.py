"""An Iceberg catalog driven through the SPI alone: tables, appends and compactions as the engine makes them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table as IcebergTable

from trinity.errors import TrinityError
from trinity.spi import Bucket, Column, ConnectorContext, SinkId, TableDefinition, TableHandle, Tier, WriteTarget
from trinity_iceberg import IcebergConnector, IcebergFormat

UTC = dt.UTC
KEYED = TableDefinition(
    "default",
    "t",
    (Column("id", "bigint", nullable=False), Column("v", "string"), Column("_trinity_row_kind", "int")),
    ("id",),
    properties={"watermark-key": "v"},
)
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
    "timestamp": dt.datetime(2013, 1, 1, 5, 17, 0, 123456, UTC),
    "timestamp_ntz": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    "time": dt.time(23, 59, 59, 999999),
    "array<int>": [1, None, 3],
    "map<string,array<bigint>>": [("a", [1]), ("b", None)],
    "struct<x:int,y:struct<z:string>>": {"x": 1, "y": {"z": "q"}},
}


def open_catalog(warehouse: Path, name: str = "lake", **options: Any) -> IcebergConnector:
    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return IcebergFormat().create(name, {"warehouse": str(warehouse), **options}, ConnectorContext(no_spark))


def write(lake: IcebergConnector, target: WriteTarget, rows: list[dict[str, Any]], sink: SinkId) -> list[bytes]:
    page_sink = lake.sinks.create_page_sink(target, sink)
    page_sink.append_page(pa.RecordBatch.from_pylist(rows, schema=target.storage))
    return page_sink.finish()


def append(lake: IcebergConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> Any:
    insert = lake.metadata.begin_insert(table)
    names = insert.target.storage.names
    records = [dict(itertools.zip_longest(names, row)) for row in rows]
    fragments = write(lake, insert.target, records, SinkId()) if rows else []
    return lake.metadata.finish_insert(insert, fragments, txn)


def compact(lake: IcebergConnector, table: TableHandle, rows: list[dict[str, Any]], dead: list[dict[str, Any]]) -> Any:
    """What the engine does: rewrites all files into one base file and a sidecar."""
    splits = lake.metadata.get_splits(table)
    rewrite = lake.metadata.begin_rewrite(dataclasses.replace(table, version=splits.version), splits.files)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, Bucket(0, 1), folded)) if rows else []
    aside = dataclasses.replace(rewrite.target, folder=f"{table.location}/_trinity")
    fragments += write(lake, aside, dead, SinkId(0, Tier.SIDECAR, None, folded)) if dead else []
    return lambda: lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def stored(lake: IcebergConnector, table: TableHandle) -> list[dict[str, Any]]:
    splits = lake.metadata.get_splits(table)
    return [row for f in splits.files for row in pq.read_table(f.path, schema=splits.storage).to_pylist()]


def with_pyiceberg(lake: IcebergConnector, table: TableHandle) -> IcebergTable:
    return lake._iceberg.load_table((table.schema, table.table))


def code_of(call: Any) -> tuple[str, str]:
    with pytest.raises(TrinityError) as caught:
        call()
    return caught.value.code, caught.value.message
