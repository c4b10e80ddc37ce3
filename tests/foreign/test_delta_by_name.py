"""Delta tables by their names in a catalog of Spark: Spark's own, and a Hive metastore."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.refusals import refusal
from trinity import Session


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Make a schema in Spark with a Delta table that names its key, one without, a table of files, and a view."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path}/shop'")
    spark.sql(
        f"CREATE TABLE {name}.orders (id INT, ts BIGINT, Location STRING) USING delta TBLPROPERTIES "
        "('trinity.primary-key' = 'id', 'trinity.watermark-key' = 'ts')"
    )
    spark.sql(f"INSERT INTO {name}.orders VALUES (1, 1, 'a'), (2, 1, 'b')")
    spark.sql(f"CREATE TABLE {name}.elsewhere USING delta LOCATION '{tmp_path}/else where' AS SELECT 1 AS n")
    spark.sql(f"CREATE TABLE {name}.files USING parquet AS SELECT 1 AS n")
    spark.sql(f"CREATE VIEW {name}.seen AS SELECT * FROM {name}.orders")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def by_name(spark: SparkSession, warehouse: Path, named: str) -> Iterator[Session]:
    catalogs = {"lake": {"connector": "delta", "spark_catalog": "spark_catalog"}}
    with trinity.connect(warehouse, spark=spark, catalogs=catalogs, catalog="lake", schema=named) as opened:
        yield opened


def test_tables_are_found_read_and_written(by_name: Session, spark: SparkSession, named: str) -> None:
    assert by_name.list_tables("lake", named) == ["elsewhere", "orders"]
    assert named in by_name.connector("lake").metadata.list_schemas()
    orders = by_name.table("orders")
    assert orders.upsert(pa.table({"id": [1, 3], "ts": [2, 1], "Location": ["newer", "c"]})).version == 2
    by_name.sql("INSERT INTO orders VALUES (2, 0, 'late')")
    assert by_name.sql("SELECT id, location FROM orders ORDER BY id").collect() == [(1, "newer"), (2, "b"), (3, "c")]
    assert spark.table(f"{named}.orders").count() == 5  # Spark sees row versions, until a compaction
    orders.compact()
    assert sorted(tuple(r) for r in spark.table(f"{named}.orders").collect()) == [
        (1, 2, "newer"),
        (2, 1, "b"),
        (3, 1, "c"),
    ]
    assert by_name.sql("SELECT n FROM elsewhere").collect() == [(1,)]
    by_name.sql("CREATE TABLE parquet.default.copied AS SELECT id FROM orders")
    assert by_name.sql("SELECT count(*) FROM parquet.default.copied").collect() == [(3,)]


def test_what_is_no_delta_table_or_not_there_is_said(by_name: Session, spark: SparkSession, named: str) -> None:
    assert "is a table of parquet" in refusal("NOT_SUPPORTED", lambda: by_name.table("files"))
    assert "is a view" in refusal("NOT_SUPPORTED", lambda: by_name.table("seen"))
    assert "orders" in refusal("TABLE_NOT_FOUND", lambda: by_name.table("order"))
    refusal("SCHEMA_NOT_FOUND", lambda: by_name.table("lake.nowhere.orders"))
    refusal("SCHEMA_NOT_FOUND", lambda: by_name.list_tables("lake", "nowhere"))
    for statement in (
        "CREATE TABLE made (id INT, PRIMARY KEY (id))", "DROP TABLE orders", "CREATE SCHEMA lake.made",
        f"DROP SCHEMA lake.{named}",
    ):  # fmt: skip
        message = refusal("NOT_SUPPORTED", lambda text=statement: by_name.sql(text))
        assert "say it to Spark" in message or "leaves DROP TABLE to the engine that made it" in message
    assert spark.table(f"{named}.orders").count() == 2


def test_options_of_the_catalog(spark: SparkSession, warehouse: Path) -> None:
    for options in ({}, {"warehouse": str(warehouse), "spark_catalog": "spark_catalog"}):
        wrong = {"lake": {"connector": "delta", **options}}
        with trinity.connect(warehouse, spark=spark, catalogs=wrong) as session:
            assert "'spark_catalog'" in refusal("CONFIGURATION_INVALID", lambda s=session: s.connector("lake"))
    unknown = {"lake": {"connector": "delta", "spark_catalog": "nowhere"}}
    with trinity.connect(warehouse, spark=spark, catalogs=unknown) as session:
        message = refusal("CONFIGURATION_INVALID", lambda: session.connector("lake").metadata.list_schemas())
        assert "Spark has no catalog 'nowhere'" in message


METASTORE = """
import sys, pyarrow as pa, trinity
from pyspark.sql import SparkSession
folder = sys.argv[1]
with trinity.connect(folder + "/first", spark_settings={
    "spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": folder + "/hive", "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}/derby",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
}) as first:
    spark = first.spark
    assert spark.conf.get("spark.sql.catalogImplementation") == "hive"
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    spark.sql("CREATE TABLE IF NOT EXISTS shop.orders (id INT, ts BIGINT, v STRING) USING delta "
              "TBLPROPERTIES ('trinity.primary-key' = 'id', 'trinity.watermark-key' = 'ts')")
    lake = {"lake": {"connector": "delta", "spark_catalog": "spark_catalog"}}
    with trinity.connect(folder + "/own", spark=spark, catalogs=lake) as session:
        orders = session.table("lake.shop.orders")
        orders.upsert(pa.table({"id": [1], "ts": [len(orders.history().collect())], "v": ["a"]}))
        print("TABLES", session.list_tables("lake", "shop"), orders.to_df().count(), orders.log().count())
    spark.stop()
"""


@pytest.mark.full
def test_a_hive_metastore_has_the_names(tmp_path: Path) -> None:
    for count in (1, 2):  # a second program finds what the first one made
        done = subprocess.run(
            [sys.executable, "-c", METASTORE, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert f"TABLES ['orders'] 1 {count}" in done.stdout, done.stdout + done.stderr[-3000:]
