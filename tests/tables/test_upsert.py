"""Upsert by watermark and tombstone (K1-K4, U1-U8), through the public API, on every format."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from trinity import Column, Session, Table, TrinityError


def amounts(table: Table, **at: Any) -> dict[str, float | None]:
    return {r.order_id: r.amount for r in table.to_df(**at).collect()}


def order(order_id: str, ts: int | None, amount: float | None = None, deleted: bool | None = None) -> pa.Table:
    return pa.table(
        {
            "order_id": [order_id],
            "ts": pa.array([ts], pa.int64()),
            "amount": pa.array([amount], pa.float64()),
            "deleted": pa.array([deleted], pa.bool_()),
        }
    )


def test_seed_000_examples(orders: Table) -> None:
    """The two examples of the seed's document on upserts."""
    orders.upsert(order("1", 200, 2.0))
    orders.upsert(order("1", 100, 1.0))  # late
    orders.upsert(order("2", 100, 1.0))
    orders.upsert(order("2", 200, deleted=True))
    assert amounts(orders) == {"1": 2.0}


@pytest.mark.tiered
def test_u1_the_winner_is_the_whole_row(orders: Table) -> None:
    orders.upsert(order("1", 100, 1.0))
    orders.upsert(order("1", 200, None))
    assert amounts(orders) == {"1": None}


@pytest.mark.tiered
def test_k4_equal_watermarks_later_arrival_wins(orders: Table) -> None:
    orders.upsert(order("1", 100, 1.0))
    orders.upsert(order("1", 100, 2.0))
    orders.upsert(pa.concat_tables([order("2", 5, 1.0), order("2", 5, 3.0), order("2", 5, 2.0)]))
    assert amounts(orders) == {"1": 2.0, "2": 2.0}


@pytest.mark.tiered
def test_u2_null_watermark_is_smallest(orders: Table) -> None:
    orders.upsert(order("1", None, 1.0))
    assert amounts(orders) == {"1": 1.0}
    orders.upsert(order("1", -5, 2.0))
    orders.upsert(order("1", None, 3.0))
    assert amounts(orders) == {"1": 2.0}


@pytest.mark.tiered
def test_u4_tombstones_outlive_compaction_and_a_newer_version_revives(orders: Table) -> None:
    orders.upsert(pa.concat_tables([order("1", 100, 1.0), order("2", 100, 1.0)]))
    orders.upsert(order("1", 200, deleted=True))
    orders.compact(full=True)
    orders.vacuum("0 seconds")
    orders.upsert(order("1", 150, 9.0))
    assert amounts(orders) == {"2": 1.0}
    orders.compact(full=True)
    orders.upsert(order("1", 199, 9.0))
    assert amounts(orders) == {"2": 1.0}
    orders.upsert(order("1", 200, 4.0))
    assert amounts(orders) == {"1": 4.0, "2": 1.0}


@pytest.mark.tiered
def test_delete_by_condition_and_by_keys(orders: Table) -> None:
    orders.upsert(pa.concat_tables([order(str(n), 100, float(n)) for n in range(8)]))
    assert orders.delete("amount > 5").rows == 2
    assert orders.delete(["0"]).rows == 1
    assert orders.delete([("1",)]).rows == 1
    assert orders.delete([{"order_id": "2"}]).rows == 1
    assert orders.delete(pa.table({"order_id": ["3", "unknown"]})).rows == 1
    assert orders.delete("amount > 100").rows == 0
    assert amounts(orders) == {"4": 4.0, "5": 5.0}


@pytest.mark.tiered
def test_u5_a_deleted_row_keeps_its_watermark(orders: Table) -> None:
    orders.upsert(order("1", 100, 1.0))
    orders.delete(["1"])
    orders.upsert(order("1", 99, 9.0))
    assert amounts(orders) == {}
    orders.upsert(order("1", 101, 2.0))
    assert amounts(orders) == {"1": 2.0}


@pytest.mark.tiered
def test_u6_a_table_without_tombstone_key_deletes_too(session: Session, fmt: str) -> None:
    table = session.create_table(
        f"{fmt}.default.t", [Column("order_id", "string"), Column("amount", "double")], primary_key=["order_id"]
    )
    table.upsert(pa.table({"order_id": ["1", "2"], "amount": [1.0, 2.0]}))
    table.delete("amount = 2")
    assert amounts(table) == {"1": 1.0}
    assert table.to_df().columns == ["order_id", "amount"]
    table.compact(full=True)
    assert amounts(table) == {"1": 1.0}
    table.upsert(pa.table({"order_id": ["2"], "amount": [3.0]}))
    assert amounts(table) == {"1": 1.0, "2": 3.0}


@pytest.mark.parametrize(
    ("kind", "options", "dead", "alive"),
    [
        ("boolean", {}, True, False),
        ("string", {"tombstone-string-key-value": "gone"}, "gone", "here"),
        ("char(6)", {"tombstone_string_key_value": "gone"}, "gone", "here"),
        ("string", {}, "anything", None),
        ("int", {}, 0, None),
    ],
)
def test_u3_tombstone_forms(
    session: Session, tiered_fmt: str, kind: str, options: dict[str, str], dead: object, alive: object
) -> None:
    columns = [Column("k", "int"), Column("mark", kind)]
    table = session.create_table(
        f"{tiered_fmt}.default.t", columns, primary_key=["k"], properties={"tombstone-key": "mark", **options}
    )
    table.upsert(pa.table({"k": [1, 2], "mark": [dead, alive]}))
    assert [r.k for r in table.to_df().collect()] == [2]
    table.delete([2])
    assert table.to_df().count() == 0


