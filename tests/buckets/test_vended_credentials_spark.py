"""Iceberg tables with temporary credentials from their REST catalog, through Spark: S3A has others for each table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import trinity
from tests.support.bucket_lake import objects
from tests.support.object_store import ObjectServer
from tests.support.tables import query
from trinity import Session

if TYPE_CHECKING:
    from tests.support.vending import Vending

pytestmark = pytest.mark.full  # the server is Java's

KEYED = "(k INT, v STRING, PRIMARY KEY (k))"
ROWS = "SELECT k, v FROM t ORDER BY k"


@pytest.fixture
def s3(vending: Vending, place: str, spark: SparkSession) -> Iterator[Session]:
    with trinity.connect(catalogs={"lake": vending.settings(place)}) as session:
        yield session


def test_a_table_is_merged_changed_compacted_and_vacuumed(
    s3: Session, vending: Vending, object_server: ObjectServer, place: str
) -> None:
    s3.sql(f"CREATE TABLE t {KEYED}")
    table = s3.table("t")
    table.upsert(pa.table({"k": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]}))
    table.upsert(s3.spark.sql("SELECT 1 AS k, 'x' AS v"))
    assert query(s3, ROWS) == [(1, "x"), (2, "b"), (3, "c")]
    assert table.compact(full=True).rows == 3
    table.upsert(pa.table({"k": pa.array([2], pa.int32()), "v": ["y"]}))
    assert query(s3, ROWS) == [(1, "x"), (2, "y"), (3, "c")]  # the base by its buckets
    s3.sql(
        "MERGE INTO t USING (SELECT 3 AS k UNION ALL SELECT 4) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'new')"
    )
    s3.sql("UPDATE t SET v = 'z' WHERE k = 1")
    table.compact("resolve")
    assert query(s3, ROWS) == [(1, "z"), (2, "y"), (4, "new")]
    assert table.vacuum("0 seconds").files > 0
    assert query(s3, ROWS) == [(1, "z"), (2, "y"), (4, "new")]
    s3.drop_table("t")
    assert objects(object_server, place) == []


def test_two_tables_of_a_bucket_are_read_at_once(s3: Session, vending: Vending) -> None:
    """The credential of one table does not open the other."""
    for name in ("t", "u"):
        s3.sql(f"CREATE TABLE {name} {KEYED}")
        s3.table(name).upsert(pa.table({"k": pa.array([1, 2], pa.int32()), "v": [name, name]}))
    both = s3.table("t").to_df().join(s3.table("u").to_df(), "k")
    assert query(s3, "SELECT t.k, t.v, u.v FROM t JOIN u ON t.k = u.k ORDER BY t.k") == [(1, "t", "u"), (2, "t", "u")]
    assert both.count() == 2
    s3.sql("INSERT INTO t SELECT k + 10, v FROM u")
    s3.sql("UPDATE u SET v = (SELECT max(t.v) FROM t) WHERE k = 1")
    assert query(s3, ROWS) == [(1, "t"), (2, "t"), (11, "u"), (12, "u")]


def test_spark_shows_no_credential(s3: Session, vending: Vending, tmp_path: Path) -> None:
    s3.sql(f"CREATE TABLE t {KEYED}")
    s3.sql(f"CREATE TABLE copy {KEYED}")
    s3.table("t").upsert(s3.spark.sql("SELECT 1 AS k, 'a' AS v"))
    frame = s3.sql(ROWS)
    frame.collect()
    batch = s3.spark.read.format("trinity").option("table", "lake.default.t").load()
    assert [tuple(row) for row in batch.select("k", "v").collect()] == [(1, "a")]
    stream = s3.spark.readStream.format("trinity").option("table", "lake.default.t").load()
    stopping = s3.table("copy").stream_writer(
        stream, checkpoint=str(tmp_path / "c"), transform=lambda rows: rows.select("k", "v"), available_now=True
    )
    stopping.awaitTermination()
    assert query(s3, "SELECT k, v FROM copy") == [(1, "a")]
    kept = [f.read_text() for f in (tmp_path / "c").rglob("*") if f.is_file() and f.suffix != ".crc"]
    plans = [f._jdf.queryExecution().toString() + f._jdf.queryExecution().logical().toJSON() for f in (frame, batch)]
    settings = [
        *kept,
        *plans,
        str(s3.spark.sparkContext.getConf().getAll()),
        repr(s3.table("t")),
        repr(s3.catalogs["lake"]),
    ]
    assert vending.secrets
    assert [secret for secret in vending.secrets for text in settings if secret in text] == []


def test_tables_that_others_made_are_read_and_written(s3: Session, vending: Vending, place: str) -> None:
    """PyIceberg makes the tables with credentials of the same catalog; one query reads two of them."""
    own = {
        "uri": vending.address,
        **{f"s3.{name}": str(vending.store.options[name]) for name in ("endpoint", "region")},
    }
    theirs = load_catalog("other", type="rest", **own)
    data = pa.table({"k": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})
    for name in ("one", "two"):
        theirs.create_table(f"default.{name}", data.schema, location=f"{place}/theirs/{name}").append(data)
    assert query(s3, "SELECT one.k, two.v FROM one JOIN two ON one.k = two.k ORDER BY 1") == [(1, "a"), (2, "b")]
    s3.table("one").append(data)
    assert s3.table("one").to_df().count() == 4
    assert theirs.load_table("default.one").scan().to_arrow().num_rows == 4
    frame = s3.table("two").to_df()
    assert [secret for secret in vending.secrets if secret in frame._jdf.queryExecution().toString()] == []
