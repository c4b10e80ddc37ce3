"""Tables of other writers, read and written by this process alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import dataset
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.refusals import refused
from trinity import Session
from trinity.table import Table

KEYED = {"primary-key": "id", "watermark-key": "ts", "tombstone-key": "deleted"}
FIRST = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "ts": pa.array([10, 10, 10, 10], pa.int64()),
        "deleted": pa.array([False, False, False, False]),
        "v": ["a", "b", "c", "nobody"],
        "p": ["x", "y", "x", "x"],
    }
)
SECOND = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 4], pa.int64()),
        "ts": pa.array([5, 20, 20, 1, 1], pa.int64()),
        "deleted": pa.array([False, False, True, None, None]),
        "v": ["late", "b2", "c2", "d", "d again"],
        "p": ["x", "y", "x", "x", "x"],
    }
)


def parquet(folder: Path, rows: pa.Table) -> None:
    name = f"load-{len(list(folder.iterdir())) if folder.exists() else 0}" + "-{i}.parquet"
    dataset.write_dataset(
        rows,
        folder,
        format="parquet",
        partitioning=dataset.partitioning(pa.schema([("p", pa.string())]), flavor="hive"),
        basename_template=name,
        existing_data_behavior="overwrite_or_ignore",
    )


def delta(folder: Path, rows: pa.Table) -> None:
    write_deltalake(str(folder), rows, mode="append", partition_by=["p"])


def iceberg(folder: Path, rows: pa.Table) -> None:
    lake(folder).create_table_if_not_exists("ns.t", rows.schema, location=f"file://{folder}").append(rows)


def lake(folder: Path) -> SqlCatalog:
    catalog = SqlCatalog("others", uri=f"sqlite:///{folder.parent}/others.db", warehouse=f"file://{folder.parent}")
    catalog.create_namespace_if_not_exists("ns")
    return catalog


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {"parquet": parquet, "delta": delta, "iceberg": iceberg}


def rows_of(table: Table, version: int | None = None) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(["id", "v", "p"], version=version).to_pylist())


@pytest.mark.parametrize("fmt", WRITERS)
def test_tables_of_others_are_read(local: Session, tmp_path: Path, fmt: str) -> None:
    folder, write = tmp_path / "theirs", WRITERS[fmt]
    write(folder, FIRST)
    table = local.register("theirs", fmt, folder, KEYED)
    before = table.splits().version
    assert rows_of(table) == [(1, "a", "x"), (2, "b", "y"), (3, "c", "x")]
    write(folder, SECOND)
    assert rows_of(table) == [(1, "a", "x"), (2, "b2", "y"), (4, "d again", "x")]
    if fmt != "parquet":
        assert rows_of(table, before) == [(1, "a", "x"), (2, "b", "y"), (3, "c", "x")]
    found = local.sql("SELECT v, p FROM theirs WHERE p = 'x' AND id > 1")
    assert (found.engine, found.collect()) == ("local", [("d again", "x")])
    assert table.to_arrow(where="id IN (2, 3)").num_rows == 1
    assert local.sql("SELECT count(*) FROM theirs").first() == (3,)
    log = table.log().to_arrow()
    assert sorted(filter(None, log["id"].to_pylist())) == [1, 1, 2, 2, 3, 3, 4, 4]
    bag = local.register("bag", fmt, folder)
    assert bag.to_arrow(where="v = 'nobody'")["p"].to_pylist() == ["x"]
    assert sorted(bag.to_arrow()["v"].to_pylist()) == sorted([*FIRST["v"].to_pylist(), *SECOND["v"].to_pylist()])
