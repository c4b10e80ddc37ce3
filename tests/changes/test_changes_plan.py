"""What a change feed reads: the files that may hold a changed key, and the rows of these keys in one exchange."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tests.support.changes import defined_changes, feed
from trinity import Session, Table
from trinity.engine.feed.spark.appends import MOST_KEYS

pytestmark = pytest.mark.inner


def table_with_key_of(session: Session, fmt: str, kind: str) -> Table:
    session.sql(
        f"CREATE TABLE {fmt}.default.t (id {kind}, ts BIGINT, v STRING, PRIMARY KEY (id)) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'bucket' = '2')"
    )
    return session.table(f"{fmt}.default.t")


def put_of_kind(table: Table, kind: pa.DataType, *rows: tuple[Any, int, str]) -> int:
    columns = zip(("id", "ts", "v"), zip(*rows, strict=True), (kind, pa.int64(), pa.string()), strict=True)
    return table.upsert(pa.table({name: pa.array(values, type_) for name, values, type_ in columns})).version


@pytest.mark.full
def test_files_without_the_keys_are_not_read(session: Session, tiered_fmt: str) -> None:
    table = table_with_key_of(session, tiered_fmt, "INT")
    put_of_kind(table, pa.int32(), *((k, 10, "base") for k in range(100)))
    table.compact(full=True)
    put_of_kind(table, pa.int32(), (200, 10, "a"))
    put_of_kind(table, pa.int32(), (201, 10, "b"))
    before = put_of_kind(table, pa.int32(), (300, 10, "c"))
    last = put_of_kind(table, pa.int32(), (200, 20, "d"), (201, 5, "late"))
    assert len(table.changes(before).inputFiles()) == 3  # there are 4 in the log, and 2 in the base
    assert feed(table, before) == defined_changes(table, before, last)
    before = put_of_kind(table, pa.int32(), (7, 20, "e"))
    last = put_of_kind(table, pa.int32(), (7, 30, "f"), (8, 30, "g"), (400, 1, "h"))
    plan: str = table.changes(before)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1
    assert "SortMergeJoin" not in plan
    assert feed(table, before) == defined_changes(table, before, last)


@pytest.mark.full
def test_base_rows_are_picked_by_their_keys(session: Session, tiered_fmt: str) -> None:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (a STRING, b DECIMAL(9, 2), c DATE, ts BIGINT, n INT, at TIMESTAMP, "
        "PRIMARY KEY (a, b, c)) TBLPROPERTIES ('watermark-key' = 'ts', 'bucket' = '2')"
    )
    table = session.table(f"{tiered_fmt}.default.t")
    row = "concat('k', id % 7), CAST(id / 4 AS DECIMAL(9, 2)), DATE '2024-01-01' + CAST(id % 3 AS INT)"
    at = "TIMESTAMP '2024-03-31 01:00:00 UTC' + id * INTERVAL '7' MINUTE"
    session.sql(f"INSERT INTO {table.name} SELECT {row}, 10, CAST(id AS INT), {at} FROM range(300)")
    table.compact(full=True)
    session.sql(f"ALTER TABLE {table.name} ADD COLUMN extra STRING")
    session.sql(f"ALTER TABLE {table.name} ALTER COLUMN n TYPE BIGINT")
    session.sql(f"INSERT INTO {table.name} SELECT {row}, 15, -1, {at}, 'old' FROM range(0, 300, 2)")
    before = (table.compact("resolve") if tiered_fmt == "parquet" else table.compact(full=True)).version
    session.sql(f"INSERT INTO {table.name} SELECT {row}, 20, id, {at}, 'new' FROM range(0, 400, 13)")
    session.sql(f"INSERT INTO {table.name} SELECT {row}, id % 30, -id, NULL, NULL FROM range(5, 90, 8)")
    plan: str = table.changes(before)._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert feed(table, before) == defined_changes(table, before, before + 2)


@pytest.mark.full
@pytest.mark.parametrize("few", [True, False])
def test_keys_that_have_no_bounds_and_many_keys(session: Session, fmt: str, few: bool) -> None:
    table = table_with_key_of(session, fmt, "DOUBLE")
    kind = pa.float64()
    first = put_of_kind(table, kind, *((float(k), 10, f"v{k}") for k in range(20)), (math.nan, 10, "nan"))
    table.compact(full=True)
    put_of_kind(table, kind, (99.0, 20, "new"), (math.nan, 20, "now"))
    put_of_kind(table, kind, (99.5, 20, "newer"), (3.0, 5, "late"), (4.0, 15, "on"))
    last = put_of_kind(table, kind, (-math.inf, 20, "x"), (99.0, 30, "again"))
    with MOST_KEYS.set_to(500_000 if few else 0):
        found = feed(table, first)
    nan = {change for change in found if math.isnan(change[2][0])}  # found by isnan, as NaN equals nothing in Python
    assert sorted((kind, row[1:]) for kind, _, row in nan) == [
        ("update_postimage", (20, "now")),
        ("update_preimage", (10, "nan")),
    ]
    defined = defined_changes(table, first, last)
    assert found.keys() - nan == {change for change in defined if not math.isnan(change[2][0])}
    assert max(found.values()) == 1
