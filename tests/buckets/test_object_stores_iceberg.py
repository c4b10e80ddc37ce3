"""Iceberg tables in an S3 bucket, whose catalog is elsewhere: how it is found, and what other engines read."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable
from pyspark.sql import SparkSession

import trinity
from tests.support.bucket_lake import ROWS, BucketLake, objects, stored
from tests.support.object_store import SECRET, ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table

on_sqlite = pytest.mark.parametrize("cloud", ["iceberg"], indirect=True)


@on_sqlite
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"uri": ""}, "lacks the option 'uri'"),
        ({"s3.endpoint": "http://127.0.0.1:1"}, "storage_options"),
        ({"uri": "sqlite:////no/such/folder/catalog.db"}, "unable to open database file"),
    ],
)
def test_a_catalog_says_where_its_database_is(cloud: BucketLake, option: dict[str, str], words: str) -> None:
    settings = {**cloud.settings(), **option}
    message = refusal("CONFIGURATION_INVALID", lambda: trinity.connect(catalogs={"lake": settings}))
    assert words in message
    assert "'lake'" in message


@pytest.mark.parametrize(
    "cloud", ["iceberg-postgres", pytest.param("iceberg-rest", marks=pytest.mark.full), "iceberg-glue"], indirect=True
)
def test_a_catalog_may_be_elsewhere(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    with cloud.connect() as other:
        assert other.table("plain").append(ROWS).version == plain.splits().version
        assert len(stored(object_server, plain)) == 4
        other.drop_table("plain")
    refusal("TABLE_NOT_FOUND", plain.splits)
    assert objects(object_server, plain.location) == []


def by_pyiceberg(cloud: BucketLake, name: str) -> IcebergTable:
    """Return a table as PyIceberg loads it, with its own access to the bucket."""
    known = {f"s3.{option.replace('_', '-')}": str(value) for option, value in cloud.server.options.items()}
    return SqlCatalog("lake", uri=cloud.database["uri"], **known).load_table(f"default.{name}")


@on_sqlite
def test_pyiceberg_reads_and_writes_the_table(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    found = by_pyiceberg(cloud, "plain")
    assert found.metadata.location == plain.location
    assert found.metadata.current_snapshot().manifest_list.startswith(cloud.place)  # type: ignore[union-attr]
    assert sorted(found.scan().to_arrow().column("k").to_pylist()) == [1, 2]
    found.append(ROWS)
    assert [row["k"] for row in stored(object_server, plain)] == [1, 1, 2, 2]


@pytest.mark.full
@on_sqlite
def test_damaged_metadata_is_repaired(
    plain: Table, s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    by_pyiceberg(cloud, "plain").append(ROWS)  # metadata that this process has not seen
    newest = by_pyiceberg(cloud, "plain").metadata_location.removeprefix("s3://")
    with object_server.files.open_output_stream(newest) as stream:
        stream.write(b"{")
    assert newest in refusal("BAD_DATA", plain.splits)
    s3.repair("plain")
    assert len(stored(object_server, s3.table("plain"))) == 2


def as_iceberg_reads(s3: Session) -> Any:
    """Return a Spark session that reads the catalog through Iceberg's runtime."""
    found = s3.spark.newSession()
    for key, value in s3.catalogs["lake"].spark_catalog_settings("lake").items():  # type: ignore[attr-defined]
        found.conf.set(key, value)
    return found


@pytest.mark.full
@on_sqlite
def test_spark_reads_and_writes_through_icebergs_runtime(spark: SparkSession, s3: Session) -> None:
    s3.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    table = s3.table("t")
    table.upsert(ROWS)
    table.upsert(ROWS.set_column(1, "v", [["x", "y"]]))
    table.compact(full=True)
    own = as_iceberg_reads(s3)
    assert [tuple(row) for row in own.sql("SELECT k, v FROM lake.default.t ORDER BY k").collect()] == [
        (1, "x"),
        (2, "y"),
    ]
    own.sql("DELETE FROM lake.default.t WHERE k = 1")
    assert [row["k"] for row in s3.sql("SELECT k FROM t").collect()] == [2]


@pytest.mark.full
@on_sqlite
def test_a_table_that_spark_made_is_read_and_written(spark: SparkSession, s3: Session, cloud: BucketLake) -> None:
    own = as_iceberg_reads(s3)
    own.sql("CREATE TABLE lake.default.made (k INT, v STRING)")
    own.sql("INSERT INTO lake.default.made VALUES (1, 'a'), (2, 'b')")
    made = s3.table("made")
    assert [row["k"] for row in s3.sql("SELECT k FROM made ORDER BY k").collect()] == [1, 2]
    made.append(ROWS)
    again = s3.register("again", "iceberg", made.location)
    assert again.to_df().count() == 4
    assert made.to_df(version=1).count() == 2
    assert SECRET not in made.to_df()._jdf.queryExecution().toString()
