"""Tables in a bucket of S3 through Spark: merged reads, row changes, compaction; Spark reads by S3A."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import BucketLake
from tests.support.bucket_sql import ROWS, check_keyed, check_plain, check_resolved
from tests.support.bucket_use import check_patience
from tests.support.fault_proxy import LOST, Answer
from tests.support.object_store import SECRET
from trinity import Session


@pytest.fixture
def s3(cloud: BucketLake, spark: SparkSession) -> Iterator[Session]:
    with cloud.connect() as session:
        yield session


def test_rows_that_tasks_write_are_merged(s3: Session) -> None:
    s3.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    s3.table("t").upsert(s3.spark.sql("SELECT 1 AS k, 'a' AS v"))
    s3.table("t").upsert(s3.spark.sql("SELECT 1 AS k, 'b' AS v"))
    assert [tuple(row) for row in s3.sql(ROWS).collect()] == [(1, "b")]
    assert SECRET not in s3.sql(ROWS)._jdf.queryExecution().toString()
    assert SECRET not in str(s3.spark.sparkContext.getConf().getAll())


@pytest.mark.full
def test_a_keyed_table_is_merged_changed_and_compacted(s3: Session, cloud: BucketLake) -> None:
    check_keyed(s3, cloud.fmt)


@pytest.mark.full
def test_a_plain_table_is_rewritten_and_its_changes_read(s3: Session, cloud: BucketLake) -> None:
    check_plain(s3, cloud.fmt)


@pytest.mark.full
def test_a_resolved_table_is_read(s3: Session) -> None:
    check_resolved(s3)


@pytest.mark.full
@pytest.mark.parametrize(
    "cloud",
    ["parquet", pytest.param("delta", marks=pytest.mark.full), pytest.param("iceberg", marks=pytest.mark.full)],
    indirect=True,
)
def test_workers_of_sources_reach_the_bucket(s3: Session, cloud: BucketLake, tmp_path: Path) -> None:
    """They lack Spark's environment variables, and get the keys with the list of files, where no output shows them."""
    s3.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    s3.sql("CREATE TABLE copy (k INT, v STRING, PRIMARY KEY (k))")
    s3.table("t").upsert(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    source = {"table": str(s3.table("t").name)}
    batch = s3.spark.read.format("trinity").options(**source).load()
    assert sorted(tuple(row) for row in batch.select("k", "v").collect()) == [(1, "a"), (2, "b")]
    assert SECRET not in batch._jdf.queryExecution().toString()
    stream = s3.spark.readStream.format("trinity").options(**source).load()
    query = s3.table("copy").stream_writer(
        stream, checkpoint=str(tmp_path / "c"), transform=lambda rows: rows.select("k", "v"), available_now=True
    )
    query.awaitTermination()
    assert [tuple(row) for row in s3.sql("SELECT k, v FROM copy ORDER BY k").collect()] == [(1, "a"), (2, "b")]
    assert SECRET not in "".join(
        file.read_text() for file in (tmp_path / "c").rglob("*") if file.is_file() and not file.name.endswith(".crc")
    )


@pytest.mark.full
@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
@pytest.mark.parametrize("answer", [LOST, Answer(503), None], ids=["lost", "throttled", "silent"])
@pytest.mark.usefixtures("spark")
def test_a_store_that_fails_spark_is_told_soon(cloud: BucketLake, answer: Answer | None) -> None:
    check_patience(cloud, answer)