def test_composite_key_and_watermark(session: Session, tiered_fmt: str) -> None:
    columns = [Column(c, "int") for c in ("a", "b", "w1", "w2", "v")]
    table = session.create_table(
        f"{tiered_fmt}.default.t", columns, primary_key=["a", "b"], properties={"watermark-key": "w1,w2"}
    )

    def put(*rows: tuple[int | None, ...]) -> None:
        table.upsert(pa.Table.from_pylist([dict(zip(["a", "b", "w1", "w2", "v"], r, strict=True)) for r in rows]))

    put((1, 1, 5, None, 1), (1, 2, 1, 1, 1))
    put((1, 1, 5, 1, 2), (1, 2, None, 9, 2))
    put((1, 1, 4, 9, 3))
    assert {(r.a, r.b): r.v for r in table.to_df().collect()} == {(1, 1): 2, (1, 2): 1}


@pytest.mark.tiered
def test_every_source_of_data(orders: Table, session: Session) -> None:
    """A Spark DataFrame, pyarrow, Polars, DuckDB and pandas give the same rows."""
    frame = pd.DataFrame({"order_id": ["a"], "ts": [1], "amount": [1.0]})
    orders.upsert(frame)
    orders.upsert(pl.DataFrame({"order_id": ["b"], "ts": [1], "amount": [1.0]}))
    orders.upsert(duckdb.sql("select 'c' as order_id, 1::bigint as ts, 1.0::double as amount"))
    orders.upsert(session.spark.createDataFrame([("d", 1, 1.0)], "Order_ID string, ts int, amount float"))
    orders.upsert(pa.table({"order_id": pa.array(["e"]).dictionary_encode(), "ts": [1], "amount": [1.0]}))
    assert amounts(orders) == dict.fromkeys("abcde", 1.0)


def test_l4_txn_makes_a_retry_a_no_op(orders: Table) -> None:
    first = orders.upsert(order("1", 1, 1.0), txn=("app", 7))
    assert not first.skipped
    for again in (7, 3):
        result = orders.upsert(order("1", 2, 2.0), txn=("app", again))
        assert (result.skipped, result.version) == (True, first.version)
    orders.compact(full=True)
    orders.vacuum("0 seconds")
    assert orders.upsert(order("1", 2, 2.0), txn=("app", 7)).skipped
    assert not orders.upsert(order("1", 2, 2.0), txn=("other", 1)).skipped
    assert not orders.upsert(order("1", 3, 3.0), txn=("app", 8)).skipped
    assert amounts(orders) == {"1": 3.0}


@pytest.mark.tiered
def test_blind_appends_of_eight_threads_all_land(orders: Table) -> None:
    def append(thread: int) -> list[int]:
        return [orders.upsert(order(f"{thread}-{n}", n, float(n))).version for n in range(5)]

    with ThreadPoolExecutor(8) as pool:
        versions = [v for done in pool.map(append, range(8)) for v in done]
    assert len(set(versions)) == 40
    assert len(amounts(orders)) == 40
    assert orders.log().select("_commit_version").distinct().count() == 40


def test_l10_time_travel_by_version_and_timestamp(orders: Table) -> None:
    first = orders.upsert(order("1", 1, 1.0)).version
    second = orders.upsert(order("1", 2, 2.0)).version
    orders.compact(full=True)
    assert amounts(orders, version=first) == {"1": 1.0}
    assert amounts(orders, version=second) == {"1": 2.0}
    history = {r.version: r.timestamp for r in orders.history().collect()}
    times = [history[v] for v in sorted(history)]
    assert times == sorted(set(times))
    assert amounts(orders, timestamp=history[first].astimezone()) == {"1": 1.0}
    for wrong in (-1, 99, "1", 1.5, True):
        with pytest.raises(TrinityError, match=f"{wrong}|whole number") as caught:
            orders.to_df(version=wrong)  # type: ignore[arg-type]
        assert caught.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(TrinityError, match="timestamp is to be text or a datetime"):
        orders.to_df(timestamp=17)  # type: ignore[arg-type]


@pytest.mark.tiered
def test_log_shows_every_row_version(orders: Table) -> None:
    first = orders.upsert(pa.concat_tables([order("1", 1, 1.0), order("2", 1, 1.0)])).version
    second = orders.upsert(order("1", 2, 2.0)).version
    rows = orders.log().orderBy("_commit_version", "_pos").collect()
    assert [(r.order_id, r.ts, r._commit_version, r._pos, r._tier) for r in rows] == [
        ("1", 1, first, 0, "log"),
        ("2", 1, first, 1, "log"),
        ("1", 2, second, 0, "log"),
    ]
    assert all(r._file.endswith(".parquet") for r in rows)


def test_sequence_field_descending_and_row_kind(session: Session, tiered_fmt: str) -> None:
    """U8: the smallest sequence wins, NULL loses, and -D hides the row."""
    columns = [Column("k", "int"), Column("s", "int"), Column("kind", "string")]
    options = {"sequence.field": "s", "sequence.field.sort-order": "descending", "rowkind.field": "kind"}
    table = session.create_table(f"{tiered_fmt}.default.t", columns, primary_key=["k"], properties=options)
    table.upsert(pa.table({"k": [1, 1, 2, 3], "s": [5, 3, 1, None], "kind": ["+I", "+U", "+I", "+I"]}))
    table.upsert(pa.table({"k": [1, 2, 3], "s": [4, 0, 9], "kind": ["-D", "-D", "+U"]}))
    assert {r.k: r.s for r in table.to_df().collect()} == {1: 3, 3: 9}
    table.compact(full=True)
    table.upsert(pa.table({"k": [2], "s": [1], "kind": ["+I"]}))
    assert {r.k: r.s for r in table.to_df().collect()} == {1: 3, 3: 9}
