"""Engines without Trinity that read the demo's tables; buckets are reached by the environment's settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from trinity.demo.load import STAGES, table_of
from trinity.engine.executes import runs_alone
from trinity.session import Session
from trinity.storage import Location
from trinity.storage.s3 import S3Options


@dataclass(frozen=True)
class Seen:
    """A reader's result: number of rows, and the sum of their arrival delays in minutes."""

    rows: int
    delay: int


@dataclass(frozen=True)
class Reader:
    """A way in which another engine reads a table.

    Attributes:
        catalog: the table's catalog.
        name: its name in the report.
        read: reads the table.
        merged: stages of the table in which it sees the merged rows.
        in_buckets: False for an engine that reads only files on a disk.
        by_spark: True for an engine that runs in Spark.
    """

    catalog: str
    name: str
    read: Callable[[Session], Seen]
    merged: tuple[str, ...] = STAGES[1:]
    in_buckets: bool = True
    by_spark: bool = False


def look(session: Session, reader: Reader) -> Seen | None:
    """Return the reader's result; None if it is not installed, or cannot read the table's store."""
    if reader.by_spark and runs_alone(session):
        return None
    if not (reader.in_buckets or _location(session, reader.catalog).on_disk):
        return None
    try:
        return reader.read(session)
    except ImportError:
        return None


def _files(session: Session, catalog: str = "parquet") -> list[str]:
    """Return the table's data files, without the sidecar."""
    return sorted(file.path for file in table_of(session, catalog).splits().files)


def _location(session: Session, catalog: str) -> Location:
    return Location.of(table_of(session, catalog).location)


def _duckdb(session: Session) -> Seen:
    return _by_duckdb("read_parquet(?)", [_files(session)])


def _duckdb_view(session: Session) -> Seen:
    return _by_duckdb(f"({table_of(session, 'parquet').merge_view_sql('duckdb')})")


def _by_duckdb(source: str, parameters: Sequence[object] = ()) -> Seen:
    import duckdb

    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT count(*), sum(arr_delay) FROM {source}", parameters).fetchone()
    assert row is not None
    return Seen(int(row[0]), int(row[1]))


def _pyarrow(session: Session) -> Seen:
    import pyarrow.compute as pc
    from pyarrow import dataset, fs

    files, on_disk = _files(session), _location(session, "parquet").on_disk
    options = S3Options().resolved()
    filesystem = (
        fs.LocalFileSystem() if on_disk else fs.S3FileSystem(endpoint_override=options.endpoint, region=options.region)
    )
    source = dataset.dataset([f.removeprefix("s3://") for f in files], format="parquet", filesystem=filesystem)
    rows = source.to_table(columns=["arr_delay"])
    return Seen(rows.num_rows, pc.sum(rows["arr_delay"]).as_py())


def _spark_delta(session: Session) -> Seen:
    rows = session.spark.read.format("delta").load(_location(session, "delta").for_spark)
    row = rows.selectExpr("count(*)", "sum(arr_delay)").collect()[0]
    return Seen(row[0], row[1])


def _delta_rs(session: Session) -> Seen:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("flights", DeltaTable(str(_location(session, "delta"))))
    found = pa.table(query.execute("SELECT count(*) AS n, sum(arr_delay) AS d FROM flights").read_all())
    return Seen(found["n"][0].as_py(), found["d"][0].as_py())


def _polars(session: Session) -> Seen:
    import deltalake  # noqa: F401  what Polars reads Delta with
    import polars as pl

    scan = pl.scan_delta(str(_location(session, "delta")))
    rows = scan.select(pl.len().alias("n"), pl.col("arr_delay").cast(pl.Int64).sum().alias("d")).collect()
    return Seen(int(rows["n"][0]), int(rows["d"][0]))


def _iceberg_settings(session: Session) -> dict[str, str]:
    """Return the settings for the catalog in Spark's Iceberg runtime."""
    settings: dict[str, str] = session.catalogs["iceberg"].spark_catalog_settings("iceberg")  # type: ignore[attr-defined]
    return settings


def _pyiceberg(session: Session) -> Seen:
    import pyarrow.compute as pc
    from pyiceberg.catalog.sql import SqlCatalog

    settings = {key.rpartition(".")[2]: value for key, value in _iceberg_settings(session).items()}
    names = settings["uri"].removeprefix("jdbc:sqlite:")
    options = S3Options().resolved()
    bucket = {f"s3.{name}": value for name in ("endpoint", "region") if (value := getattr(options, name))}
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{names}", warehouse=settings["warehouse"], **bucket)
    rows = catalog.load_table("default.flights").scan(selected_fields=("arr_delay",)).to_arrow()
    return Seen(rows.num_rows, pc.sum(rows["arr_delay"]).as_py())


def _spark_iceberg(session: Session) -> Seen:
    for key, value in _iceberg_settings(session).items():
        session.spark.conf.set(key, value)
    rows = session.spark.table("iceberg.default.flights")
    row = rows.selectExpr("count(*)", "sum(arr_delay)").collect()[0]
    return Seen(row[0], row[1])


READERS: Final = (
    Reader("parquet", "DuckDB", _duckdb, STAGES[2:], in_buckets=False),
    Reader("parquet", "DuckDB, by the table's merge view", _duckdb_view, STAGES, in_buckets=False),
    Reader("parquet", "pyarrow", _pyarrow, STAGES[2:]),
    Reader("delta", "Spark's Delta reader", _spark_delta, by_spark=True),
    Reader("delta", "delta-rs", _delta_rs),
    Reader("delta", "Polars", _polars),
    Reader("iceberg", "Iceberg's Spark runtime", _spark_iceberg, by_spark=True),
    Reader("iceberg", "PyIceberg", _pyiceberg),
)
