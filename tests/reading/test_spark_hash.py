"""Buckets computed by numpy equal Spark's ``hash``; bucketed reads depend on it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from trinity.engine.reading.spark_hash import buckets_of
from trinity.spark.types import arrow_frame

pytestmark = pytest.mark.inner

NAIVE = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "time": (pa.time64("us"), st.times()),
    "decimal(18,3)": (pa.decimal128(18, 3), st.decimals(-(10**14), 10**14, places=3)),
    "decimal(38,0)": (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    "string": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(*NAIVE, timezones=st.just(dt.UTC))),
    "timestamp_ntz": (pa.timestamp("us"), st.datetimes(*NAIVE)),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_each_type(spark: SparkSession, kind: str, data: st.DataObject) -> None:
    arrow, values = KINDS[kind]
    drawn = data.draw(st.lists(st.none() | values, min_size=1, max_size=60))
    check(spark, pa.table({"k": pa.array(drawn, arrow)}), 7)


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_several_columns(spark: SparkSession, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    columns = {
        f"c{number}": pa.array(data.draw(st.lists(st.none() | values, min_size=count, max_size=count)), arrow)
        for number, (arrow, values) in enumerate(KINDS.values())
    }
    check(spark, pa.table(columns), 1024)


def check(spark: SparkSession, rows: pa.Table, count: int) -> None:
    wanted = arrow_frame(spark, rows).selectExpr(
        f"CAST(pmod(hash({', '.join(rows.column_names)}), {count}) AS INT) AS b"
    )
    assert buckets_of(rows, rows.column_names, count).tolist() == [r.b for r in wanted.collect()]
