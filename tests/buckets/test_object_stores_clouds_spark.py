"""Tables in Google's buckets and Azure's containers through Spark, by Hadoop's connectors for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.bucket_lake import FIRST, BucketLake, bucket_lake, lake_in_store
from tests.support.bucket_sql import ROWS, check_keyed, check_plain, check_resolved
from tests.support.bucket_use import check_patience
from tests.support.fault_proxy import LOST, Answer
from tests.support.refusals import refusal
from trinity import Session

pytestmark = pytest.mark.full


@pytest.fixture(params=[f"{kind}-{fmt}" for kind in ("gcs", "azure") for fmt in FIRST])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> BucketLake:
    """Return a catalog of each format in each of these stores."""
    return lake_in_store(request, tmp_path)


@pytest.fixture
def there(cloud: BucketLake, spark: SparkSession) -> Iterator[Session]:
    """Yield a session that has this catalog alone."""
    with cloud.connect() as opened:
        yield opened


def test_a_keyed_table_is_merged_changed_and_compacted(there: Session, cloud: BucketLake) -> None:
    check_keyed(there, cloud.fmt)
    assert cloud.server.secret not in there.sql(ROWS)._jdf.queryExecution().toString()
    assert cloud.server.secret not in str(there.spark.sparkContext.getConf().getAll())


def test_a_plain_table_is_rewritten_and_its_changes_read(there: Session, cloud: BucketLake) -> None:
    check_plain(there, cloud.fmt)


def test_a_resolved_table_is_read_and_a_worker_of_a_source_reaches_it(there: Session) -> None:
    check_resolved(there)
    batch = there.spark.read.format("trinity").options(table=str(there.table("t").name)).load()
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
