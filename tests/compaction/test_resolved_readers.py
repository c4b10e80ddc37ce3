"""R1: rows that other engines and merge views return after compact("resolve")."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError

from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.resolve import fill, numbers_table, values_by_key
from trinity import Session, Table


@pytest.fixture(params=["parquet", *(pytest.param(fmt, marks=pytest.mark.full) for fmt in ("delta", "iceberg"))])
def numbers(session: Session, request: pytest.FixtureRequest) -> Table:
    """Make a table in each format that deletes rows by position."""
    return numbers_table(session, request.param)


@pytest.mark.parametrize(
    "log", [pytest.param(False, id="resolved", marks=pytest.mark.full), pytest.param(True, id="log on top")]
)
def test_a_merge_view_leaves_the_rows_out(session: Session, numbers: Table, log: bool) -> None:
    fill(numbers, 0, 30, 1, "a")
    numbers.compact(full=True)
    fill(numbers, 5, 10, 2, "b")
    fill(numbers, 0, 2, 2, "", gone=True)
    numbers.compact("resolve")
    if log:
        fill(numbers, 8, 12, 3, "c")
    wanted = values_by_key(numbers)
    found = duckdb.connect().execute(numbers.merge_view_sql("duckdb")).fetchall()
    assert sorted((k, v) for k, _, _, v in found) == sorted(wanted.items())
    by_spark = session.spark.sql(numbers.merge_view_sql("spark")).collect()
    assert sorted((r.k, r.v) for r in by_spark) == sorted(wanted.items())


def resolved_twice(numbers: Table) -> Iterator[dict[int, str]]:
    """Yield the merged rows after each of two resolves."""
    fill(numbers, 0, 40, 1, "a")
    numbers.compact(full=True)
    for n in (2, 3):
        fill(numbers, 5 * n, 5 * n + 10, n, f"b{n}")
        fill(numbers, 0, n, n, "", gone=True)
        numbers.compact("resolve")
        yield values_by_key(numbers)


@pytest.mark.full
def test_r1_iceberg_s_own_readers_see_the_merged_rows(session: Session) -> None:
    numbers = numbers_table(session, "iceberg")
    for wanted in resolved_twice(numbers):
        assert {r.k: r.v for r in iceberg_spark(session).table("iceberg.default.numbers").collect()} == wanted
        found = pyiceberg(numbers).scan().to_arrow().to_pylist()
        assert sorted((r["k"], r["v"]) for r in found) == sorted(wanted.items())
    numbers.compact(full=True)
    assert {r.k: r.v for r in iceberg_spark(session).table("iceberg.default.numbers").collect()} == wanted


@pytest.mark.full
def test_r1_delta_s_own_readers_see_the_merged_rows(session: Session) -> None:
    numbers = numbers_table(session, "delta")
    for merged in resolved_twice(numbers):
        wanted = sorted(merged.items())
        spark = session.spark.read.format("delta").load(numbers.location)
        assert sorted((r.k, r.v) for r in spark.collect()) == wanted
        assert spark.where("k = 7").count() == 1  # from statistics that are still valid
        query = QueryBuilder().register("t", DeltaTable(numbers.location)).execute("SELECT k, v FROM t")
        found = pa.table(query.read_all()).to_pylist()
        assert sorted((r["k"], r["v"]) for r in found) == wanted
        assert sorted(pl.scan_delta(numbers.location).select("k", "v").collect().rows()) == wanted
        with pytest.raises(DeltaProtocolError, match="deletionVectors"):
            DeltaTable(numbers.location).to_pyarrow_table()
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    session.spark.conf.set(check, "false")
    session.spark.sql(f"VACUUM delta.`{numbers.location}` RETAIN 0 HOURS")
    session.spark.conf.unset(check)
    assert sorted(values_by_key(numbers).items()) == wanted
    fill(numbers, 0, 2, 2, "late")  # older than the tombstones
    assert sorted(values_by_key(numbers).items()) == wanted
    numbers.compact(full=True)
    assert sorted((r.k, r.v) for r in session.spark.read.format("delta").load(numbers.location).collect()) == wanted
