"""Basic calls: schema, version, count, rows of Python objects, timedeltas, closing a session."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import trinity
from tests.support.refusals import refused
from trinity import Column, Session, Table

COLUMNS = [
    Column("id", "int", nullable=False),
    Column("ts", "timestamp"),
    Column("price", "decimal(9,2)"),
    Column("tags", "array<string>"),
    Column("more", "map<string, timestamp>"),
]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@dataclass
class Order:
    """A row as an application declares it."""

    id: int
    price: Decimal | None = None


@pytest.fixture
def opened(warehouse: Path) -> Session:
    return trinity.connect(warehouse)


@pytest.fixture
def orders(opened: Session, fmt: str) -> Table:
    options = {"watermark-key": "ts"}
    return opened.create_table(f"{fmt}.default.orders", COLUMNS, primary_key=["id"], properties=options)


def put_keys(table: Table, *keys: int, ts: dt.datetime = NOON) -> None:
    table.upsert([{"id": key, "ts": ts} for key in keys])


def shown(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def test_a_table_says_what_it_is(orders: Table) -> None:
    assert orders.columns == ["id", "ts", "price", "tags", "more"]
    assert orders.schema == orders.to_arrow().schema
    before = orders.version
    put_keys(orders, 1, 2)
    assert orders.version == before + 1
    assert orders.head(1).num_rows == 1
    assert orders.exists
    orders.session.drop_table(str(orders.name))
    assert not orders.exists


def test_rows_are_counted_as_they_are_read(orders: Table) -> None:
    assert orders.count() == 0
    put_keys(orders, 1, 2, 3)
    first = orders.version
    put_keys(orders, 2, 4)
    put_keys(orders, 1, ts=NOON - dt.timedelta(days=1))
    assert orders.count() == orders.to_arrow().num_rows == 4
    assert orders.count(version=first) == 3


def test_rows_of_python(orders: Table) -> None:
    orders.upsert({"id": 1, "ts": NOON, "price": Decimal("1.50"), "tags": ["a"], "more": {"seen": NOON}})
    orders.upsert([Order(2, Decimal("2")), Order(3)])
    orders.upsert([{"ID": 4}, {"id": 5, "tags": []}])
    orders.upsert(pl.LazyFrame({"id": [6], "tags": [["b", None]]}))
    orders.upsert([])
    nothing = {"ts": None, "price": None, "tags": None, "more": None}
    assert shown(orders) == [
        {"id": 1, "ts": NOON, "price": Decimal("1.50"), "tags": ["a"], "more": [("seen", NOON)]},
        {"id": 2, **nothing, "price": Decimal("2.00")},
        {"id": 3, **nothing},
        {"id": 4, **nothing},
        {"id": 5, **nothing, "tags": []},
        {"id": 6, **nothing, "tags": ["b", None]},
    ]


@pytest.mark.parametrize("fmt", ["parquet"])
def test_times_without_a_zone_are_the_session_s(warehouse: Path, fmt: str) -> None:
    with trinity.connect(warehouse, spark_settings={"spark.sql.session.timeZone": "America/New_York"}) as session:
        table = session.create_table(f"{fmt}.default.orders", COLUMNS, primary_key=["id"])
        plain = NOON.replace(tzinfo=None)
        table.upsert([{"id": 1, "ts": plain, "more": {"seen": NOON}}, {"id": 2, "ts": plain}])
        assert {row["ts"] for row in shown(table)} == {NOON + dt.timedelta(hours=5)}
        assert shown(table)[0]["more"] == [("seen", NOON)]
        with refused("TYPE_MISMATCH", "ts", "row 1"):
            table.upsert([{"id": 1, "ts": plain}, {"id": 2, "ts": NOON}])


@pytest.mark.parametrize("fmt", ["parquet"])
@pytest.mark.parametrize(
    ("rows", "code", "named"),
    [
        ([{"id": 1}, {"id": "x"}], "TYPE_MISMATCH", ("id", "row 1", "'x'", "int")),
        ([{"id": 1, "price": 1.5}], "TYPE_MISMATCH", ("price", "1.5")),
        ([{"id": 2**40}], "TYPE_MISMATCH", ("id", str(2**40))),
        ([{"id": 1, "prise": 2}], "COLUMN_NOT_FOUND", ("prise", "price")),
        ([{"id": 1}, 2], "INVALID_ARGUMENTS", ("Row 1", "dict")),
        ([{1: 1}], "INVALID_ARGUMENTS", ("Row 0",)),
        ("id", "INVALID_ARGUMENTS", ("str", "list of dicts")),
    ],
)
def test_rows_of_python_that_do_not_fit(orders: Table, rows: Any, code: str, named: tuple[str, ...]) -> None:
    before = orders.version
    with refused(code, *named):
        orders.upsert(rows)
    assert orders.version == before


def test_a_table_is_emptied_once(orders: Table) -> None:
    put_keys(orders, 1, 2)
    assert orders.truncate(txn=("daily", 1)).rows == 2
    assert orders.count() == 0
    put_keys(orders, 3)
    assert orders.truncate(txn=("daily", 1)).skipped
    assert orders.count() == 1


@pytest.mark.parametrize("fmt", ["parquet"])
def test_a_retention_is_a_text_or_a_timedelta(orders: Table) -> None:
    put_keys(orders, 1)
    assert orders.vacuum(dt.timedelta(hours=1)).files == 0
    with refused("INVALID_ARGUMENTS", "retain", "text", "'7 days' or timedelta(days=7)"):
        orders.vacuum(168)  # type: ignore[arg-type]
    with refused("INVALID_ARGUMENTS", "-1 day", "'7 days'"):
        orders.vacuum(dt.timedelta(days=-1))


def test_names_of_a_session(orders: Table, fmt: str) -> None:
    session = orders.session
    if fmt != "delta":
        session.create_schema(f"{fmt}.`odd name`")
        session.create_schema(f"{fmt}.`Odd Name`", if_not_exists=True)
        with refused("SCHEMA_ALREADY_EXISTS", "odd name"):
            session.create_schema(f"{fmt}.`odd name`")
        assert session.schemas(fmt) == ["default", "odd name"]
        session.create_table(f"{fmt}.`odd name`.t", COLUMNS)
        assert session.tables(schema=f"{fmt}.`odd name`") == [f"{fmt}.odd name.t"]
        with refused("SCHEMA_NOT_EMPTY", "odd name"):
            session.drop_schema(f"{fmt}.`odd name`")
        session.drop_schema(f"{fmt}.`odd name`", cascade=True)
        session.drop_schema(f"{fmt}.`odd name`", if_exists=True)
        with refused("SCHEMA_NOT_FOUND", "odd name"):
            session.drop_schema(f"{fmt}.`odd name`")
    session.use(fmt, "default")
    assert session.tables() == session.tables("ORD*") == session.tables("?rders") == [f"{fmt}.default.orders"]
    assert session.tables("x*") == []
    assert session.table_exists("orders")
    assert not session.table_exists("nothing")
    assert not session.table_exists(f"{fmt}.nowhere.orders")
    session.drop_table("nothing", if_exists=True)
    session.drop_table(f"{fmt}.nowhere.orders", if_exists=True)
    with refused("TABLE_NOT_FOUND", "nothing"):
        session.drop_table("nothing")
    with refused("INVALID_ARGUMENTS", "catalog.schema"):
        session.tables(schema="a.b.c")
    with refused("INVALID_ARGUMENTS", "not both"):
        session.tables(schema=fmt, all_schemas=True)
    with refused("CATALOG_NOT_FOUND", "nowhere"):
        session.table_exists("nowhere.default.orders")


def test_a_closed_session_is_closed(orders: Table) -> None:
    session = orders.session
    with session:
        put_keys(orders, 1)
    for call in (orders.to_arrow, orders.count, lambda: put_keys(orders, 2), lambda: session.table(str(orders.name))):
        with refused("INVALID_ARGUMENTS", "closed", "trinity.connect()"):
            call()
    session.close()


@pytest.mark.parametrize("fmt", ["parquet"])
def test_what_cannot_be_pickled_says_what_to_do(orders: Table) -> None:
    with refused("NOT_SUPPORTED", "session.table('parquet.default.orders')"):
        pickle.dumps(orders)
    with refused("NOT_SUPPORTED", "trinity.connect()"):
        pickle.dumps(orders.session)
