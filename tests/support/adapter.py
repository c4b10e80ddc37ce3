"""An adapter driven through the SPI alone: appends, row changes, compactions and resolves as the engine does them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trinity.errors import TrinityError
from trinity.spi import (
    Bucket,
    Column,
    CommitResult,
    Connector,
    RewriteTableHandle,
    SinkId,
    TableDefinition,
    TableHandle,
    Tier,
    WriteTarget,
)

VALUES: dict[str, Any] = {
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
"""Type -> a value."""

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
BASE = [{"id": n, "v": "a"} for n in (1, 2, 3)]
"""The rows of a base."""


def write(lake: Connector, target: WriteTarget, rows: list[dict[str, Any]], sink: SinkId) -> list[bytes]:
    """Write rows to data files, and return their fragments."""
    page_sink = lake.sinks.create_page_sink(target, sink)
    page_sink.append_page(pa.RecordBatch.from_pylist(rows, schema=target.storage))
    return page_sink.finish()


def append(lake: Connector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> CommitResult:
    """Commit one insert of rows; the last values of a row may be left out."""
    return prepare(lake, table, *rows, txn=txn)()


def prepare(lake: Connector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> Callable[[], CommitResult]:
    """Write the files of an insert, and return the function that commits it."""
    insert = lake.metadata.begin_insert(table)
    records = [dict(itertools.zip_longest(insert.target.storage.names, row)) for row in rows]
    fragments = write(lake, insert.target, records, SinkId()) if rows else []
    return lambda: lake.metadata.finish_insert(insert, fragments, txn)


def prepare_merge(lake: Connector, table: TableHandle, row: int) -> Callable[[], CommitResult]:
    """Read the table and write one row as a row change, and return the function that commits it."""
    merge = lake.metadata.begin_merge(table, {})
    fragments = write(lake, merge.insert.target, [{"id": row}], SinkId())
    return lambda: lake.metadata.finish_merge(merge, fragments)


def compact(
    lake: Connector, table: TableHandle, rows: list[dict[str, Any]], dead: list[dict[str, Any]]
) -> Callable[[], CommitResult]:
    """Rewrite all files into one base file and one sidecar file, and return the function that commits them."""
    splits = lake.metadata.get_splits(table)
    rewrite = lake.metadata.begin_rewrite(dataclasses.replace(table, version=splits.version), splits.files)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, Bucket(0, 1), folded)) if rows else []
    target = dataclasses.replace(rewrite.target, folder=f"{table.location}/_trinity")
    fragments += write(lake, target, dead, SinkId(0, Tier.SIDECAR, None, folded)) if dead else []
    return lambda: lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def resolve(
    lake: Connector, table: TableHandle, rows: list[dict[str, Any]], positions: list[int]
) -> Callable[[], CommitResult]:
    """Write a run in place of the log, delete rows of the bucketed file (R1), and return the function that commits."""
    splits = lake.metadata.get_splits(table)
    log = [f for f in splits.files if f.tier is Tier.LOG]
    kept = [f for f in splits.files if f.tier is Tier.BASE]
    rewrite = lake.metadata.begin_resolve(dataclasses.replace(table, version=splits.version), log, kept)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, None, folded))
    sink = lake.sinks.create_delete_sink(rewrite, SinkId())
    [base] = [f for f in kept if f.bucket]
    sink.delete_rows(base, pa.array(positions, pa.int64()))
    deletes = sink.finish()
    return lambda: lake.metadata.finish_resolve(rewrite, fragments, deletes)


def stored(lake: Connector, table: TableHandle) -> list[dict[str, Any]]:
    """Return the rows of all data files as they are stored."""
    splits = lake.metadata.get_splits(table)
    return [row for f in splits.files for row in pq.read_table(f.path, schema=splits.storage).to_pylist()]


def ids(lake: Connector, table: TableHandle) -> list[int]:
    """Return the ids of all stored rows, in order."""
    return sorted(row["id"] for row in stored(lake, table))


def code_of(call: Callable[[], Any]) -> tuple[str, str]:
    """Return the code and the message of the error that a call raises."""
    with pytest.raises(TrinityError) as caught:
        call()
    return caught.value.code, caught.value.message


def rewrite_in(folder: Path) -> RewriteTableHandle:
    """Return a rewrite whose files go to a folder, of a table that no catalog has."""
    definition = TableDefinition("s", "t", (Column("k", "int"),))
    target = WriteTarget(str(folder), pa.schema([("k", pa.int32())]), (), "f" * 32)
    return RewriteTableHandle(TableHandle("c", "s", "t", str(folder)), definition, target, ())


def with_base(lake: Connector, handle: TableHandle) -> None:
    """Make a base of the rows 1, 2, 3, and a log with row 2."""
    append(lake, handle, (1, "a"), (2, "a"), (3, "a"))
    compact(lake, handle, BASE, [])()
    append(lake, handle, (2, "b"))
