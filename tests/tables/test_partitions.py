"""Partitioned tables: stored values of every type, SQL, pruning, the sink (K5, L1, L9)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.partitions import UTC, by_partition, plain_table, put_regions, wide_table
from trinity import Column, Session, Table, TrinityError
from trinity.spi import SinkId, WriteTarget, from_fragments
from trinity.storage import ParquetSinkProvider
from trinity.storage.partitioned_sink import PartitionedPageSink

# -- what is stored -------------------------------------------------------------------------------------


def test_every_type_and_null(session: Session, fmt: str) -> None:
    table, rows = wide_table(session, fmt, *(["binary"] if fmt == "delta" else []))
    assert sorted(table.to_df().toArrow().to_pylist(), key=lambda r: r["id"]) == rows
    files = table.splits().files
    assert len(files) == 9  # each of two rows from different commits
    times = {n for n, v in rows[0].items() if isinstance(v, dt.time)}  # Delta stores it as a number
    for file in files:
        stored = {n: v for n, v in file.partition.items() if n not in times}
        assert stored in [{n: r[n] for n in stored} for r in rows]


@pytest.mark.tiered
def test_types_that_do_not_partition(session: Session, fmt: str) -> None:
    for kind in ("float", "double", "array<int>", "struct<a:int>", "map<string,int>"):
        with pytest.raises(TrinityError, match="'p'") as caught:
            plain_table(session, fmt, kind, [])
        assert caught.value.code == "NOT_SUPPORTED"
    assert session.catalogs[fmt].metadata.get_table("default", "plain") is None


def test_delta_has_neither_binary_partitions_nor_the_empty_string(session: Session) -> None:
    with pytest.raises(TrinityError, match="'p'") as caught:
        plain_table(session, "delta", "binary", [])
    assert caught.value.code == "NOT_SUPPORTED"
    table = plain_table(session, "delta", "string", ["x"])
    with pytest.raises(TrinityError, match=r"empty string.* 'p'") as caught:
        table.append(pa.table({"id": [9], "p": [""]}))
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert table.to_df().count() == 2


@pytest.mark.parametrize("fmt", ["parquet", "iceberg"], indirect=True)
def test_the_empty_string_is_not_null(session: Session, fmt: str) -> None:
    table = plain_table(session, fmt, "string", ["", None])
    assert by_partition(table) == {"": 1, None: 1}
    assert [r.id for r in table.to_df(where="p = ''").orderBy("id").collect()] == [0, 2]


@pytest.mark.tiered
def test_a_value_too_long_for_a_folder_is_refused(session: Session, fmt: str) -> None:
    table = plain_table(session, fmt, "string", ["x"])
    with pytest.raises(TrinityError, match="'p' is too long") as caught:
        table.append(pa.table({"id": [9], "p": ["ü" * 60]}))
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert table.to_df().count() == 2


@pytest.mark.tiered
def test_a_partition_column_of_a_keyed_table_is_part_of_its_key(session: Session, fmt: str) -> None:
    columns = [Column("k", "int"), Column("p", "int")]
    with pytest.raises(TrinityError, match=r"'p' must be part of the primary key \(K5\)"):
        session.create_table(f"{fmt}.default.t", columns, primary_key=["k"], partition_by=["p"])


REFUSED = [
    (["q"], "COLUMN_NOT_FOUND"),
    (["p", "P"], "DUPLICATE_COLUMN_NAME"),
    (["id", "p"], "INVALID_ARGUMENTS"),
    (["upper(p)"], "NOT_SUPPORTED"),
    (["bucket(0, id)"], "INVALID_ARGUMENTS"),
    (["bucket(id)"], "INVALID_ARGUMENTS"),
]


@pytest.mark.tiered
def test_partitionings_that_are_refused(session: Session, fmt: str) -> None:
    for partition_by, code in REFUSED:
        with pytest.raises(TrinityError) as caught:
            session.create_table(
                f"{fmt}.default.t", [Column("id", "int"), Column("p", "int")], primary_key=(), partition_by=partition_by
            )
        assert caught.value.code == code, partition_by


@pytest.mark.parametrize("fmt", ["parquet", "delta"], indirect=True)
def test_transforms_are_icebergs_alone(session: Session, fmt: str) -> None:
    with pytest.raises(TrinityError, match=r"bucket\(8, id\)") as caught:
        session.sql(f"CREATE TABLE {fmt}.default.t (id INT, v INT) PARTITIONED BY (bucket(8, id))")
    assert caught.value.code == "NOT_SUPPORTED"


# -- SQL ------------------------------------------------------------------------------------------------


SPELLINGS = [
    ("spark", "(id INT, v INT, region STRING, day DATE) PARTITIONED BY (region, `day`)"),
    ("spark", "(id INT, v INT) PARTITIONED BY (region STRING, day DATE)"),
    ("spark", "(id INT, v INT, region STRING, day DATE) PARTITIONED BY (region, day) WITH ('comment' = 'Flink')"),
    ("trino", "(id INTEGER, v INTEGER, region VARCHAR, day DATE) WITH (partitioning = ARRAY['region', 'day'])"),
    ("trino", "(id INTEGER, v INTEGER, region VARCHAR, day DATE) WITH (partitioned_by = ARRAY['region', 'day'])"),
]


@pytest.mark.parametrize("fmt", ["parquet"], indirect=True)
@pytest.mark.parametrize(("dialect", "text"), SPELLINGS)
def test_spellings(session: Session, fmt: str, dialect: str, text: str) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.t {text}", dialect=dialect)
    assert session.table(f"{fmt}.default.t").definition.partition_by == ("region", "day")


@pytest.mark.tiered
def test_show_create_and_describe(session: Session, fmt: str) -> None:
    day = "a-day"
    columns = f"id INT, v INT, region STRING, `{day}` DATE"
    session.sql(f"CREATE TABLE {fmt}.default.t ({columns}) PARTITIONED BY (REGION, `{day}`)")
    made = str(session.sql(f"SHOW CREATE TABLE {fmt}.default.t").collect()[0][0])
    assert f"PARTITIONED BY (region, `{day}`)" in made
    session.sql(f"DROP TABLE {fmt}.default.t")
    session.sql(made)
    assert session.sql(f"SHOW CREATE TABLE {fmt}.default.t").collect()[0][0] == made
    described = [tuple(r)[:2] for r in session.sql(f"DESCRIBE {fmt}.default.t").collect()]
    assert described[4:] == [
        ("# Partition Information", ""), ("# col_name", "data_type"), ("region", "string"), (day, "date"),
    ]  # fmt: skip


@pytest.mark.tiered
def test_create_table_as_select(session: Session, fmt: str) -> None:
    session.sql(
        f"CREATE TABLE {fmt}.default.t PARTITIONED BY (region) AS "
        "SELECT id, IF(id % 2 = 0, 'even', NULL) AS region FROM range(10)"
    )
    table = session.table(f"{fmt}.default.t")
    assert set(by_partition(table)) == {"even", None}
    assert session.sql(f"SELECT sum(id) FROM {fmt}.default.t WHERE region = 'even'").collect()[0][0] == 20


# -- pruning --------------------------------------------------------------------------------------------


PRUNED: list[tuple[str, list[Any], dict[str, int]]] = [
    ("string", ["a", "b", "c", None], {
        "p = 'b'": 1, "'b' < p": 1, "p IN ('a', 'c')": 2, "p <> 'b'": 2, "p IS NULL": 1, "p IS NOT NULL": 3,
        "p = 'a' OR p = 'b'": 2, "NOT p = 'a'": 2, "p NOT IN ('a', 'b')": 1, "p BETWEEN 'a' AND 'b' AND id >= 0": 2,
        "p = 'z'": 0, "upper(p) = 'A'": 4, "p > 'a' OR id = 3": 4,
    }),
    ("varchar(3)", ["05", "7"], {"p = 5": 2, "p = '7'": 1}),
    ("int", [1, 2, None], {"p = 2": 1, "p >= 1": 2, "p < 1.5": 3, "p = '2'": 1, "-1 < p": 2, "p = 2e0": 3}),
    ("boolean", [True, False, None], {"p": 1, "NOT p": 1, "p = true": 1, "p IS NULL": 1}),
    ("decimal(10,2)", [Decimal("1.50"), Decimal("-2")], {
        "p = 1.5": 1, "p < 0": 1, "p = CAST(1.499 AS DECIMAL(9,2))": 2,
    }),
    ("date", [dt.date(2024, 1, 1), dt.date(2024, 2, 1)], {"p = DATE '2024-02-01'": 1, "p < '2024-01-15'": 1}),
    ("timestamp", [dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 2, tzinfo=UTC)], {
        "p = TIMESTAMP '2024-01-01 00:00:00'": 1, "p >= TIMESTAMP '2024-01-02T01:00:00+01:00'": 1,
        "p < DATE '2024-01-02'": 1, "p < CAST('2024-01-02 10:00:00' AS DATE)": 2,
    }),
    ("timestamp_ntz", [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], {
        "p = TIMESTAMP_NTZ '2024-01-01 00:00:00'": 1,
    }),
]  # fmt: skip


def check_pruning(table: Table, expected: dict[str, int]) -> None:
    tests = [f"({where}) AS w{n}" for n, where in enumerate(expected)]
    wanted = table.to_df().selectExpr("id", *tests).collect()
    for n, (where, files) in enumerate(expected.items()):
        found = table.to_df(where=where)
        assert len(found.inputFiles()) == files, where
        assert {r.id for r in found.collect()} == {r.id for r in wanted if r[f"w{n}"]}, where


def test_l9_only_the_partitions_asked_for_are_read(session: Session, fmt: str) -> None:
    expected = {"p = 'b'": 1, "'b' < p": 1, "p IN ('a', 'c')": 2, "p IS NULL": 1, "p IS NOT NULL AND id > 0": 3}
    check_pruning(plain_table(session, fmt, "string", ["a", "b", "c", None]), expected)


@pytest.mark.parametrize("fmt", ["parquet"], indirect=True)
@pytest.mark.parametrize(("kind", "values", "expected"), PRUNED, ids=[p[0] for p in PRUNED])
def test_predicates_on_every_type(
    session: Session, fmt: str, kind: str, values: list[Any], expected: dict[str, int]
) -> None:
    check_pruning(plain_table(session, fmt, kind, values), expected)


@pytest.mark.tiered
def test_a_timestamp_without_zone_is_of_the_sessions(session: Session, fmt: str) -> None:
    table = plain_table(session, fmt, "timestamp", [dt.datetime(2024, 7, 1, h, tzinfo=UTC) for h in range(3)])
    session.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = table.to_df(where="p = TIMESTAMP '2024-07-01 03:00:00'")
        assert len(found.inputFiles()) == 1
        assert {r.id for r in found.collect()} == {1, 4}
    finally:
        session.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.tiered
def test_l9_queries_read_the_partitions_asked_for(session: Session, fmt: str, regions: Table) -> None:
    plain = plain_table(session, fmt, "string", ["eu", "us", None])
    assert len(session.sql(f"SELECT id FROM {plain.name} WHERE p = 'us' AND id > 0").inputFiles()) == 1
    assert len(session.sql(f"SELECT id FROM {plain.name} WHERE p IS NULL").inputFiles()) == 1
    put_regions(regions, ["eu", "us"], range(5), 1, "a")
    put_regions(regions, ["us", "jp"], range(5), 2, "b")
    found = session.sql(f"SELECT * FROM {regions.name} WHERE region = 'us' AND v = 'b'")
    assert {f.split("region=")[1][:2] for f in found.inputFiles()} == {"us"}
    assert found.count() == 5
    # a predicate that is not pushed below the fold as a whole still prunes files
    assert {f.split("region=")[1][:2] for f in regions.to_df(where="region = 'jp' AND v = 'b'").inputFiles()} == {"jp"}


# -- the sink -------------------------------------------------------------------------------------------


def sink_by_p(folder: Path, storage: pa.Schema, **limits: int) -> PartitionedPageSink:
    target = WriteTarget(str(folder), storage, (), "s", ("p",))
    return PartitionedPageSink(target, SinkId(), ParquetSinkProvider().partition_values(target), **limits)


@pytest.mark.inner
def test_the_sink_keeps_little_open_and_loses_nothing(tmp_path: Path) -> None:
    storage = pa.schema([("p", pa.int32()), ("v", pa.int64())])
    sink = sink_by_p(tmp_path, storage, most_buffered=2000, most_open=3)
    for start in range(0, 4000, 100):
        values = pa.array(range(start, start + 100), pa.int64())
        sink.append_page(pa.record_batch([pa.array([v % 10 for v in range(100)], pa.int32()), values], schema=storage))
        assert sum(s.opened for s in sink._active.values()) <= 3
        assert sum(s.buffered for s in sink._active.values()) <= 2000
    files = from_fragments(sink.finish())
    assert len({f.name for f in files}) == len(files) > 10
    by_value: dict[int, list[int]] = {}
    for file in files:  # the names sort in the order in which rows arrived
        read = pq.read_table(file.path, partitioning=None)
        assert set(read["p"].to_pylist()) == {file.partition["p"]}
        by_value.setdefault(file.partition["p"], []).extend(read["v"].to_pylist())
    assert by_value == {p: list(range(p, 4000, 10)) for p in range(10)}


@pytest.mark.inner
def test_an_aborted_sink_leaves_no_file(tmp_path: Path) -> None:
    storage = pa.schema([("p", pa.string())])
    sink = sink_by_p(tmp_path, storage, most_buffered=0, most_open=1)
    sink.append_page(pa.record_batch([pa.array(["a", "b", "c", None])], schema=storage))
    assert list(tmp_path.rglob("*.parquet"))
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.inner
def test_a_sink_whose_write_failed_is_aborted_all_the_same(tmp_path: Path) -> None:
    """pyarrow then raises an error, as it has no footer to collect."""
    storage = pa.schema([pa.field("k", pa.int32()), pa.field("v", pa.int32(), nullable=False)])
    sink = ParquetSinkProvider().create_page_sink(WriteTarget(str(tmp_path), storage, (), "s"), SinkId())
    sink.append_page(pa.record_batch([pa.array([None], pa.int32())] * 2, schema=storage))
    with pytest.raises(pa.ArrowInvalid):
        sink.finish()
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))
