"""Tables that others wrote, registered or found in a catalog, read and written as Trinity's own (U7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import dataset
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from trinity import Session, TrinityError
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
AFTER_FIRST = {(1, "a"), (2, "b"), (3, "c")}
LIVE = {(1, "a"), (2, "b2"), (4, "d again")}
"""What both fold to: a late row loses, a tombstone hides its key, the later of two equal watermarks wins (K4)."""

Rows = set[tuple[object, object]]
Write = Callable[[Path, pa.Table], None]


def rows_of(table: Table, version: int | None = None) -> Rows:
    found = [(r.id, r.v) for r in table.to_df(version).collect()]
    assert len(set(found)) == len(found)
    return set(found)


# -- other writers ----------------------------------------------------------------------------------------


def delta_rs(folder: Path, rows: pa.Table) -> None:
    write_deltalake(str(folder), rows, mode="append")


def delta_rs_by_partition(folder: Path, rows: pa.Table) -> None:
    write_deltalake(str(folder), rows, mode="append", partition_by=["p"])


def spark_delta(folder: Path, rows: pa.Table) -> None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.createDataFrame(rows).repartition(1).write.format("delta").mode("append").save(str(folder))


def pyarrow_files(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / f"{len(list(folder.iterdir()))}.parquet")


def pyarrow_dataset(folder: Path, rows: pa.Table) -> None:
    name = f"load-{len(list(folder.iterdir())) if folder.exists() else 0}" + "-{i}.parquet"
    kind = dataset.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    dataset.write_dataset(
        rows,
        folder,
        format="parquet",
        partitioning=kind,
        basename_template=name,
        existing_data_behavior="overwrite_or_ignore",
    )


def duckdb_files(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    duckdb.from_arrow(rows).write_parquet(str(folder / f"{len(list(folder.iterdir()))}.parquet"))


def pyiceberg(folder: Path, rows: pa.Table) -> None:
    catalog = SqlCatalog("others", uri=f"sqlite:///{folder.parent}/others.db", warehouse=f"file://{folder.parent}")
    catalog.create_namespace_if_not_exists("ns")
    catalog.create_table_if_not_exists("ns.t", rows.schema, location=f"file://{folder}").append(rows)


def spark_iceberg(folder: Path, rows: pa.Table) -> None:
    spark = hadoop_catalog(folder.parent.parent)
    frame, name = spark.createDataFrame(rows).repartition(1), f"files.{folder.parent.name}.{folder.name}"
    if folder.exists():
        frame.writeTo(name).append()
    else:
        frame.writeTo(name).tableProperty("format-version", "2").create()


def hadoop_catalog(warehouse: Path) -> SparkSession:
    """Spark with an Iceberg catalog ``files`` whose tables lie in folders, without a service."""
    active = SparkSession.getActiveSession()
    assert active is not None
    spark = active.newSession()
    spark.conf.set("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.files.type", "hadoop")
    spark.conf.set("spark.sql.catalog.files.warehouse", f"file://{warehouse}")
    return spark


WRITERS: list[tuple[str, Write]] = [
    ("parquet", pyarrow_files),
    ("parquet", pyarrow_dataset),
    ("parquet", duckdb_files),
    ("delta", delta_rs),
    ("delta", delta_rs_by_partition),
    ("delta", spark_delta),
    ("iceberg", pyiceberg),
    ("iceberg", spark_iceberg),
]
NAMES = [write.__name__ for _, write in WRITERS]


@pytest.mark.parametrize(("connector", "write"), WRITERS, ids=NAMES)
def test_the_merged_read_of_a_table_of_others(
    session: Session, tmp_path: Path, spark: SparkSession, connector: str, write: Write
) -> None:
    folder = tmp_path / "theirs"
    write(folder, FIRST)
    table = session.register("theirs", connector, folder, KEYED)
    assert rows_of(table) == AFTER_FIRST
    before = table.splits().version
    write(folder, SECOND)
    assert rows_of(table) == LIVE
    assert {tuple(r) for r in session.sql("SELECT id, v FROM theirs WHERE id > 1").collect()} == LIVE - {(1, "a")}
    log = table.log().collect()
    assert len(log) == 9
    assert {r.v for r in log if r.id is None} == {"nobody"}
    if connector == "parquet":
        assert {r._commit_version for r in log} == {table.splits().version}
        with pytest.raises(TrinityError, match="only readable one"):
            table.to_df(before)
    else:
        assert len({r._commit_version for r in log}) == 2
        assert rows_of(table, before) == AFTER_FIRST
