"""CHECK constraints, NOT NULL and DEFAULT without Spark: what is stored, what is refused, and what needs Spark."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest

from tests.support.refusals import refused
from trinity import Column, Session, Table

COLUMNS = [
    Column("id", "int"),
    Column("ts", "bigint", default="1"),
    Column("gone", "boolean"),
    Column("quantity", "int"),
    Column("code", "char(3)", default="'ab'"),
    Column("price", "decimal(5,2)", default="CAST('1.50' AS DECIMAL(5,2))"),
]
CHECKS = {"some": "quantity > 0", "coded": "code IN ('ab', 'cd')"}


@pytest.fixture
def stock(local: Session, local_fmt: str) -> Table:
    return local.create_table(
        f"{local_fmt}.default.stock",
        COLUMNS,
        primary_key=["id"],
        properties={"watermark-key": "ts", "tombstone-key": "gone"},
        checks=CHECKS,
    )


def shown(table: Table) -> list[tuple[Any, ...]]:
    rows = table.to_arrow(columns=["id", "quantity", "code", "price"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_rows_meet_their_constraints(stock: Table) -> None:
    stock.upsert([{"id": 1, "quantity": 5}, {"id": 2}])
    stock.upsert({"id": 3, "quantity": 1, "code": "cd "})
    before = stock.version
    with refused("CONSTRAINT_VIOLATION", "'some'", "(quantity > 0)", "stock", "quantity = -1"):
        stock.upsert([{"id": 4, "quantity": 1}, {"id": 5, "quantity": -1}])
    with refused("CONSTRAINT_VIOLATION", "'coded'", "code = x"):
        stock.upsert({"id": 4, "code": "x"})
    assert stock.version == before
    price = Decimal("1.50")
    assert shown(stock) == [(1, 5, "ab ", price), (2, None, "ab ", price), (3, 1, "cd ", price)]


@pytest.mark.parametrize("condition", ["length(trim(name)) > 0", "(id / 2 >= 0.5) AND -- halves\n upper(name)<>'X'"])
def test_a_condition_in_sql_is_kept_as_it_is_written(local: Session, local_fmt: str, condition: str) -> None:
    name = f"{local_fmt}.default.named"
    local.sql(f"CREATE TABLE {name} (id INT, name STRING, CONSTRAINT c CHECK ({condition} -- the end\n))")
    local.sql(f"ALTER TABLE {name} ADD CONSTRAINT d CHECK ({condition})")
    assert [check.expression for check in local.table(name).definition.checks] == [condition, condition]
    local.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    with refused("CONSTRAINT_VIOLATION", "'c'"):
        local.sql(f"INSERT INTO {name} VALUES (0, '')")


@pytest.mark.parametrize("text", ["1 ;", "1; 2", ";"])
def test_an_expression_has_no_semicolon(local: Session, local_fmt: str, text: str) -> None:
    name = f"{local_fmt}.default.ended"
    with refused("SYNTAX_ERROR", "ended", "no expression"):
        local.create_table(name, [Column("id", "int", default=text)])
    with refused("SYNTAX_ERROR", "ended", "no expression"):
        local.create_table(name, [Column("id", "int")], checks={"c": f"id > {text}"})
    table = local.create_table(name, [Column("id", "int")])
    with refused("SYNTAX_ERROR"):
        table.to_arrow(where=f"id = {text}")


def test_a_row_that_deletes_its_key_is_not_checked(stock: Table) -> None:
    stock.upsert([{"id": 1, "quantity": 5}, {"id": 2, "quantity": 5}])
    stock.upsert({"id": 1, "ts": 2, "gone": True, "quantity": -7})
    assert [row[0] for row in shown(stock)] == [2]
    with refused("CONSTRAINT_VIOLATION", "'some'"):
        stock.upsert({"id": 1, "ts": 3, "gone": False, "quantity": -7})


@pytest.mark.parametrize("local_fmt", ["parquet"])
def test_what_is_no_condition_is_refused(local: Session, local_fmt: str) -> None:
    for text, code in (
        ("quantity", "TYPE_MISMATCH"),
        ("nothing > 1", "COLUMN_NOT_FOUND"),
        ("quantity >", "SYNTAX_ERROR"),
        ("sha(code) = 'x'", "NOT_SUPPORTED"),
    ):
        with refused(code):
            local.create_table(f"{local_fmt}.default.t", COLUMNS, checks={"c": text})
    assert local.tables(schema=f"{local_fmt}.default") == []


def test_numbers_become_those_of_their_column(local: Session, local_fmt: str) -> None:
    name = f"{local_fmt}.default.d"
    local.sql(
        f"CREATE TABLE {name} (k INT, a DECIMAL(9,2) DEFAULT 1.5, b BIGINT DEFAULT 2, c DOUBLE DEFAULT 0.1, "
        "f FLOAT DEFAULT 0.1, PRIMARY KEY (k))"
    )
    local.sql(f"INSERT INTO {name} (k) VALUES (1)")
    local.sql(f"INSERT INTO {name} VALUES (2, DEFAULT, 3, DEFAULT, 16777217.0D), (3, 1, DEFAULT, 1, 1e300)")
    found = local.sql(f"SELECT * FROM {name} ORDER BY k").fetchall()
    tenth = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert found == [
        (1, Decimal("1.50"), 2, 0.1, tenth),
        (2, Decimal("1.50"), 3, 0.1, 16777216.0),
        (3, Decimal("1.00"), 2, 1.0, float("inf")),
    ]
