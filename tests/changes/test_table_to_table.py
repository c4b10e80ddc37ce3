"""A table follows another one: rows, wide rows of several sources, and totals that subtract old rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.changes import rows_at
from tests.support.refusals import refused
from tests.support.threads import at_once
from trinity import Column, CommitResult, Session, Table, cdc

Order = tuple[int, str, int | None, int]
"""id, customer, amount, ts."""

ORDERS = "id INT PRIMARY KEY, customer STRING, amount INT, ts BIGINT"
TOTALS = """CREATE TABLE {name} (customer STRING PRIMARY KEY, amount BIGINT, orders BIGINT, kind STRING)
            TBLPROPERTIES ('merge-engine' = 'aggregation', 'rowkind.field' = 'kind',
                           'fields.default-aggregate-function' = 'sum')"""
PAIRS = [
    pytest.param(source, target, marks=() if (source, target) == ("parquet", "parquet") else pytest.mark.full)
    for source in ("parquet", "delta", "iceberg")
    for target in ("parquet", "delta", "iceberg")
]


def orders_of(session: Session, fmt: str) -> Table:
    session.sql(f"CREATE TABLE {fmt}.default.orders ({ORDERS}) TBLPROPERTIES ('watermark-key' = 'ts')")
    return session.table(f"{fmt}.default.orders")


def totals_of(session: Session, fmt: str) -> Table:
    session.sql(TOTALS.format(name=f"{fmt}.default.totals"))
    return session.table(f"{fmt}.default.totals")


def put_orders(orders: Table, *rows: Order) -> CommitResult:
    names = {"id": pa.int32(), "customer": pa.string(), "amount": pa.int32(), "ts": pa.int64()}
    columns = zip(zip(*rows, strict=True), names.items(), strict=True)
    return orders.upsert(pa.table({name: pa.array(values, kind) for values, (name, kind) in columns}))


def by_customer(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("customer", "CAST(amount AS BIGINT) AS amount", "1L AS orders", "kind")


def add_up(orders: Table, totals: Table) -> CommitResult:
    return cdc.follow(orders, totals, transform=by_customer)


def expected(orders: Table) -> dict[str, tuple[int, int]]:
    """Return customer -> (sum, number) of the orders in the source."""
    found: dict[str, tuple[int, int]] = {}
    for _, customer, amount, _ in rows_at(orders).elements():
        before = found.get(customer, (0, 0))
        found[customer] = (before[0] + (amount or 0), before[1] + 1)
    return found


def summed(totals: Table) -> dict[str, tuple[int, int]]:
    """Return customer -> (sum, number) of the totals. A customer without orders has the sum 0."""
    found = {row.customer: (row.amount or 0, row.orders) for row in totals.to_df().collect()}
    assert all(amount == 0 for amount, orders in found.values() if orders == 0)
    return {customer: sums for customer, sums in found.items() if sums[1]}


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_totals_take_back_what_changed(session: Session, source: str, target: str) -> None:
    orders, totals = orders_of(session, source), totals_of(session, target)
    put_orders(orders, (1, "ann", 10, 10), (2, "ann", 20, 10), (3, "bob", 5, 10), (4, "cid", None, 10))
    first = add_up(orders, totals)
    assert summed(totals) == expected(orders) == {"ann": (30, 2), "bob": (5, 1), "cid": (0, 1)}
    assert add_up(orders, totals).skipped
    put_orders(orders, (1, "ann", 11, 20), (3, "ann", 7, 20), (2, "eve", 99, 5))  # another amount, customer, a late row
    orders.delete([4])
    put_orders(orders, (1, "ann", 12, 30))  # twice between two triggers
    orders.compact(full=True)
    second = add_up(orders, totals)
    assert (second.version, second.skipped) == (first.version + 1, False)
    assert summed(totals) == expected(orders) == {"ann": (39, 3)}
    orders.compact(full=True)
    totals.compact(full=True)
    session.sql(f"UPDATE {orders.name} SET amount = amount * 2 WHERE id > 1")
    add_up(orders, totals)
    assert summed(totals) == expected(orders) == {"ann": (66, 3)}


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("ordered", [True, False])
def test_a_copy_is_as_its_source(session: Session, source: str, target: str, ordered: bool) -> None:
    orders = orders_of(session, source)
    watermark = ("version BIGINT, ", ", 'watermark-key' = 'version'") if ordered else ("", "")
    session.sql(
        f"CREATE TABLE {target}.default.copy ({ORDERS}, {watermark[0]}kind STRING) "
        f"TBLPROPERTIES ('rowkind.field' = 'kind'{watermark[1]})"
    )
    copy = session.table(f"{target}.default.copy")
    draw = random.Random(f"{source} {target}")
    for moment in range(12):
        _act(session, orders, draw, moment)
        if draw.random() < 0.5:
            cdc.follow(orders, copy)
            assert Counter(tuple(row[:4]) for row in rows_at(copy).elements()) == rows_at(orders), moment


@pytest.mark.full
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_totals_of_a_drawn_history(session: Session, source: str, target: str) -> None:
    orders, totals = orders_of(session, source), totals_of(session, target)
    add_up(orders, totals)  # of a table without rows
    draw = random.Random(f"totals {source} {target}")
    for moment in range(16):
        _act(session, orders, draw, moment)
        if draw.random() < 0.4:
            add_up(orders, totals)
            assert summed(totals) == expected(orders), moment
            if draw.random() < 0.3:
                totals.compact(full=draw.random() < 0.5)


def _act(session: Session, orders: Table, draw: random.Random, moment: int) -> None:
    """Commit a random change to the source, or maintain it."""
    drawn = [
        (draw.randrange(8), draw.choice("abc"), draw.choice([None, 1, 2, 3]), 10 * moment - draw.randrange(30))
        for _ in range(4)
    ]
    actions: list[Callable[[], object]] = [
        lambda: put_orders(orders, *drawn),
        lambda: put_orders(orders, *drawn),
        lambda: orders.delete([draw.randrange(8)]),
        lambda: session.sql(f"UPDATE {orders.name} SET amount = id, customer = 'd' WHERE id < {draw.randrange(4)}"),
        lambda: orders.compact(full=draw.random() < 0.5),
        lambda: session.sql(f"TRUNCATE TABLE {orders.name}"),
    ]
    draw.choice(actions if moment else actions[:1])()


def pairs(rows: DataFrame) -> list[tuple[Any, ...]]:
    """Return the values of the first two columns, sorted."""
    return sorted(tuple(row)[:2] for row in rows.collect())


@pytest.mark.parametrize("preimages", [None, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "transform",
    [None, lambda rows: rows, lambda rows: rows.withColumn("state", F.upper("state"))],
    ids=["no transform", "same values", "other values"],
)
def test_a_row_that_moves_between_the_targets_keys_is_there_once(
    session: Session, tiered_fmt: str, transform: Callable[[DataFrame], DataFrame] | None, preimages: bool | None
) -> None:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.orders (id INT PRIMARY KEY, state STRING)")
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.copy (id INT, state STRING, kind STRING, PRIMARY KEY (id, state)) "
        "PARTITIONED BY (state) TBLPROPERTIES ('rowkind.field' = 'kind')"
    )
    orders, copy = (session.table(f"{tiered_fmt}.default.{name}") for name in ("orders", "copy"))
    for states in ({1: "new", 2: "new"}, {1: "paid", 2: "New"}, {1: "new"}):
        orders.upsert(pa.table({"id": pa.array([*states], pa.int32()), "state": [*states.values()]}))
        cdc.follow(orders, copy, transform=transform, preimages=preimages)
        moved = orders.to_df().withColumn("kind", F.lit("+I"))
        assert pairs(copy.to_df()) == pairs(moved if transform is None else transform(moved))


@pytest.mark.full
def test_a_row_moves_by_a_key_column_that_a_transform_renames(session: Session, tiered_fmt: str) -> None:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.orders (id INT PRIMARY KEY, state STRING)")
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.copy (id INT, status STRING, kind STRING, PRIMARY KEY (id, status)) "
        "TBLPROPERTIES ('rowkind.field' = 'kind')"
    )
    orders, copy = (session.table(f"{tiered_fmt}.default.{name}") for name in ("orders", "copy"))
    for state in ("new", "paid"):
        orders.upsert(pa.table({"id": pa.array([1], pa.int32()), "state": [state]}))
        cdc.follow(orders, copy, key=["id", "state"], transform=lambda rows: rows.withColumnRenamed("state", "status"))
        assert pairs(copy.to_df()) == [(1, state)]


@pytest.mark.parametrize("transform", [None, lambda rows: rows], ids=["no transform", "same values"])
def test_rows_that_move_between_the_sources_keys_stay(
    session: Session, tiered_fmt: str, transform: Callable[[DataFrame], DataFrame] | None
) -> None:
    """A delete and an insert of one version have one key in the target, and one watermark."""
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.places (id INT, region STRING, note INT, PRIMARY KEY (id, region)) "
        "PARTITIONED BY (region)"
    )
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.copy (id INT PRIMARY KEY, region STRING, note INT, version BIGINT, "
        "kind STRING) TBLPROPERTIES ('watermark-key' = 'version', 'rowkind.field' = 'kind')"
    )
    places, copy = (session.table(f"{tiered_fmt}.default.{name}") for name in ("places", "copy"))
    ids = pa.array(range(40), pa.int32())
    places.upsert(pa.table({"id": ids, "region": [("us", "eu")[n % 2] for n in range(40)]}))
    for statement in (
        "SET region = IF(region = 'us', 'eu', 'us')",
        "SET region = 'asia' WHERE id < 20",
        "SET region = 'eu' WHERE id <> 7",
    ):
        cdc.follow(places, copy, transform=transform)
        session.sql(f"UPDATE {places.name} {statement}")
        cdc.follow(places, copy, transform=transform)
        assert pairs(copy.to_df()) == pairs(places.to_df())
    session.sql(f"DELETE FROM {places.name} WHERE id > 3")
    cdc.follow(places, copy, transform=transform)
    assert pairs(copy.to_df()) == pairs(places.to_df())


def test_a_key_that_the_source_lacks_is_refused(session: Session) -> None:
    orders = orders_of(session, "parquet")
    session.sql(f"CREATE TABLE copy ({ORDERS}, kind STRING) TBLPROPERTIES ('rowkind.field' = 'kind')")
    with refused("COLUMN_NOT_FOUND", "'nr'"):
        cdc.follow(orders, session.table("copy"), key=["nr"])


@pytest.mark.full
def test_a_wide_row_of_two_sources(session: Session, tiered_fmt: str) -> None:
    """One of the two sources is a partial-update table itself."""
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.states (id INT PRIMARY KEY, state STRING, note STRING) "
        "TBLPROPERTIES ('merge-engine' = 'partial-update')"
    )
    session.sql(f"CREATE TABLE {tiered_fmt}.default.payments (id INT PRIMARY KEY, paid INT)")
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.wide (id INT PRIMARY KEY, state STRING, note STRING, of_state BIGINT, "
        "paid INT, of_payment BIGINT, kind STRING) TBLPROPERTIES ('merge-engine' = 'partial-update', "
        "'fields.of_state.sequence-group' = 'state,note', 'fields.of_payment.sequence-group' = 'paid', "
        "'rowkind.field' = 'kind')"
    )
    states, payments, wide = (session.table(f"{tiered_fmt}.default.{name}") for name in ("states", "payments", "wide"))

    def follow() -> set[tuple[Any, ...]]:
        cdc.follow(states, wide, watermark="of_state")
        cdc.follow(payments, wide, watermark="of_payment")
        return {tuple(row) for row in wide.to_df().select("id", "state", "note", "paid").collect()}

    states.upsert(pa.table({"id": pa.array([1, 2], pa.int32()), "state": ["new", "new"]}))
    payments.upsert(pa.table({"id": pa.array([2], pa.int32()), "paid": pa.array([7], pa.int32())}))
    assert follow() == {(1, "new", None, None), (2, "new", None, 7)}
    states.upsert(pa.table({"id": pa.array([1], pa.int32()), "note": ["gift"]}))
    payments.delete([2])
    assert follow() == {(1, "new", "gift", None), (2, "new", None, None)}


@pytest.mark.full
@pytest.mark.parametrize("producer", ["full-compaction", "input"])
def test_totals_are_of_merged_rows_whatever_the_feed_shows(session: Session, producer: str) -> None:
    orders, totals = orders_of(session, "parquet"), totals_of(session, "parquet")
    orders.set_properties({"changelog-producer": producer})
    put_orders(orders, (1, "ann", 10, 10))
    orders.compact(full=True)
    put_orders(orders, (1, "ann", 20, 20), (2, "bob", 5, 10))
    for moment in range(3):
        add_up(orders, totals)
        assert summed(totals) == expected(orders), moment
        put_orders(orders, (1, "ann", 30 + moment, 30 + moment), (2, "bob", 99, 5))
        orders.compact(full=True)


@pytest.mark.full
def test_columns_of_the_source_change(session: Session) -> None:
    orders = orders_of(session, "parquet")
    session.sql(f"CREATE TABLE copy ({ORDERS}, kind STRING) TBLPROPERTIES ('rowkind.field' = 'kind')")
    copy = session.table("copy")
    put_orders(orders, (1, "ann", 10, 10), (2, "bob", 5, 10))
    cdc.follow(orders, copy)
    orders.add_column(Column("note", "string"))
    orders.widen_column("amount", "bigint")
    put_orders(orders, (1, "ann", 11, 20))
    with refused("COLUMN_NOT_FOUND", "'note'"):
        cdc.follow(orders, copy)
    cdc.follow(orders, copy, transform=lambda rows: rows.drop("note"))
    copy.add_column(Column("note", "string"))
    orders.upsert(pa.table({"id": pa.array([2], pa.int32()), "ts": [20], "note": ["gift"]}))
    orders.drop_column("customer")
    cdc.follow(orders, copy)
    found = {tuple(row) for row in copy.to_df().select("id", "customer", "amount", "note").collect()}
    assert found == {(1, "ann", 11, None), (2, None, None, "gift")}


@pytest.mark.full
@pytest.mark.parametrize("key", [("id",), None])
def test_a_table_of_others(session: Session, tmp_path: Path, tiered_fmt: str, key: tuple[str, ...] | None) -> None:
    where = tmp_path / "theirs"
    write_deltalake(where, pa.table({"id": [1, 2], "n": ["a", "b"]}))
    theirs = session.register("delta.default.theirs", "delta", where, {} if key else {"primary-key": "id"})
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.copy (id BIGINT PRIMARY KEY, n STRING, gone BOOLEAN) "
        "TBLPROPERTIES ('tombstone-key' = 'gone')"
    )
    copy = session.table(f"{tiered_fmt}.default.copy")

    def follow() -> set[tuple[Any, ...]]:
        cdc.follow(theirs, copy, key=key)
        return {tuple(row) for row in copy.to_df().select("id", "n").collect()}

    assert follow() == {(1, "a"), (2, "b")}
    DeltaTable(where).update(predicate="id = 2", new_values={"n": "c"})
    write_deltalake(where, pa.table({"id": [3], "n": ["d"]}), mode="append")
    DeltaTable(where).delete("id = 1")
    DeltaTable(where).optimize.compact()
    assert follow() == {(2, "c"), (3, "d")}
    write_deltalake(where, pa.table({"id": [3, 4], "n": ["e", "f"]}), mode="overwrite")
    assert follow() == {(3, "e"), (4, "f")}


@pytest.mark.full
def test_what_is_vacuumed_cannot_be_followed(session: Session, fmt: str) -> None:
    orders, totals = orders_of(session, fmt), totals_of(session, fmt)
    reached = put_orders(orders, (1, "ann", 10, 10)).version
    add_up(orders, totals)
    put_orders(orders, (1, "ann", 20, 20))
    orders.compact(full=True)
    put_orders(orders, (2, "bob", 5, 20))
    oldest = orders.vacuum("0 seconds").oldest_version
    with refused("INVALID_ARGUMENTS", f"no version {reached} ", f"oldest is {oldest}"):
        add_up(orders, totals)
    assert summed(totals) == {"ann": (10, 1)}
    totals.delete()
    cdc.follow(orders, totals, transform=by_customer, name="anew")
    assert summed(totals) == expected(orders) == {"ann": (20, 1), "bob": (5, 1)}


@pytest.mark.full
def test_another_table_takes_the_place_of_either(session: Session, fmt: str) -> None:
    """A replaced source is reported by an error. A replaced target is empty, so all rows are read again (L13)."""
    orders, totals = orders_of(session, fmt), totals_of(session, fmt)
    put_orders(orders, (1, "ann", 10, 10), (2, "bob", 5, 10))
    add_up(orders, totals)
    anew = TOTALS.replace("CREATE TABLE", "CREATE OR REPLACE TABLE").replace("kind STRING", "more INT, kind STRING")
    session.sql(anew.format(name=totals.name))
    assert summed(totals) == {}
    add_up(orders, totals)
    assert summed(totals) == expected(orders) == {"ann": (10, 1), "bob": (5, 1)}
    assert add_up(orders, totals).skipped
    put_orders(orders, (1, "ann", 20, 20))
    add_up(orders, totals)
    assert summed(totals) == expected(orders) == {"ann": (20, 1), "bob": (5, 1)}
    session.sql(f"CREATE OR REPLACE TABLE {orders.name} ({ORDERS})")
    put_orders(orders, (3, "cid", 7, 10))
    with refused("NOT_SUPPORTED", "made another table", f"'{orders.name}'", "another name"):
        add_up(orders, totals)
    totals.delete()
    cdc.follow(orders, totals, transform=by_customer, name="anew")
    assert summed(totals) == expected(orders) == {"cid": (7, 1)}


@pytest.mark.full
def test_followers_at_once_add_nothing_twice(session: Session) -> None:
    orders, totals = orders_of(session, "parquet"), totals_of(session, "parquet")
    put_orders(orders, (1, "ann", 10, 10))
    assert at_once([partial(add_up, orders, totals)] * 2) == []
    assert summed(totals) == {"ann": (10, 1)}
    reached = totals.splits().version

    def meanwhile(rows: DataFrame) -> DataFrame:
        """Let another follower commit while this one computes its rows."""
        if totals.splits().version == reached:
            put_orders(orders, (1, "ann", 30, 30))
            add_up(orders, totals)
        return by_customer(rows)

    put_orders(orders, (1, "ann", 20, 20))
    cdc.follow(orders, totals, transform=meanwhile)
    assert summed(totals) == expected(orders) == {"ann": (30, 1)}


def test_what_cannot_follow_is_refused(session: Session) -> None:
    orders, totals = orders_of(session, "parquet"), totals_of(session, "parquet")
    session.sql("CREATE TABLE plain (id INT, kind STRING)")
    plain = session.table("plain")
    put_orders(orders, (1, "ann", 10, 10))
    with refused("INVALID_ARGUMENTS", "itself"):
        cdc.follow(orders, orders)
    with refused("INVALID_ARGUMENTS", "primary key"):
        cdc.follow(orders, plain)
    with refused("INVALID_ARGUMENTS", "'parquet.default.plain'", "give key"):
        cdc.follow(plain, totals)
    with refused("INVALID_ARGUMENTS", "rowkind.field"):
        cdc.follow(totals, orders)
    with refused("INVALID_ARGUMENTS", "transform", "int"):
        cdc.follow(orders, totals, transform=lambda rows: rows.count())
    with refused("COLUMN_NOT_FOUND", "'id'"):
        cdc.follow(orders, totals)
    assert summed(totals) == {}
    totals.upsert(
        pa.table({"customer": ["x"], "amount": [0], "orders": [0], "kind": ["+I"]}),
        txn=(f"follow {orders.definition.id}", 99),
    )
    with refused("INVALID_ARGUMENTS", "no version 99", "another name"):
        add_up(orders, totals)
    cdc.follow(orders, totals, transform=by_customer, name="anew")
    assert summed(totals) == {"ann": (10, 1)}
