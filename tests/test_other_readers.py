"""After a full compaction every other engine sees exactly the live rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import dataset
from pyiceberg.catalog.sql import SqlCatalog

from trinity import Session
from trinity.table import Table

Rows = set[tuple[str, float | None]]
QUERY = "SELECT order_id, amount FROM orders"


def live_files(table: Table) -> list[str]:
    return [f.path for f in table.splits().files]


def rows_of(found: pa.Table) -> Rows:
    assert found.num_rows == len({r["order_id"] for r in found.to_pylist()})
    return {(r["order_id"], r["amount"]) for r in found.to_pylist()}


def by_duckdb(session: Session, table: Table) -> Rows:
    orders = duckdb.read_parquet(live_files(table))
    return rows_of(pa.table(orders.project("order_id, amount")))


def by_pyarrow(session: Session, table: Table) -> Rows:
    return rows_of(dataset.dataset(live_files(table)).to_table())


def by_spark_over_the_folder(session: Session, table: Table) -> Rows:
    """A folder of Parquet files is right for everybody once the replaced files are gone."""
    table.vacuum("0 seconds")
    return rows_of(session.spark.read.parquet(table.location).toArrow())


def by_spark_delta(session: Session, table: Table) -> Rows:
    return rows_of(session.spark.read.format("delta").load(table.location).toArrow())


def by_delta_rs(session: Session, table: Table) -> Rows:
    # QueryBuilder honours deletion vectors, count() does not
    query = QueryBuilder().register("orders", DeltaTable(table.location))
    return rows_of(pa.table(query.execute(QUERY).read_all()))


def by_polars(session: Session, table: Table) -> Rows:
    return rows_of(pl.read_delta(table.location).to_arrow())


def by_spark_iceberg(session: Session, table: Table) -> Rows:
    settings = session.catalogs["iceberg"].spark_catalog_settings("iceberg")  # type: ignore[attr-defined]
    # the name may be bound to the warehouse of another test: a new Spark session has catalogs of its own
    spark = session.spark.newSession()
    for key, value in settings.items():
        spark.conf.set(key, value)
    return rows_of(spark.table("iceberg.default.orders").toArrow())


def by_pyiceberg(session: Session, table: Table) -> Rows:
    folder = Path(table.location).parents[1]
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    return rows_of(catalog.load_table("default.orders").scan().to_arrow())


READERS: list[tuple[str, Callable[[Session, Table], Rows]]] = [
    ("parquet", by_duckdb),
    ("parquet", by_pyarrow),
    ("parquet", by_spark_over_the_folder),
    ("delta", by_spark_delta),
    ("delta", by_delta_rs),
    ("delta", by_polars),
    ("iceberg", by_spark_iceberg),
    ("iceberg", by_pyiceberg),
]


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"], indirect=True)
def test_live_rows_for_everybody(session: Session, fmt: str, orders: Table) -> None:
    ids = [f"o{n}" for n in range(50)]
    orders.upsert(pa.table({"order_id": ids, "ts": [1] * 50, "amount": [1.0] * 50}))
    orders.upsert(pa.table({"order_id": ids[:10], "ts": [2] * 10, "amount": [2.0] * 10}))
    orders.upsert(pa.table({"order_id": ids[5:15], "ts": [3] * 10, "deleted": [True] * 10}))
    orders.compact(full=True)
    merged = {(r.order_id, r.amount) for r in orders.to_df().collect()}
    assert merged == {(i, 2.0) for i in ids[:5]} | {(i, 1.0) for i in ids[15:]}
    for catalog, read in READERS:
        if catalog == fmt:
            assert read(session, orders) == merged, read.__name__
