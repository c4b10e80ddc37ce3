"""Other writers: how they write, delete and rewrite, and the rows that a reader without keys sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _pytest.mark import ParameterSet
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyarrow import dataset
from pyspark.sql import SparkSession

from tests.support.iceberg import iceberg_spark
from tests.support.others import FIRST as FIRST
from tests.support.others import KEYED as KEYED
from tests.support.others import SECOND as SECOND
from tests.support.others import delta_rs_by_partition as delta_rs_by_partition
from tests.support.others import pyarrow_dataset as pyarrow_dataset
from tests.support.others import pyiceberg as pyiceberg
from trinity import Session, Table
from trinity.engine.reading.plan import plan_read

AFTER_FIRST = {(1, "a"), (2, "b"), (3, "c")}
LIVE = {(1, "a"), (2, "b2"), (4, "d again")}
"""The merged rows of both: a late row loses, a tombstone hides its key, the later of two equal watermarks wins (K4)."""

Rows = set[tuple[object, object]]
Write = Callable[[Path, pa.Table], None]


def rows_of(table: Table, version: int | None = None) -> Rows:
    """Return the rows of a table; check that both executors read the same."""
    found = [(r.id, r.v) for r in table.to_df(version).collect()]
    assert len(set(found)) == len(found)
    assert plan_read(table.splits(version)).not_local is None
    here = table.to_arrow(["id", "v"], version=version)
    assert sorted(map(repr, here.to_pylist())) == sorted(repr({"id": key, "v": value}) for key, value in found)
    return set(found)


# -- other writers ----------------------------------------------------------------------------------------


def delta_rs(folder: Path, rows: pa.Table) -> None:
    write_deltalake(str(folder), rows, mode="append")


def spark_delta(folder: Path, rows: pa.Table) -> None:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.createDataFrame(rows).repartition(1).write.format("delta").mode("append").save(str(folder))


def pyarrow_files(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / f"{len(list(folder.iterdir()))}.parquet")


def duckdb_files(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(exist_ok=True)
    duckdb.from_arrow(rows).write_parquet(str(folder / f"{len(list(folder.iterdir()))}.parquet"))


def spark_iceberg(folder: Path, rows: pa.Table) -> None:
    spark = hadoop_catalog(folder.parent.parent)
    frame, name = spark.createDataFrame(rows).repartition(1), f"files.{folder.parent.name}.{folder.name}"
    if folder.exists():
        frame.writeTo(name).append()
    else:
        frame.writeTo(name).tableProperty("format-version", "2").create()


def hadoop_catalog(warehouse: Path) -> SparkSession:
    """Return a Spark session with an Iceberg catalog ``files`` of type ``hadoop``."""
    active = SparkSession.getActiveSession()
    assert active is not None
    spark = active.newSession()
    spark.conf.set("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.files.type", "hadoop")
    spark.conf.set("spark.sql.catalog.files.warehouse", f"file://{warehouse}")
    return spark


WRITERS: list[tuple[str, Write]] = [
    ("parquet", pyarrow_dataset),
    ("delta", delta_rs),
    ("iceberg", pyiceberg),
    ("parquet", pyarrow_files),
    ("parquet", duckdb_files),
    ("delta", delta_rs_by_partition),
    ("delta", spark_delta),
    ("iceberg", spark_iceberg),
]


def cases(*short: Write) -> list[ParameterSet]:
    """Return every writer as a test parameter; those that are not named run in the long tier only."""
    marks = [() if write in short else pytest.mark.full for _, write in WRITERS]
    return [pytest.param(c, w, marks=m, id=w.__name__) for (c, w), m in zip(WRITERS, marks, strict=True)]


def seen_by_others(folder: Path, connector: str) -> pa.Table:
    """Return all stored rows, read by an engine that does not know about keys."""
    if connector == "parquet":
        return dataset.dataset(folder, partitioning="hive").to_table()
    if connector == "delta":
        found = QueryBuilder().register("t", DeltaTable(str(folder))).execute("SELECT * FROM t").read_all()
        return pa.table(found)
    return hadoop_catalog(folder.parent.parent).table(f"files.{folder.parent.name}.{folder.name}").toArrow()


def equality_delete(spark: SparkSession, name: str, folder: Path, key: int) -> None:
    """Delete a key by an equality delete file, as streaming engines do."""
    table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)  # type: ignore[union-attr]
    iceberg = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    path = folder / "data" / "deletes.parquet"
    pq.write_table(pa.table([[key]], pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])), path)
    builder = iceberg.FileMetadata.deleteFileBuilder(iceberg.PartitionSpec.unpartitioned())
    ids = spark._sc._gateway.new_array(spark._jvm.int, 1)  # type: ignore[union-attr]
    ids[0] = 1
    file = builder.ofEqualityDeletes(ids).withPath(f"file:{path}").withFormat("PARQUET")
    file = file.withFileSizeInBytes(path.stat().st_size).withRecordCount(1).build()
    table.newRowDelta().addDeletes(file).commit()


# -- Trinity's own tables ---------------------------------------------------------------------------------


class Other:
    """Spark's own reader and writer of a format, applied to a table of Trinity."""

    def __init__(self, session: Session, table: Table) -> None:
        self.table = table
        self.format = table.name.catalog
        self.location = table.location
        self.spark = session.spark if self.format == "delta" else iceberg_spark(session)
        self.name = f"delta.`{table.location}`" if self.format == "delta" else f"iceberg.default.{table.name.table}"

    def __call__(self, *statements: str) -> list[Any]:
        """Run statements, in which ``{t}`` is the table, and return the rows of the last one."""
        rows: list[Any] = []
        for statement in statements:
            rows = self.spark.sql(statement.format(t=self.name)).collect()
        return rows

    def append(self, **row: Any) -> None:
        """Insert a row."""
        names = ", ".join(row)
        values = ", ".join("NULL" if v is None else repr(v) for v in row.values())
        self(f"INSERT INTO {{t}} ({names}) VALUES ({values})")

    def add(self, rows: pa.Table) -> None:
        """Insert rows without Trinity's hidden columns, which another writer does not know."""
        self.spark.createDataFrame(rows).createOrReplaceTempView("added")
        names = ", ".join(rows.column_names)
        self(f"INSERT INTO {{t}} ({names}) SELECT {names} FROM added")

    def rewrite(self, by: str | None = None) -> None:
        """Rewrite all files by the format's own compaction, sorted by a column if one is given."""
        if self.format == "delta":
            self("OPTIMIZE {t}" + (f" ZORDER BY ({by})" if by else ""))
            return
        sorts = f", strategy => 'sort', sort_order => '{by} DESC NULLS LAST'" if by else ""
        name = f"default.{self.table.name.table}"
        options = "map('rewrite-all', 'true')"
        [found] = self(f"CALL iceberg.system.rewrite_data_files(table => '{name}', options => {options}{sorts})")
        assert found.rewritten_data_files_count > 0


def shown(table: Table) -> list[str]:
    """Return the merged rows as texts; check that both executors read the same."""
    found = sorted(map(repr, table.to_df().toArrow().to_pylist()))
    if plan_read(table.splits()).not_local is None:
        assert sorted(map(repr, table.to_arrow().to_pylist())) == found
    return found
