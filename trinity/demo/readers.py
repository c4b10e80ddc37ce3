"""Engines that know nothing of Trinity, reading the demo's tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trinity.demo.load import table_of
from trinity.session import Session

__all__ = ["READERS", "Reader", "Seen", "look"]


@dataclass(frozen=True)
class Seen:
    """A reader's result: number of rows, and the sum of their arrival delays in minutes."""

    rows: int
    delay: int


@dataclass(frozen=True)
class Reader:
    """Another engine's way to read a table of ``catalog``."""

    catalog: str
    name: str
    read: Callable[[Session], Seen]


def look(session: Session, reader: Reader) -> Seen | None:
    """The reader's result now; None when its package is not installed."""
    try:
        return reader.read(session)
    except ImportError:
        return None


def _files(session: Session, catalog: str = "parquet") -> list[str]:
    """The data files, as ``table.log()`` lists them."""
    rows = table_of(session, catalog).log().where("_tier <> 'sidecar'").select("_file").distinct().collect()
    return sorted(r[0] for r in rows)


def _location(session: Session, catalog: str) -> str:
    return table_of(session, catalog).location


def _duckdb(session: Session) -> Seen:
    import duckdb

    with duckdb.connect() as connection:
        row = connection.execute("SELECT count(*), sum(arr_delay) FROM read_parquet(?)", [_files(session)]).fetchone()
    assert row is not None
    return Seen(int(row[0]), int(row[1]))


def _pyarrow(session: Session) -> Seen:
    import pyarrow.compute as pc
    from pyarrow import dataset

    rows = dataset.dataset(_files(session), format="parquet").to_table(columns=["arr_delay"])
    return Seen(rows.num_rows, pc.sum(rows["arr_delay"]).as_py())


def _spark_delta(session: Session) -> Seen:
    rows = session.spark.read.format("delta").load(_location(session, "delta"))
    row = rows.selectExpr("count(*)", "sum(arr_delay)").collect()[0]
    return Seen(row[0], row[1])


def _delta_rs(session: Session) -> Seen:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("flights", DeltaTable(_location(session, "delta")))
    found = pa.table(query.execute("SELECT count(*) AS n, sum(arr_delay) AS d FROM flights").read_all())
    return Seen(found["n"][0].as_py(), found["d"][0].as_py())


def _polars(session: Session) -> Seen:
    import deltalake  # noqa: F401  what Polars reads Delta with
    import polars as pl

    scan = pl.scan_delta(_location(session, "delta"))
    rows = scan.select(pl.len().alias("n"), pl.col("arr_delay").cast(pl.Int64).sum().alias("d")).collect()
    return Seen(int(rows["n"][0]), int(rows["d"][0]))


def _pyiceberg(session: Session) -> Seen:
    import pyarrow.compute as pc
    from pyiceberg.catalog.sql import SqlCatalog

    folder = Path(_location(session, "iceberg")).parents[1]
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    rows = catalog.load_table("default.flights").scan(selected_fields=("arr_delay",)).to_arrow()
    return Seen(rows.num_rows, pc.sum(rows["arr_delay"]).as_py())


def _spark_iceberg(session: Session) -> Seen:
    settings = session.catalogs["iceberg"].spark_catalog_settings("iceberg")  # type: ignore[attr-defined]
    for key, value in settings.items():
        session.spark.conf.set(key, value)
    rows = session.spark.table("iceberg.default.flights")
    row = rows.selectExpr("count(*)", "sum(arr_delay)").collect()[0]
    return Seen(row[0], row[1])


READERS: Final = (
    Reader("parquet", "DuckDB", _duckdb),
    Reader("parquet", "pyarrow", _pyarrow),
    Reader("delta", "Spark's Delta reader", _spark_delta),
    Reader("delta", "delta-rs", _delta_rs),
    Reader("delta", "Polars", _polars),
    Reader("iceberg", "Iceberg's Spark runtime", _spark_iceberg),
    Reader("iceberg", "PyIceberg", _pyiceberg),
)
