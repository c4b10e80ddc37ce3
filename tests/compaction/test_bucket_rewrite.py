"""A full compaction of a base in buckets keeps the merged rows (K6), whatever the log has, and each bucket in order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.resolve import base
from tests.support.tables import keyed_table
from trinity import Column, Session, Table
from trinity.engine.compacting.spark.driver_merge import MOST_LOCAL_BYTES
from trinity.spi import Tier

pytestmark = pytest.mark.inner

Row = dict[str, Any]

COLUMNS = [
    Column("name", "string"),
    Column("number", "bigint"),
    Column("ts", "bigint"),
    Column("gone", "boolean"),
    Column("v", "string"),
    Column("deep", "struct<a:int,b:array<string>>"),
]
KEYS = {"whole": ["number"], "in parts": ["name", "number"], "text": ["name"]}


@pytest.fixture(params=["here", "by Spark"])
def folded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fold logs in this process, as a local Spark does, or by Spark, as a cluster does."""
    with MOST_LOCAL_BYTES.set_to(0 if request.param == "by Spark" else MOST_LOCAL_BYTES.value):
        yield


def bucketed_table(session: Session, fmt: str, key: list[str]) -> Table:
    options = {"watermark-key": "ts", "tombstone-key": "gone", "bucket": "4"}
    return keyed_table(session, fmt, COLUMNS, key=key, **options)


def row(number: int, ts: int | None, v: str, gone: bool = False) -> Row:
    deep = {"a": number, "b": [v, None]} if number % 3 else None
    return {"name": f"n{number % 1000:04d}é{number}", "number": number, "ts": ts, "gone": gone, "v": v, "deep": deep}


def upsert(table: Table, rows: list[Row]) -> None:
    table.upsert(pa.Table.from_pylist(rows, table.definition.to_arrow()))


def shown(table: Table) -> list[tuple[Any, ...]]:
    rows = table.to_df().toArrow().sort_by([("number", "ascending"), ("name", "ascending")])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def check_in_order(table: Table, key: list[str]) -> None:
    """Check that each file holds the rows of one bucket in order of the key: reads rely on both."""
    files = base(table)
    assert sorted(f.bucket.index for f in files if f.bucket) == list(range(4))
    for file in files:
        rows = pq.read_table(file.path, columns=key)
        order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in key])
        assert order.to_pylist() == list(range(len(rows))), file.path
    stored = table.log().where("_tier = 'base'")
    hashed = stored.selectExpr("_file", f"pmod(hash({', '.join(key)}), 4) AS bucket").distinct().collect()
    assert {(r._file, r.bucket) for r in hashed} == {(f.path, f.bucket.index) for f in files if f.bucket}


@pytest.mark.parametrize(
    ("key", "folded"),
    [
        pytest.param("whole", "here", marks=pytest.mark.full),
        pytest.param("in parts", "by Spark", marks=pytest.mark.full),
        ("text", "here"),
    ],
    indirect=["folded"],
)
def test_every_kind_of_change_ends_in_its_place(session: Session, tiered_fmt: str, key: str, folded: None) -> None:
    """The log has new keys before, between and after those of several pages of the base, late rows, and tombstones."""
    table = bucketed_table(session, tiered_fmt, KEYS[key])
    upsert(table, [row(n, 10, "base") for n in range(0, 100_000, 2)])
    table.compact(full=True)
    draw = random.Random(5)
    for commit in range(3):
        changed = draw.sample(range(-1000, 101_000), 4000)
        upsert(
            table,
            [row(n, draw.choice([None, 9, 10, 11, 12]), f"log{commit}", draw.random() < 0.2) for n in set(changed)],
        )
    before = shown(table)
    table.compact(full=True)
    assert {f.tier for f in table.splits().files} == {Tier.BASE}
    assert shown(table) == before
    check_in_order(table, KEYS[key])
    # tombstones in the sidecar still beat late rows (K6)
    deleted = set(range(-1000, 101_000)) - {r[1] for r in before}
    upsert(table, [row(n, 9, "late") for n in sorted(deleted)[::50]])
    late = shown(table)
    table.compact(full=True)
    assert shown(table) == late
    check_in_order(table, KEYS[key])


