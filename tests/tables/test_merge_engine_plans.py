"""Plans of the folds by column: hash tables and narrow sums are used only where the files' bounds allow it."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame

from trinity import Column, Session

GROUPED = pa.schema(
    [("k", pa.int32()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("a", pa.int32()), ("n", pa.int64())]
)
NARROW = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 7)]
WIDE = [*NARROW, dt.datetime(1582, 10, 15), dt.datetime(9999, 12, 31)]


@pytest.mark.tiered
@pytest.mark.parametrize(("times", "sorts"), [(NARROW, False), (WIDE, True)], ids=["narrow", "wide"])
def test_a_group_folds_in_a_hash_table_where_its_bounds_let_it(
    session: Session, fmt: str, times: list[dt.datetime], sorts: bool
) -> None:
    """G1, G2, K4: NULL is the smallest part, rows without a sequence do not count, the later of two equal ones wins."""
    table = session.create_table(
        f"{fmt}.default.narrow",
        [
            Column("k", "int"),
            Column("day", "date"),
            Column("at", "timestamp"),
            Column("a", "int"),
            Column("n", "bigint"),
        ],
        primary_key=["k"],
        properties={
            "merge-engine": "partial-update",
            "fields.day,at.sequence-group": "a,n",
            "fields.n.aggregate-function": "sum",
        },
    )
    chosen, newest, sums = random.Random(7), dict[int, tuple[Any, ...]](), dict[int, int]()
    days = [dt.date(1969, 12, 30), dt.date(1970, 1, 2), None]
    for commit in range(4):
        rows = [
            (chosen.randrange(5), chosen.choice(days), chosen.choice([*times, None]), chosen.choice([commit, None]), 3)
            for _ in range(40)
        ]
        table.upsert(pa.table(list(map(list, zip(*rows, strict=True))), GROUPED))
        for k, day, at, a, n in rows:
            if day or at:
                order = (day or dt.date.min, at or dt.datetime.min)
                sums[k] = sums.get(k, 0) + n
                if k not in newest or order >= newest[k][0]:
                    newest[k] = order, (k, day, at, a)
        if commit == 2:
            table.compact(full=True)
    read = table.to_df()
    assert ("SortAggregate" in plan_of(read)) == sorts
    found = read.selectExpr("k", "day", "CAST(at AS TIMESTAMP_NTZ)", "a", "n").collect()
    assert {tuple(r) for r in found} == {(*row, sums[k]) for k, (_, row) in newest.items()}


@pytest.mark.tiered
def test_a_sum_is_narrow_only_where_bounds_prove_it(session: Session, fmt: str) -> None:
    """A4: values that might leave BIGINT on the way are summed in a wider type, and may return into range."""
    table = session.create_table(
        f"{fmt}.default.sums",
        [Column("k", "int"), Column("n", "bigint")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    )
    most = 2**63 - 1
    table.upsert(pa.table({"k": pa.array([1, 1, 2], pa.int32()), "n": [5, -7, None]}))
    assert "shiftright" not in plan_of(table.to_df())
    table.upsert(pa.table({"k": pa.array([1, 1, 1], pa.int32()), "n": [most, most, -most]}))
    assert "shiftright" in plan_of(table.to_df())
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "n": [3]}))
    with pytest.raises(SparkRuntimeException, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        table.to_df().collect()
    table.upsert(pa.table({"k": pa.array([1], pa.int32()), "n": [-most]}))
    assert {(r.k, r.n) for r in table.to_df().collect()} == {(1, 1), (2, None)}


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())
