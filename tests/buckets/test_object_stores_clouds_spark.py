"""Tables in Google's buckets and Azure's containers through Spark, by the connectors that Hadoop has for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.bucket_lake import FIRST, BucketLake, Server, bucket_lake, database_of, refusal
from tests.support.bucket_use import check_patience
from tests.support.fault_proxy import LOST, Answer
from trinity import Session

pytestmark = pytest.mark.full

SERVERS = {"gcs": "google_server", "azure": "azure_server"}
ROWS = "SELECT k, v FROM t ORDER BY k"


@pytest.fixture(params=[f"{kind}-{fmt}" for kind in SERVERS for fmt in FIRST])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> BucketLake:
    """A catalog of each format in a bucket of each of these stores."""
    kind, _, fmt = str(request.param).partition("-")
    server: Server = request.getfixturevalue(SERVERS[kind])
    return bucket_lake(fmt, server, server.new_bucket(), database_of(fmt, tmp_path))


@pytest.fixture
def there(cloud: BucketLake, spark: SparkSession) -> Iterator[Session]:
    """A session that has this catalog alone."""
    with cloud.connect() as opened:
        yield opened


def test_a_keyed_table_is_merged_changed_and_compacted(there: Session, cloud: BucketLake) -> None:
    there.sql("CREATE TABLE t (k INT, ts BIGINT, v STRING, PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'ts')")
    table = there.table("t")
    table.upsert(pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"]}))
    table.upsert(there.spark.sql("SELECT 1 AS k, 2L AS ts, 'x' AS v UNION ALL SELECT 2, 0L, 'late'"))
    assert [tuple(row) for row in there.sql(ROWS).collect()] == [(1, "x"), (2, "b"), (3, "c")]
    assert table.compact(full=True).rows == 3
    there.sql(
        "MERGE INTO t USING (SELECT 3 AS k, 9L AS ts UNION ALL SELECT 4, 9L) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, ts, v) VALUES (s.k, s.ts, 'new')"
    )
    there.sql("UPDATE t SET v = 'y', ts = 9 WHERE k = 2")
    assert not table.compact("minor").skipped
    assert [tuple(row) for row in there.sql(ROWS).collect()] == [(1, "x"), (2, "y"), (4, "new")]
    assert there.sql(f"SELECT count(*) FROM t VERSION AS OF {FIRST[cloud.fmt] + 1}").collect()[0][0] == 3
    assert cloud.server.secret not in there.sql(ROWS)._jdf.queryExecution().toString()
    assert cloud.server.secret not in str(there.spark.sparkContext.getConf().getAll())


def test_a_plain_table_is_rewritten_and_its_changes_read(there: Session, cloud: BucketLake) -> None:
    there.sql("CREATE TABLE t (k INT, v STRING) PARTITIONED BY (v)")
    there.sql("INSERT INTO t VALUES (1, 'a/b'), (2, 'c d'), (3, 'c d')")
    there.sql("DELETE FROM t WHERE k = 2")
    assert [tuple(row) for row in there.sql(ROWS).collect()] == [(1, "a/b"), (3, "c d")]
    changes = there.table("t").changes(FIRST[cloud.fmt] + 1)
    assert [(row["k"], row["_change_type"]) for row in changes.collect()] == [(2, "delete")]
    there.sql("INSERT INTO t VALUES (4, 'c d')")
    assert there.table("t").compact(full=True).rows == 2
    assert [row["k"] for row in there.sql(ROWS).collect()] == [1, 3, 4]


def test_a_resolved_table_is_read_and_a_worker_of_a_source_reaches_it(there: Session) -> None:
    there.sql("CREATE TABLE t (k INT, v STRING, PRIMARY KEY (k))")
    table = there.table("t")
    table.upsert(pa.table({"k": list(range(100)), "v": ["a"] * 100}))
    table.compact(full=True)
    table.upsert(pa.table({"k": [7], "v": ["b"]}))
    table.compact("resolve")
    table.vacuum("0 seconds")
    found = there.sql("SELECT v, count(*) FROM t GROUP BY v ORDER BY v").collect()
    assert [tuple(row) for row in found] == [("a", 99), ("b", 1)]
    batch = there.spark.read.format("trinity").options(table=str(table.name)).load()
    assert batch.where("v = 'b'").select("k").collect()[0][0] == 7


@pytest.mark.parametrize("cloud", ["gcs-parquet", "azure-parquet"], indirect=True)
def test_two_ways_to_what_spark_reaches_in_one_are_refused(there: Session, cloud: BucketLake) -> None:
    """Google's connector has one key for all buckets, Azure's one for an account."""
    assert there.spark is not None
    other = bucket_lake("parquet", cloud.server, cloud.server.new_bucket(), {})
    same: dict[str, Any] = {}
    with other.connect(**same) as session:
        assert session.spark is there.spark
    wrong: dict[str, Any] = {"service_account": None, "anonymous": True}
    if "account_key" in cloud.server.options:
        wrong = {"account_key": None, "sas_token": "sv=2024-01-01&sig=of-the-tests"}
    lake = {"lake": {"connector": "memory"}, "other": other.settings(**wrong)}
    with trinity.connect(catalogs=lake) as session:
        message = refusal("CONFIGURATION_INVALID", lambda: session.spark)
    assert "different storage_options" in message
    assert cloud.server.store("").partition("@")[2] in message


@pytest.mark.parametrize("cloud", ["gcs-parquet", "azure-parquet"], indirect=True)
@pytest.mark.parametrize("answer", [LOST, Answer(503), None], ids=["lost", "throttled", "silent"])
@pytest.mark.usefixtures("spark")
def test_a_store_that_fails_spark_is_told_soon(cloud: BucketLake, answer: Answer | None) -> None:
    check_patience(cloud, answer)
