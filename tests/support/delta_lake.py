"""A Delta catalog driven through the SPI alone: tables, appends and compactions as the engine makes them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from trinity.errors import TrinityError
from trinity.spi import (
    Bucket,
    Column,
    CommitResult,
    ConnectorContext,
    SinkId,
    TableDefinition,
    TableHandle,
    Tier,
    WriteTarget,
)
from trinity_delta import DeltaConnector, DeltaFormat

UTC = dt.UTC
KEYED = TableDefinition(
    "default",
    "t",
    (
        Column("id", "bigint", nullable=False),
        Column("v", "string", comment="the value"),
        Column("_trinity_row_kind", "int"),
    ),
    ("id",),
    properties={"watermark-key": "v"},
)


def open_catalog(warehouse: Path, spark: SparkSession | None) -> DeltaConnector:
    def lend() -> SparkSession:
        assert spark is not None, "no JVM is needed here"
        return spark

    connector = DeltaFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(lend))
    assert isinstance(connector, DeltaConnector)
    return connector


def write(lake: DeltaConnector, target: WriteTarget, rows: list[dict[str, Any]], sink: SinkId) -> list[bytes]:
    page_sink = lake.sinks.create_page_sink(target, sink)
    page_sink.append_page(pa.RecordBatch.from_pylist(rows, schema=target.storage))
    return page_sink.finish()


def append(lake: DeltaConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> CommitResult:
    return prepare(lake, table, *rows, txn=txn)()


def prepare(
    lake: DeltaConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None
) -> Callable[[], CommitResult]:
    """An insert that has written its files; the call commits it."""
    insert = lake.metadata.begin_insert(table)
    records = [dict(itertools.zip_longest(insert.target.storage.names, row)) for row in rows]
    fragments = write(lake, insert.target, records, SinkId()) if rows else []
    return lambda: lake.metadata.finish_insert(insert, fragments, txn)


def prepare_merge(lake: DeltaConnector, table: TableHandle, row: int) -> Callable[[], CommitResult]:
    """A row change that has read the table and written a row; the call commits it."""
    merge = lake.metadata.begin_merge(table, {})
    fragments = write(lake, merge.insert.target, [{"id": row}], SinkId())
    return lambda: lake.metadata.finish_merge(merge, [], fragments)


def compact(
    lake: DeltaConnector, table: TableHandle, rows: list[dict[str, Any]], dead: list[dict[str, Any]]
) -> Callable[[], CommitResult]:
    """What the engine does: rewrites all files into one base file and a sidecar."""
    splits = lake.metadata.get_splits(table)
    rewrite = lake.metadata.begin_rewrite(dataclasses.replace(table, version=splits.version), splits.files)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, Bucket(0, 1), folded)) if rows else []
    aside = dataclasses.replace(rewrite.target, folder=f"{table.location}/_trinity")
    fragments += write(lake, aside, dead, SinkId(0, Tier.SIDECAR, None, folded)) if dead else []
    return lambda: lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def stored(lake: DeltaConnector, table: TableHandle) -> list[dict[str, Any]]:
    splits = lake.metadata.get_splits(table)
    return [row for f in splits.files for row in pq.read_table(f.path, schema=splits.storage).to_pylist()]


def ids(lake: DeltaConnector, table: TableHandle) -> list[int]:
    return sorted(row["id"] for row in stored(lake, table))


def code_of(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(TrinityError) as caught:
        call()
    return caught.value.code, caught.value.message


def commit_file(table: TableHandle, version: int) -> Path:
    return Path(table.location, "_delta_log", f"{version:020d}.json")