def test_rows_that_a_resolve_has_deleted_stay_away(session: Session, tiered_fmt: str, folded: None) -> None:
    table = bucketed_table(session, tiered_fmt, ["number"])
    upsert(table, [row(n, 10, "base") for n in range(20_000)])
    table.compact(full=True)
    upsert(table, [row(n, 11, "resolved", gone=n % 7 == 0) for n in range(0, 20_000, 5)])
    table.compact("resolve")
    upsert(table, [row(n, 12, "log") for n in range(0, 20_000, 9)])
    before = shown(table)
    table.compact(full=True)
    assert not any(f.deletes for f in table.splits().files)
    assert shown(table) == before
    check_in_order(table, ["number"])


def test_buckets_without_a_row_of_the_log_are_written_too(session: Session, tiered_fmt: str, folded: None) -> None:
    """Three buckets have no row of the log, which has one key."""
    table = bucketed_table(session, tiered_fmt, ["number"])
    upsert(table, [row(n, 10, "base") for n in range(1000)])
    table.compact(full=True)
    upsert(table, [row(5, 12, "last")])
    before, were = shown(table), {f.path for f in base(table)}
    table.compact(full=True)
    assert shown(table) == before
    assert not were & {f.path for f in base(table)}
    check_in_order(table, ["number"])


@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_keys_that_arrow_orders_otherwise_are_left_to_spark(session: Session, tiered_fmt: str, engine: str) -> None:
    """-0.0 equals 0.0, and NaN is one key, ordered last."""
    columns = [Column("k", "double"), Column("v", "string")]
    options = {"merge-engine": engine, "bucket": "2"}
    table = session.create_table(f"{tiered_fmt}.default.t", columns, primary_key=["k"], properties=options)
    table.upsert(pa.table({"k": [0.0, 1.0, float("nan"), 5.0], "v": ["a"] * 4}))
    table.compact(full=True)
    table.upsert(pa.table({"k": [-0.0, float("nan"), 7.0], "v": ["b"] * 3}))
    table.compact(full=True)
    found = sorted((str(abs(r.k)), r.v) for r in table.to_df().collect())
    new = "b" if engine == "deduplicate" else "a"
    assert found == [("0.0", new), ("1.0", "a"), ("5.0", "a"), ("7.0", "b"), ("nan", new)]


def test_of_first_row_the_first_stays(session: Session, tiered_fmt: str) -> None:
    options = {"merge-engine": "first-row", "bucket": "2"}
    columns = [Column("k", "bigint"), Column("v", "string")]
    table = session.create_table(f"{tiered_fmt}.default.t", columns, primary_key=["k"], properties=options)
    table.upsert(pa.table({"k": range(100), "v": ["a"] * 100}))
    table.compact(full=True)
    table.upsert(pa.table({"k": range(50, 150), "v": ["b"] * 100}))
    table.compact(full=True)
    assert sorted((r.k, r.v) for r in table.to_df().collect()) == [(k, "a" if k < 100 else "b") for k in range(150)]


@pytest.mark.tiered
@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_columns_that_do_not_shrink_are_stored_as_they_are(session: Session, fmt: str) -> None:
    """An uncompressed column is read a quarter faster. The log is compressed, as it should be small."""
    chance = random.Random(1)
    table = bucketed_table(session, fmt, ["number"])
    upsert(table, [row(n, n, chance.randbytes(9).hex()) for n in range(3000)])
    assert set(codecs(table).values()) == {"SNAPPY"}
    found = shown(table)
    table.compact(full=True)
    assert {name for name, codec in codecs(table).items() if codec == "SNAPPY"} >= {"number", "ts", "gone"}
    assert codecs(table)["v"] == "UNCOMPRESSED"
    assert shown(table) == found


def codecs(table: Table) -> dict[str, str]:
    """Return column -> compression codec in the first file."""
    group = pq.read_metadata(table.splits().files[0].path).row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.compression for chunk in chunks}
