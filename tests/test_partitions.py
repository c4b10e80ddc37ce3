"""Partitioned tables: every type, file pruning, compaction, and what other engines see (K5, L1, L3, L9)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

import trinity
from tests.support.iceberg import iceberg_spark, pyiceberg
from trinity import Column, Session, TrinityError
from trinity.spi import SinkId, Tier, WriteTarget, from_fragments
from trinity.storage import ParquetSinkProvider, partitioned_sink
from trinity.table import Table

UTC = dt.UTC
TEXTS = ["eu", "a/b", "k=v", "ü", "a b%", "{*}?[", "'\"\\", "tail ", None]
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "tinyint": [1, -128, None],
    "smallint": [5, -5, None],
    "int": [1, -(2**31), None],
    "bigint": [2**62, 0, None],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-99999999.99"), None],
    "date": [dt.date(2024, 1, 31), dt.date(1582, 10, 4), dt.date(9999, 12, 31), None],
    "timestamp": [dt.datetime(2024, 1, 31, 12, 0, 0, 123456, UTC), dt.datetime(1969, 12, 31, 23, tzinfo=UTC), None],
    "timestamp_ntz": [dt.datetime(2024, 1, 31, 12, 0, 0, 123456), dt.datetime(2024, 1, 1), None],
    "time": [dt.time(1, 2, 3, 4), dt.time(0), None],
    "string": TEXTS,
    "varchar(9)": TEXTS,
    "char(3)": ["ab", "abc", None],
    "binary": [b"\xff\x00", b"a/b", b"", None],
}


@pytest.fixture
def regions(session: Session, fmt: str) -> Table:
    """A keyed table with partitions."""
    session.sql(
        f"CREATE TABLE {fmt}.default.regions (region STRING, id INT, ts BIGINT, gone BOOLEAN, v STRING, "
        "PRIMARY KEY (region, id)) PARTITIONED BY (region) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone')"
    )
    return session.table(f"{fmt}.default.regions")


def put(table: Table, regions: list[str], ids: range, ts: int, v: str, gone: bool = False) -> None:
    pairs = [(r, i) for i in ids for r in regions]
    table.upsert(
        pa.table(
            {
                "region": [r for r, _ in pairs],
                "id": pa.array([i for _, i in pairs], pa.int32()),
                "ts": [ts] * len(pairs),
                "gone": [gone] * len(pairs),
                "v": [v] * len(pairs),
            }
        )
    )


def rows(table: Table, **options: Any) -> set[tuple[str, int, str]]:
    return {(r.region, r.id, r.v) for r in table.to_df(**options).collect()}


def by_partition(table: Table) -> dict[Any, int]:
    """Partition value -> number of files."""
    found: dict[Any, int] = {}
    for file in table.splits().files:
        [value] = file.partition.values()
        found[value] = found.get(value, 0) + 1
    return found


def plain_table(session: Session, fmt: str, kind: str, values: list[Any], name: str = "plain") -> Table:
    table = session.create_table(f"{fmt}.default.{name}", [Column("id", "int"), Column("p", kind)], partition_by=["P"])
    column = pa.array(values * 2, Column("p", kind).to_arrow().type)
    table.append(pa.table({"id": pa.array(range(len(column)), pa.int32()), "p": column}))
    return table


def wide_table(session: Session, fmt: str, *without: str) -> tuple[Table, list[dict[str, Any]]]:
    """A table partitioned by a column of every type, and its rows."""
    kinds = [k for k in VALUES if k not in without]
    columns = [Column("id", "int"), *[Column(f"p{n}", kind) for n, kind in enumerate(kinds)]]
    names = [c.name for c in columns[1:]]
    table = session.create_table(f"{fmt}.default.wide", columns, partition_by=names)
    lists = [VALUES[kind] for kind in kinds]
    rows = [
        {"id": n, **{c: v[n % 9] if n % 9 < len(v) else None for c, v in zip(names, lists, strict=True)}}
        for n in range(18)
    ]
    table.append(pa.Table.from_pylist(rows, table.definition.to_arrow()))
    char = names[kinds.index("char(3)")]
    return table, [{**r, char: r[char] and str(r[char]).ljust(3)} for r in rows]


# -- what is stored ---------------------------------------------------------------------------------------


def test_every_type_and_null(session: Session, fmt: str) -> None:
    table, rows = wide_table(session, fmt, *(["binary"] if fmt == "delta" else []))
    assert sorted(table.to_df().toArrow().to_pylist(), key=lambda r: r["id"]) == rows
    files = table.splits().files
    assert len(files) == 9  # of two rows each, which arrived apart
    times = {n for n, v in rows[0].items() if isinstance(v, dt.time)}  # which Delta stores as a number
    for file in files:
        stored = {n: v for n, v in file.partition.items() if n not in times}
        assert stored in [{n: r[n] for n in stored} for r in rows]


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


# -- SQL --------------------------------------------------------------------------------------------------

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


# -- pruning ----------------------------------------------------------------------------------------------

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
    put(regions, ["eu", "us"], range(5), 1, "a")
    put(regions, ["us", "jp"], range(5), 2, "b")
    found = session.sql(f"SELECT * FROM {regions.name} WHERE region = 'us' AND v = 'b'")
    assert {f.split("region=")[1][:2] for f in found.inputFiles()} == {"us"}
    assert found.count() == 5
    # a predicate that cannot go below the fold as a whole leaves out files all the same
    assert {f.split("region=")[1][:2] for f in regions.to_df(where="region = 'jp' AND v = 'b'").inputFiles()} == {"jp"}


# -- keyed tables -----------------------------------------------------------------------------------------


@pytest.mark.tiered
def test_upsert_delete_and_time_travel(regions: Table) -> None:
    put(regions, ["eu", "us"], range(4), 1, "a")
    first = regions.splits().version
    put(regions, ["us", "jp"], range(2), 2, "b")
    regions.delete([{"region": "eu", "id": 0}])
    regions.delete("region = 'jp'")
    put(regions, ["eu"], range(1), 0, "late")
    assert rows(regions) == {
        *(("eu", i, "a") for i in range(1, 4)), ("us", 0, "b"), ("us", 1, "b"), ("us", 2, "a"), ("us", 3, "a"),
    }  # fmt: skip
    assert rows(regions, version=first) == {(r, i, "a") for r in ("eu", "us") for i in range(4)}
    assert rows(regions, version=first, where="region = 'us'") == {("us", i, "a") for i in range(4)}


@pytest.mark.tiered
def test_l3_full_compaction_stays_within_partitions(regions: Table) -> None:
    put(regions, ["eu", "us", "jp"], range(20), 10, "a")
    put(regions, ["us"], range(10), 20, "b")
    put(regions, ["jp"], range(20), 20, "", gone=True)
    before = rows(regions)
    regions.compact(full=True)
    assert rows(regions) == before
    assert by_partition(regions) == {"eu": 1, "us": 1}
    assert all(f"region={f.partition['region']}/" in f.path for f in regions.splits().files)
    put(regions, ["eu", "us", "jp"], range(5, 15), 10, "late tie")
    now = {("eu", i, "late tie" if 5 <= i < 15 else "a") for i in range(20)}
    now |= {("us", i, "b" if i < 10 else "late tie" if i < 15 else "a") for i in range(20)}
    assert rows(regions) == now
    assert rows(regions, where="region = 'us' AND id >= 8") == {r for r in now if r[0] == "us" and r[1] >= 8}
    regions.compact(full=True)
    assert rows(regions) == now


@pytest.mark.tiered
def test_l3_folding_the_log_stays_within_partitions(regions: Table) -> None:
    put(regions, ["eu", "us"], range(100), 10, "a")
    regions.compact(full=True)
    put(regions, ["us", "jp"], range(10), 20, "b")
    put(regions, ["us"], range(5), 30, "", gone=True)
    before = rows(regions)
    assert not regions.compact().skipped
    assert rows(regions) == before
    files = regions.splits().files
    assert {(f.partition["region"], f.tier) for f in files} == {
        ("eu", Tier.BASE), ("us", Tier.BASE), ("us", Tier.LOG), ("jp", Tier.LOG),
    }  # fmt: skip
    assert len(files) == 4
    put(regions, ["us"], range(10), 20, "late tie")
    assert rows(regions) == {r for r in before if not (r[0] == "us" and r[1] < 10)} | {
        ("us", i, "late tie") for i in range(5, 10)
    }


@pytest.mark.parametrize("fmt", ["parquet"], indirect=True)
def test_compaction_splits_partitions_that_are_large_or_have_buckets(
    regions: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(regions, ["eu", "us"], range(200), 10, "a")
    put(regions, ["us"], range(100), 20, "b")
    before = rows(regions)
    monkeypatch.setattr("trinity.engine.compacting.compact._FILE_BYTES", 1)
    monkeypatch.setattr("trinity.engine.compacting.partitions._TASK_BYTES", 2000)
    regions.compact(full=True)
    assert rows(regions) == before
    files = sorted(regions.splits().files, key=lambda f: (f.partition["region"], f.stats["id"].min))
    assert len(files) > 3
    for one, other in pairwise(files):  # ranges of the key, which leave files out well
        assert one.partition != other.partition or one.stats["id"].max < other.stats["id"].min
    regions.set_properties({"bucket": "3"})
    put(regions, ["eu", "us"], range(200), 30, "c")
    regions.compact(full=True)
    assert rows(regions) == {(r, i, "c") for r in ("eu", "us") for i in range(200)}
    assert all(1 <= n <= 3 for n in by_partition(regions).values())


def test_a_compacted_table_is_a_plain_scan_and_is_not_compacted_again(regions: Table) -> None:
    put(regions, ["eu", "us"], range(20), 10, "a")
    put(regions, ["us"], range(10), 20, "b")
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


# -- the sink ---------------------------------------------------------------------------------------------


def test_the_sink_keeps_little_open_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned_sink, "MAX_BUFFERED", 2000)
    monkeypatch.setattr(partitioned_sink, "MAX_OPEN", 3)
    storage = pa.schema([("p", pa.int32()), ("v", pa.int64())])
    sink = ParquetSinkProvider().create_page_sink(WriteTarget(str(tmp_path), storage, (), "s", ("p",)), SinkId())
    assert isinstance(sink, partitioned_sink.PartitionedPageSink)
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


def test_an_aborted_sink_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned_sink, "MAX_OPEN", 1)
    monkeypatch.setattr(partitioned_sink, "MAX_BUFFERED", 0)
    storage = pa.schema([("p", pa.string())])
    sink = ParquetSinkProvider().create_page_sink(WriteTarget(str(tmp_path), storage, (), "s", ("p",)), SinkId())
    sink.append_page(pa.record_batch([pa.array(["a", "b", "c", None])], schema=storage))
    assert list(tmp_path.rglob("*.parquet"))
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_sink_whose_write_failed_is_aborted_all_the_same(tmp_path: Path) -> None:
    """pyarrow then has no footer to collect, and says so."""
    storage = pa.schema([pa.field("k", pa.int32()), pa.field("v", pa.int32(), nullable=False)])
    sink = ParquetSinkProvider().create_page_sink(WriteTarget(str(tmp_path), storage, (), "s"), SinkId())
    sink.append_page(pa.record_batch([pa.array([None], pa.int32())] * 2, schema=storage))
    with pytest.raises(pa.ArrowInvalid):
        sink.finish()
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


# -- other readers ----------------------------------------------------------------------------------------

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


# -- Iceberg's transforms ---------------------------------------------------------------------------------

TRANSFORMED = (
    "bucket(8, id), days(ts), truncate(2, s), truncate(10, n), months(d), truncate(50, x), bucket(3, s), "
    "bucket(5, d), bucket(4, x), bucket(4, b), bucket(7, n), region"
)
COLUMNS = "id BIGINT, ts TIMESTAMP, n INT, d DATE, x DECIMAL(10,2), b BINARY, s STRING, region STRING, v INT"


def transformed() -> Iterator[dict[str, Any]]:
    """Rows whose values cross each other as they come."""
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
