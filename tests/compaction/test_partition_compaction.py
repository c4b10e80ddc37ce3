"""Keyed tables in partitions: upserts, and compaction that stays within partitions (K5, L3)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trinity
from tests.support.partitions import TEXTS, by_partition, plain_table, put_regions
from trinity import Column, Session, Table, TrinityError
from trinity.engine.compacting.spark.rows import TASK_BYTES
from trinity.spi import Tier
from trinity.storage.merge_sinks import FILE_BYTES

pytestmark = pytest.mark.inner


def contents(table: Table, **options: Any) -> set[tuple[str, int, str]]:
    return {(r.region, r.id, r.v) for r in table.to_df(**options).collect()}


@pytest.mark.tiered
def test_upsert_delete_and_time_travel(regions: Table) -> None:
    put_regions(regions, ["eu", "us"], range(4), 1, "a")
    first = regions.splits().version
    put_regions(regions, ["us", "jp"], range(2), 2, "b")
    regions.delete([{"region": "eu", "id": 0}])
    regions.delete("region = 'jp'")
    put_regions(regions, ["eu"], range(1), 0, "late")
    assert contents(regions) == {
        *(("eu", i, "a") for i in range(1, 4)), ("us", 0, "b"), ("us", 1, "b"), ("us", 2, "a"), ("us", 3, "a"),
    }  # fmt: skip
    assert contents(regions, version=first) == {(r, i, "a") for r in ("eu", "us") for i in range(4)}
    assert contents(regions, version=first, where="region = 'us'") == {("us", i, "a") for i in range(4)}


@pytest.mark.tiered
def test_l3_full_compaction_stays_within_partitions(regions: Table) -> None:
    put_regions(regions, ["eu", "us", "jp"], range(20), 10, "a")
    put_regions(regions, ["us"], range(10), 20, "b")
    put_regions(regions, ["jp"], range(20), 20, "", gone=True)
    before = contents(regions)
    regions.compact(full=True)
    assert contents(regions) == before
    assert by_partition(regions) == {"eu": 1, "us": 1}
    assert all(f"region={f.partition['region']}/" in f.path for f in regions.splits().files)
    put_regions(regions, ["eu", "us", "jp"], range(5, 15), 10, "late tie")
    now = {("eu", i, "late tie" if 5 <= i < 15 else "a") for i in range(20)}
    now |= {("us", i, "b" if i < 10 else "late tie" if i < 15 else "a") for i in range(20)}
    assert contents(regions) == now
    assert contents(regions, where="region = 'us' AND id >= 8") == {r for r in now if r[0] == "us" and r[1] >= 8}
    regions.compact(full=True)
    assert contents(regions) == now


@pytest.mark.tiered
def test_l3_folding_the_log_stays_within_partitions(regions: Table) -> None:
    put_regions(regions, ["eu", "us"], range(100), 10, "a")
    regions.compact(full=True)
    put_regions(regions, ["us", "jp"], range(10), 20, "b")
    put_regions(regions, ["us"], range(5), 30, "", gone=True)
    before = contents(regions)
    assert not regions.compact().skipped
    assert contents(regions) == before
    files = regions.splits().files
    assert {(f.partition["region"], f.tier) for f in files} == {
        ("eu", Tier.BASE), ("us", Tier.BASE), ("us", Tier.LOG), ("jp", Tier.LOG),
    }  # fmt: skip
    assert len(files) == 4
    put_regions(regions, ["us"], range(10), 20, "late tie")
    assert contents(regions) == {r for r in before if not (r[0] == "us" and r[1] < 10)} | {
        ("us", i, "late tie") for i in range(5, 10)
    }


@pytest.mark.parametrize("fmt", ["parquet"], indirect=True)
@FILE_BYTES.set_to(1)
@TASK_BYTES.set_to(2000)
def test_compaction_splits_partitions_that_are_large_or_have_buckets(regions: Table) -> None:
    put_regions(regions, ["eu", "us"], range(200), 10, "a")
    put_regions(regions, ["us"], range(100), 20, "b")
    before = contents(regions)
    regions.compact(full=True)
    assert contents(regions) == before
    files = sorted(regions.splits().files, key=lambda f: (f.partition["region"], f.stats["id"].min))
    assert len(files) > 3
    for one, other in pairwise(files):  # key ranges of files, by which pruning is effective
        assert one.partition != other.partition or one.stats["id"].max < other.stats["id"].min
    regions.set_properties({"bucket": "3"})
    put_regions(regions, ["eu", "us"], range(200), 30, "c")
    regions.compact(full=True)
    assert contents(regions) == {(r, i, "c") for r in ("eu", "us") for i in range(200)}
    assert all(1 <= n <= 3 for n in by_partition(regions).values())


@pytest.mark.tiered
def test_a_compacted_table_is_a_plain_scan_and_is_not_compacted_again(regions: Table) -> None:
    put_regions(regions, ["eu", "us"], range(20), 10, "a")
    put_regions(regions, ["us"], range(10), 20, "b")
    version = regions.compact(full=True).version
    assert {f.tier for f in regions.splits().files} == {Tier.BASE}
    plan = str(regions.to_df()._jdf.queryExecution().executedPlan().toString())
    assert "Join" not in plan
    assert "Window" not in plan
    assert (regions.compact(full=True).skipped, regions.splits().version) == (True, version)
    assert len(regions.to_df(where="region = 'eu'").inputFiles()) == 1


@pytest.mark.tiered
def test_plain_tables_are_compacted_by_partition(session: Session, fmt: str) -> None:
    table = plain_table(session, fmt, "string", ["eu", "a/b", None])
    for n in range(3):
        table.append(pa.table({"id": pa.array([100 + n, 200 + n], pa.int32()), "p": ["eu", None]}))
    before = sorted((r.id, str(r.p)) for r in table.to_df().collect())
    untouched = [f.path for f in table.splits().files if f.partition["p"] == "a/b"]
    table.compact()
    assert by_partition(table) == {"eu": 1, "a/b": 1, None: 1}
    assert [f.path for f in table.splits().files if f.partition["p"] == "a/b"] == untouched
    assert sorted((r.id, str(r.p)) for r in table.to_df().collect()) == before
    assert table.compact().skipped
    assert table.vacuum("0 seconds").files == 8
    assert sorted((r.id, str(r.p)) for r in table.to_df().collect()) == before


@pytest.mark.tiered
def test_a_dataframe_with_many_partitions(session: Session, fmt: str) -> None:
    table = session.create_table(f"{fmt}.default.t", [Column("id", "bigint"), Column("p", "int")], partition_by=["p"])
    table.append(session.spark.range(0, 1000, 1, 2).selectExpr("id", "CAST(id % 40 AS INT) AS p"))
    assert by_partition(table) == dict.fromkeys(range(40), 2)
    assert table.to_df().selectExpr("sum(id)", "count(DISTINCT id)").collect() == [(499500, 1000)]
    assert table.log().select("_file", "_pos").distinct().count() == 1000


def test_the_in_memory_format(spark: SparkSession) -> None:
    with trinity.connect(spark=spark, catalogs={"memory": {"connector": "memory"}}) as session:
        table = plain_table(session, "memory", "string", TEXTS)
        assert set(by_partition(table)) == set(TEXTS)
        assert len(table.to_df(where="p = 'k=v'").inputFiles()) == 1
        with pytest.raises(TrinityError, match=r"days\(d\)"):
            session.create_table("t", [Column("d", "date"), Column("v", "int")], partition_by=["days(d)"])
