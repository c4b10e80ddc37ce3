"""NULL without a type, Arrow's null and Spark's void, at any depth, written to columns of every type."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from trinity import Column, Session, Table

TYPES: Final = {
    "s": "string", "n": "decimal(9,2)", "c": "char(3)", "b": "binary", "d": "date", "t": "timestamp",
    "a": "array<int>", "m": "map<string,int>", "r": "struct<x:int,y:array<string>>", "aa": "array<array<int>>",
    "ar": "array<struct<x:int,m:map<string,array<int>>>>", "ma": "map<string,array<int>>",
}  # fmt: skip
NESTED: Final = tuple(name for name, kind in TYPES.items() if "<" in kind)


@pytest.fixture
def table(session: Session, fmt: str) -> Table:
    session.use(fmt, "default")
    columns = [Column("k", "int"), *(Column(name, kind) for name, kind in TYPES.items())]
    return session.create_table(f"{fmt}.default.t", columns, primary_key=["k"])


def not_null(table: Table) -> dict[int, dict[str, Any]]:
    """Return key -> the values of the row that are not NULL."""
    return {
        row["k"]: {name: value for name, value in row.items() if name != "k" and value is not None}
        for row in table.to_arrow().to_pylist()
    }


def test_arrow_nulls(table: Table) -> None:
    table.upsert(pa.table({"k": [1, 2], **{name: pa.nulls(2) for name in TYPES}}))
    assert not_null(table) == {1: {}, 2: {}}
    given = {
        "k": [3],
        "a": pa.array([[None, None]], pa.list_(pa.null())),
        "aa": pa.array([[None, [None]]], pa.list_(pa.list_(pa.null()))),
        "r": pa.array([{"x": None, "y": None}], pa.struct({"x": pa.null(), "y": pa.null()})),
        "ar": pa.array([[{"x": 1, "m": None}]], pa.list_(pa.struct({"x": pa.int32(), "m": pa.null()}))),
        "ma": pa.array([[("p", None)]], pa.map_(pa.string(), pa.null())),
        "m": pa.array([[]], pa.map_(pa.string(), pa.null())),
    }
    table.upsert(pa.table(given))
    assert not_null(table)[3] == {
        "a": [None, None], "aa": [None, [None]], "r": {"x": None, "y": None}, "ar": [{"x": 1, "m": None}],
        "ma": [("p", None)], "m": [],
    }  # fmt: skip


def test_spark_nulls(session: Session, table: Table) -> None:
    names = ", ".join(TYPES)
    session.sql(f"INSERT INTO t (k, {names}) VALUES (1, {', '.join('NULL' for _ in TYPES)})")
    session.sql(f"INSERT INTO t SELECT 2, {', '.join('NULL' for _ in TYPES)}")
    nulls = [F.lit(None).alias(name) for name in TYPES]
    table.upsert(session.spark.range(3, 4).select(F.col("id").cast("int").alias("k"), *nulls))
    assert not_null(table) == {1: {}, 2: {}, 3: {}}
    session.sql(
        "INSERT INTO t (k, a, m, r, ar) VALUES (4, array(), map(), named_struct('x', NULL, 'y', array()), NULL)"
    )
    session.sql("INSERT INTO t (k, a, ar) VALUES (5, array(NULL), array(named_struct('x', 1, 'm', map('q', array()))))")
    assert not_null(table)[4] == {"a": [], "m": [], "r": {"x": None, "y": []}}
    assert not_null(table)[5] == {"a": [None], "ar": [{"x": 1, "m": [("q", [])]}]}
    session.sql("UPDATE t SET a = NULL, r = NULL, ar = array() WHERE k = 5")
    assert not_null(table)[5] == {"ar": []}
