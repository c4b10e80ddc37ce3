"""Partitioned tables and other engines: what they read and append, and Iceberg's transforms (L3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.iceberg import iceberg_spark, pyiceberg
from tests.support.partitions import TEXTS, UTC, plain_table, wide_table
from trinity import Column, Session, Table, TrinityError

# -- other readers --------------------------------------------------------------------------------------


Rows = set[tuple[int, str | None]]


def found(table: pa.Table) -> Rows:
    return {(r["id"], r["p"]) for r in table.to_pylist()}


def by_duckdb(session: Session, table: Table, where: str) -> Rows:
    files = [f.path for f in table.splits().files if Path(f.path).exists()]
    return found(pa.table(duckdb.read_parquet(files, hive_partitioning=False).filter(where).project("id, p")))


def by_spark_over_the_folder(session: Session, table: Table, where: str) -> Rows:
    # as a Hive folder Spark would guess types from the folders' names; the files hold the column
    folder = session.spark.read.option("recursiveFileLookup", "true").parquet(table.location)
    return found(folder.where(where).select("id", "p").toArrow())


def by_spark_delta(session: Session, table: Table, where: str) -> Rows:
    return found(session.spark.read.format("delta").load(table.location).where(where).toArrow())


def by_delta_rs(session: Session, table: Table, where: str) -> Rows:
    query = QueryBuilder().register("t", DeltaTable(table.location))
    return found(pa.table(query.execute(f"SELECT id, p FROM t WHERE {where}").read_all()))


def by_polars(session: Session, table: Table, where: str) -> Rows:
    rows = pl.scan_delta(table.location)
    return found((rows if where == "true" else rows.filter(pl.col("p") == "ü")).collect().to_arrow())


def by_spark_iceberg(session: Session, table: Table, where: str) -> Rows:
    return found(iceberg_spark(session).table(f"iceberg.default.{table.name.table}").where(where).toArrow())


def by_pyiceberg(session: Session, table: Table, where: str) -> Rows:
    scan = pyiceberg(table).scan() if where == "true" else pyiceberg(table).scan(row_filter=where)
    return found(scan.to_arrow())


READERS: dict[str, list[Callable[[Session, Table, str], Rows]]] = {
    "parquet": [by_duckdb, by_spark_over_the_folder],
    "delta": [by_spark_delta, by_delta_rs, by_polars],
    "iceberg": [by_spark_iceberg, by_pyiceberg],
}


def test_other_engines_read_every_partition_and_only_those_they_need(session: Session, fmt: str) -> None:
    table = plain_table(session, fmt, "string", TEXTS)
    everything = found(table.to_df().toArrow())
    for read in READERS[fmt]:
        assert read(session, table, "true") == everything, read.__name__
    # without the other partitions' files, only a reader that prunes by partition can answer
    for file in table.splits().files:
        if file.partition["p"] != "ü":
            Path(file.path).unlink()
    for read in READERS[fmt]:
        assert read(session, table, "p = 'ü'") == {r for r in everything if r[1] == "ü"}, read.__name__


@pytest.mark.parametrize("fmt", ["delta", "iceberg"], indirect=True)
def test_other_engines_read_partition_values_of_every_type(session: Session, fmt: str) -> None:
    table, rows = wide_table(session, fmt, "time", *(["binary"] if fmt == "delta" else []))
    names = list(rows[0])
    readers: dict[str, list[Callable[[], Any]]] = {
        "delta": [
            lambda: session.spark.read.format("delta").load(table.location).toArrow(),
            lambda: pa.table(
                QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT * FROM t").read_all()
            ),
            lambda: pl.read_delta(table.location).to_arrow(),
        ],
        "iceberg": [
            lambda: iceberg_spark(session).table("iceberg.default.wide").toArrow(),
            lambda: pyiceberg(table).scan().to_arrow(),
        ],
    }
    for read in readers[fmt]:
        found = sorted(read().select(names).to_pylist(), key=lambda r: r["id"])
        assert found == rows


@pytest.mark.full
def test_l3_delta_optimize_and_appends_by_spark(session: Session) -> None:
    table = plain_table(session, "delta", "string", TEXTS)
    table.append(pa.table({"id": pa.array([100, 101], pa.int32()), "p": ["ü", None]}))
    before = found(table.to_df().toArrow())
    spark = session.spark
    spark.sql(f"OPTIMIZE delta.`{table.location}`")
    assert found(table.to_df().toArrow()) == before
    spark.createDataFrame([(200, "new/er")], "id int, p string").write.format("delta").mode("append").save(
        table.location
    )
    assert found(table.to_df().toArrow()) == before | {(200, "new/er")}
    assert {r.id for r in table.to_df(where="p = 'new/er'").collect()} == {200}
    assert len(table.to_df(where="p = 'ü'").inputFiles()) == 1


def test_appends_by_iceberg_spark(session: Session) -> None:
    table = plain_table(session, "iceberg", "string", TEXTS)
    before = found(table.to_df().toArrow())
    iceberg_spark(session).sql("INSERT INTO iceberg.default.plain VALUES (200, 'new/er'), (201, '')")
    assert found(table.to_df().toArrow()) == before | {(200, "new/er"), (201, "")}
    assert {r.id for r in table.to_df(where="p = ''").collect()} == {201}


# -- Iceberg's transforms -------------------------------------------------------------------------------


TRANSFORMED = (
    "bucket(8, id), days(ts), truncate(2, s), truncate(10, n), months(d), truncate(50, x), bucket(3, s), "
    "bucket(5, d), bucket(4, x), bucket(4, b), bucket(7, n), region"
)
COLUMNS = "id BIGINT, ts TIMESTAMP, n INT, d DATE, x DECIMAL(10,2), b BINARY, s STRING, region STRING, v INT"


def transformed() -> Iterator[dict[str, Any]]:
    """Yield rows whose values are not in order."""
    instants = [None, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), dt.datetime(2024, 2, 29, 1, tzinfo=UTC)]
    decimals = [Decimal("-0.01"), None, Decimal("10.65"), Decimal("99999999.99")]
    for v in range(40):
        yield {
            "id": [None, -(2**63), 2**63 - 1, 7, v][v % 5],
            "ts": instants[v % 3],
            "n": [-1, -10, -11, 0, 9, None, 2**31 - 1][v % 7],
            "d": [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)][v // 2 % 3],
            "x": decimals[v // 3 % 4],
            "b": [b"", None, b"\xff\x00abc"][v // 4 % 3],
            "s": ["", "äöüßé", None, "\U0001f600\U0001f600\U0001f600", "abc"][v // 5 % 5],
            "region": ["eu", None][v % 2],
            "v": v,
        }


@pytest.mark.full
def test_iceberg_transforms_put_rows_where_icebergs_own_writer_does(session: Session) -> None:
    session.sql(f"CREATE TABLE iceberg.default.t ({COLUMNS}) PARTITIONED BY ({TRANSFORMED})")
    table = session.table("iceberg.default.t")
    schema = table.definition.to_arrow()
    table.append(pa.Table.from_pylist(list(transformed()), schema))
    spark = iceberg_spark(session)
    spark.sql(
        f"CREATE TABLE iceberg.default.own USING iceberg PARTITIONED BY ({TRANSFORMED}) AS "
        "SELECT * FROM iceberg.default.t"
    )
    partitions = "SELECT DISTINCT struct(partition.*) AS p FROM iceberg.default.{}.files"
    mine, own = (set(spark.sql(partitions.format(name)).collect()) for name in ("t", "own"))
    assert mine == own
    for read in (
        spark.table("iceberg.default.t").toArrow(),
        pyiceberg(table).scan().to_arrow(),
        table.to_df().toArrow(),
    ):
        assert sorted(read["v"].to_pylist()) == list(range(40))
    filtered = pyiceberg(table).scan(row_filter="n >= 9 and ts < '2000-01-01T00:00:00+00:00'").to_arrow()
    assert sorted(filtered["v"].to_pylist()) == [
        r["v"] for r in transformed() if (r["n"] or 0) >= 9 and r["ts"] and r["ts"].year < 2000
    ]


@pytest.mark.full
def test_iceberg_transforms_in_a_keyed_table(session: Session) -> None:
    session.sql(
        "CREATE TABLE iceberg.default.t (id INT, ts TIMESTAMP, v STRING, PRIMARY KEY (id, ts)) "
        "PARTITIONED BY (bucket(4, id), days(ts))"
    )
    table = session.table("iceberg.default.t")
    made = str(session.sql("SHOW CREATE TABLE iceberg.default.t").collect()[0][0])
    assert "PARTITIONED BY (bucket(4, id), days(ts))" in made
    described = [tuple(r)[:2] for r in session.sql("DESCRIBE iceberg.default.t").collect()][3:]
    assert described == [("# Partition Information", ""), ("Part 0", "bucket(4, id)"), ("Part 1", "days(ts)")]
    days = [dt.datetime(2024, 1, d, 12, tzinfo=UTC) for d in (1, 2, 3)]
    for v in ("a", "b"):
        table.upsert(
            pa.table({"id": pa.array(range(9), pa.int32()), "ts": [days[i % 3] for i in range(9)], "v": [v] * 9})
        )
    table.delete("id = 4")
    expected = {(i, "b") for i in range(9) if i != 4}
    assert {(r.id, r.v) for r in table.to_df().collect()} == expected
    one_day = "ts >= TIMESTAMP '2024-01-02 00:00:00' AND ts < TIMESTAMP '2024-01-03 00:00:00'"
    assert {r.id for r in table.to_df(where=one_day).collect()} == {1, 7}
    assert all("ts_day=19724" in f for f in table.to_df(where=one_day).inputFiles())
    table.compact(full=True)
    assert {(r.id, r.v) for r in table.to_df().collect()} == expected
    assert {(r["id"], r["v"]) for r in pyiceberg(table).scan().to_arrow().to_pylist()} == expected


def test_iceberg_refuses_transforms_that_it_does_not_have(session: Session) -> None:
    columns = [Column("id", "int"), Column("ts", "timestamp"), Column("v", "int")]
    for partition_by in (["days(id)"], ["days(ts)", "hours(ts)"]):
        with pytest.raises(TrinityError) as caught:
            session.create_table("iceberg.default.t", columns, partition_by=partition_by)
        assert caught.value.code == "NOT_SUPPORTED"


def test_a_partitioning_that_another_engine_changed_is_read_and_not_written(session: Session) -> None:
    table = plain_table(session, "iceberg", "string", ["eu", None])
    with pyiceberg(table).update_spec() as update:
        update.add_field("id", "bucket[4]", "id_bucket")
    with pytest.raises(TrinityError, match="another engine") as caught:
        table.append(pa.table({"id": pa.array([9], pa.int32()), "p": ["eu"]}))
    assert caught.value.code == "NOT_SUPPORTED"
    assert table.to_df().count() == 4
