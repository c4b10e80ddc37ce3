"""A read of given keys opens only the base files of their buckets (L9)."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinity import Column, Session, Table
from trinity.engine.reading.files import bucket_types, prune
from trinity.engine.reading.predicate import Predicate
from trinity.engine.reading.spark_hash import buckets_of
from trinity.spi import Bucket, DataFile, TableDefinition
from trinity.syntax.quoting import text_literal

pytestmark = pytest.mark.inner

YEARS = dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)
TYPES: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "tinyint": (st.integers(-128, 127), str),
    "int": (st.integers(-(2**31), 2**31 - 1), str),
    "bigint": (st.integers(-(2**63), 2**63 - 1), str),
    "decimal(18,3)": (st.decimals(-(10**14), 10**14, places=3), lambda d: f"{d:f}"),
    "decimal(38,0)": (st.integers(-(10**37), 10**37).map(Decimal), lambda d: f"{d:f}"),
    "string": (st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9), text_literal),
    "date": (st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), lambda d: f"DATE '{d}'"),
    "timestamp": (st.datetimes(*YEARS), lambda t: f"TIMESTAMP '{t:%Y-%m-%d %H:%M:%S.%f}Z'"),
    "timestamp_ntz": (st.datetimes(*YEARS), lambda t: f"TIMESTAMP_NTZ '{t:%Y-%m-%d %H:%M:%S.%f}'"),
}
COUNT = 7


def definition(*types: str) -> TableDefinition:
    columns = [Column(f"k{n}", kind) for n, kind in enumerate(types)]
    return TableDefinition("default", "t", (*columns, Column("v", "int")), tuple(c.name for c in columns))


def left(table: TableDefinition, where: str, types: str | None = None) -> set[int]:
    """Return the buckets that remain after pruning by a predicate."""
    types = bucket_types(table) if types is None else types
    files = [DataFile(f"/t/{n}.parquet", 1, 1, bucket=Bucket(n, COUNT, types)) for n in range(COUNT)]
    return {f.bucket.index for f in prune(files, Predicate.of(table, where, lambda: "America/New_York")) if f.bucket}


def hashed(table: TableDefinition, keys: list[tuple[Any, ...]]) -> set[int]:
    schema = pa.schema([table.column(k).to_arrow() for k in table.primary_key])
    rows = pa.table(
        [pa.array(values, f.type) for values, f in zip(zip(*keys, strict=True), schema, strict=True)], schema
    )
    return set(buckets_of(rows, table.primary_key, COUNT).tolist())


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_literals_of_each_type_are_hashed_as_keys_are(kind: str, data: st.DataObject) -> None:
    values, literal = TYPES[kind]
    keys = data.draw(st.lists(values, min_size=1, max_size=3))
    table = definition(kind)
    wanted = hashed(table, [(k,) for k in keys])
    assert left(table, f"k0 IN ({', '.join(map(literal, keys))}) AND v > 0") == wanted
    assert left(table, f"{literal(keys[0])} = K0") == hashed(table, [(keys[0],)])


def test_a_key_of_several_columns_is_one_of_their_combinations() -> None:
    table = definition("string", "int")
    wanted = hashed(table, [("a", 1), ("a", 2), ("b", 1), ("b", 2)])
    assert left(table, "k0 IN ('a', 'b') AND (v = 3 AND k1 IN (1, 2))") == wanted
    assert left(table, "k0 = 'a' AND k1 = 2") == hashed(table, [("a", 2)])


@pytest.mark.parametrize(
    "where",
    [
        "k0 = 1", "k0 = 1 OR k1 = 2", "k0 = 1 AND k1 > 2", "k0 = 1 AND k1 IN (2, NULL)", "k0 = 1 AND k1 = v",
        "k0 = 1 AND NOT k1 = 2", "k0 = 1 AND k1 = 2.5", f"k0 = {2**40} AND k1 = 2", "k0 + 0 = 1 AND k1 = 2",
        f"k0 IN ({', '.join(map(str, range(200)))}) AND k1 IN ({', '.join(map(str, range(200)))})",
    ],
)  # fmt: skip
def test_what_does_not_list_keys_leaves_all_buckets(where: str) -> None:
    assert left(definition("int", "int"), where) == set(range(COUNT))


def test_keys_that_were_hashed_by_other_types_may_be_anywhere() -> None:
    table = definition("bigint")
    assert left(table, "k0 = 1") == hashed(table, [(1,)])
    assert left(table, "k0 = 1", types="int") == set(range(COUNT))
    assert left(definition("double"), "k0 = 1") == set(range(COUNT))


@pytest.fixture
def stock(session: Session, tiered_fmt: str) -> Table:
    """Make a table of two hundred rows in eight buckets, a tenth of which has changed since."""
    columns = [Column("name", "string"), Column("number", "decimal(10,2)"), Column("ts", "int"), Column("v", "string")]
    options = {"watermark-key": "ts", "bucket": "8"}
    table = session.create_table(
        f"{tiered_fmt}.default.stock", columns, primary_key=["name", "number"], properties=options
    )
    put_numbers(table, list(range(200)), 1)
    table.compact(full=True)
    put_numbers(table, list(range(0, 200, 10)), 2)
    return table


def put_numbers(table: Table, numbers: list[int], ts: int) -> None:
    rows = [{"name": f"n{n % 9}é", "number": Decimal(n) / 4, "ts": ts, "v": f"{n} at {ts}"} for n in numbers]
    table.upsert(pa.Table.from_pylist(rows, table.definition.to_arrow()))


def where_of(*numbers: int) -> str:
    names = ", ".join({f"'n{n % 9}é'": 0 for n in numbers})
    return f"name IN ({names}) AND number IN ({', '.join(str(Decimal(n) / 4) for n in numbers)})"


@pytest.mark.full
def test_reads_and_statements_of_keys_open_their_buckets(session: Session, stock: Table) -> None:
    for number in random.Random(1).sample(range(200), 12):
        [row] = stock.to_df(where=where_of(number)).collect()
        assert row.v == f"{number} at {1 if number % 10 else 2}"
        assert "base: 1 of 8 files" in stock.explain(where=where_of(number))
    assert sorted(r.v for r in stock.to_df(where=where_of(30, 31)).collect()) == ["30 at 2", "31 at 1"]
    session.sql(f"UPDATE {stock.name} SET v = 'new' WHERE {where_of(31)}")
    session.sql(f"DELETE FROM {stock.name} WHERE {where_of(40)}")
    [row] = session.sql(f"SELECT v FROM {stock.name} WHERE {where_of(31)}").collect()
    assert row.v == "new"
    assert stock.to_df(where=where_of(40)).count() == 0
    assert stock.to_df().count() == 199
