"""IN, ANY and ALL of a subquery where they may be NULL, compared with DuckDB (M1)."""

from __future__ import annotations

import random
from typing import Any, Final

import duckdb
import pytest
from sqlglot import transpile

from tests.support.refusals import refused
from trinity import Session
from trinity.syntax.parse import parse
from trinity.syntax.three_valued import Use, three_valued, three_valued_text

pytestmark = pytest.mark.inner

TABLES: Final = {
    "t": ("(n, x, z)", "(1, 1, 1), (2, 2, 1), (3, NULL, 1), (4, 1, NULL), (5, NULL, NULL), (6, 3, 2), (7, 2, 3)"),
    # has the same name as a column of t, and must not be confused with it
    "u": ("(y, w, x)", "(1, 1, 7), (2, NULL, 7), (NULL, 2, 7)"),
    "v": ("(y, w, x)", "(2, 2, 7), (3, 1, 7), (3, 3, 7)"),
    "e": ("(y, w, x)", "(CAST(NULL AS INT), CAST(NULL AS INT), CAST(NULL AS INT))"),
}
QUERIES: Final = (
    "SELECT y FROM u",
    "SELECT y FROM v",
    "SELECT y FROM e",
    "SELECT y FROM u WHERE w = t.z",
    "SELECT y FROM v WHERE w >= z",
    "SELECT max(y) FROM v WHERE w = t.z",
    "SELECT y FROM v ORDER BY y, w LIMIT 1",
    "SELECT y FROM e UNION ALL SELECT w FROM u",
    "WITH c AS (SELECT w AS y FROM u) SELECT y FROM c",
    "VALUES (2), (NULL)",
)


class Draw:
    """A generator of Boolean expressions over ``t``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def atom(self) -> str:
        query = self.random.choice(QUERIES)
        value = self.random.choice(("x", "t.x", "z", "x + 1", "2"))
        kind = self.random.randrange(8)
        if kind < 4:
            return f"{value} {self.random.choice(('IN', 'NOT IN'))} ({query})"
        if kind < 6:
            operator = self.random.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"{value} {operator} {self.random.choice(('ANY', 'ALL'))} ({query})"
        if kind == 6:
            return f"(x, z) {self.random.choice(('IN', 'NOT IN'))} (SELECT y, w FROM {self.random.choice('uve')})"
        return self.random.choice(("x = 1", "z IS NULL", "x < z", "EXISTS (SELECT y FROM u WHERE w = t.z)"))

    def expression(self, depth: int = 2) -> str:
        if depth == 0:
            return self.atom()
        a, b, c = (self.expression(depth - 1) if self.random.random() < 0.5 else self.atom() for _ in range(3))
        return self.random.choice((
            f"NOT ({a})", f"({a} AND {b})", f"({a} OR {b})", f"coalesce({a}, {b})", f"({a}) IS NULL",
            f"CASE WHEN {a} THEN {b} ELSE {c} END", f"(({a}) = ({b}))", f"coalesce(NOT ({a}), true)",
        ))  # fmt: skip


def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, (columns, rows) in TABLES.items():
        only = "WHERE y > 0" if name == "e" else ""
        connection.execute(
            f"CREATE TABLE {name} AS SELECT *, NULL::BOOLEAN AS b FROM (VALUES {rows}) _{columns} {only}"
        )
        if name != "t":
            connection.execute(f"ALTER TABLE {name} DROP b")
    return connection


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.full)])
def test_what_is_spelled_out_means_the_same(count: int) -> None:
    """DuckDB evaluates both forms."""
    connection, draw = duck(), Draw(1)
    changed = 0
    for _ in range(count):
        text = f"SELECT n, {draw.expression()} AS b FROM t ORDER BY n"
        found = three_valued(parse(text).tree, text)
        changed += found is not text
        [again] = transpile(found, read="spark", write="duckdb")
        again = again.replace("NULLS FIRST", "")
        assert connection.execute(again).fetchall() == connection.execute(text).fetchall(), text
    assert changed > count * 3 // 4


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("x IN (SELECT y FROM u)", Use.FILTER),
        ("x NOT IN (SELECT y FROM u) AND z = 1", Use.FILTER),
        ("z = 1 OR NOT (x IN (SELECT y FROM u))", Use.FILTER),
        ("x IN (SELECT y FROM u)", Use.JOIN),
        ("CASE WHEN x NOT IN (SELECT y FROM u) THEN 1 END", Use.VALUE),
        ("x IN (1, 2)", Use.VALUE),
        ("x IN ((SELECT 1), (SELECT 2))", Use.VALUE),
        ("x = ANY (ARRAY(1, 2))", Use.VALUE),
        ("EXISTS (SELECT 1 FROM u WHERE y NOT IN (SELECT y FROM v))", Use.VALUE),
    ],
)
def test_what_spark_knows_is_left_alone(text: str, use: Use) -> None:
    assert three_valued_text(text, use) is text


@pytest.mark.parametrize(
    "beside",
    [
        "date_format(z, 'y')",  # not 'yyyy'
        "CAST(z AS TIME)",
        "to_unix_timestamp(z, 'D') + my_function(z)",
        "TRANSFORM(z, a -> a + 1)",
        "(WITH c AS (SELECT 1 AS y) SELECT y FROM c) + (WITH c AS (SELECT 2 AS y) SELECT y FROM c)",
        "from_json(z, 'b INT').b",
        "any_value(z) IGNORE NULLS",
        "trunc(z, 'w') RLIKE '\\\\d'",
    ],
)
def test_what_stands_beside_is_written_as_it_was(beside: str) -> None:
    found = three_valued_text(f"coalesce(x IN (SELECT y FROM u), {beside} = 1)", Use.VALUE)
    assert found.startswith("coalesce((CASE WHEN x IN (SELECT y FROM u) THEN ")
    assert found.endswith(f", {beside} = 1)")


@pytest.fixture
def sql(session: Session, tiered_fmt: str) -> Session:
    session.sql(f"USE {tiered_fmt}.default")
    for name, (columns, rows) in TABLES.items():
        first, *others = columns.strip("()").split(", ")
        kinds = ", ".join(f"{c} INT" for c in (first, *others))
        extra = ", b BOOLEAN, PRIMARY KEY (n)" if name == "t" else ""
        session.sql(f"CREATE TABLE {name} ({kinds}{extra})")
        if name != "e":
            session.sql(f"INSERT INTO {name} {columns} VALUES {rows}")
    return session


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found), key=repr)


def check_queries(sql: Session, draw: Draw, count: int) -> None:
    connection = duck()
    values = ", ".join(f"{draw.expression()} AS c{i}" for i in range(count))
    text = f"SELECT n, {values} FROM t"
    assert rows(sql.sql(text).collect()) == rows(connection.execute(text).fetchall()), text
    text = " UNION ALL ".join(f"SELECT {i} AS q, n FROM t WHERE {draw.expression()}" for i in range(count))
    assert rows(sql.sql(text).collect()) == rows(connection.execute(text).fetchall()), text


def check_changes(sql: Session, draw: Draw) -> None:
    connection = duck()
    merge = f"""MERGE INTO t USING (SELECT n + 1 AS m FROM t) AS s ON t.n = s.m AND {draw.expression(1)}
        WHEN MATCHED AND {draw.expression(1)} THEN UPDATE SET b = {draw.expression(1)}
        WHEN NOT MATCHED THEN INSERT (n, x) VALUES (100 + s.m, s.m)"""
    update = f"UPDATE t SET b = {draw.expression()} WHERE {draw.expression(1)}"
    for text in (update, merge, f"DELETE FROM t WHERE {draw.expression()}"):
        connection.execute(text)
        sql.sql(text)
        found = rows(sql.sql("SELECT n, x, z, b FROM t").collect())
        assert found == rows(connection.execute("SELECT n, x, z, b FROM t").fetchall()), text


@pytest.mark.full
def test_values_of_predicates(sql: Session) -> None:
    connection = duck()
    for text in (
        "SELECT n FROM t WHERE coalesce(x NOT IN (SELECT y FROM u), true)",
        "SELECT n FROM t WHERE (x IN (SELECT y FROM u WHERE w = t.z)) IS NULL",
        "SELECT t.n, v.y FROM t LEFT JOIN v ON t.x NOT IN (SELECT y FROM u)",
        "SELECT count(*) AS n FROM t HAVING (count(*) IN (SELECT y FROM u)) IS NULL",
    ):
        assert rows(sql.sql(text).collect()) == rows(connection.execute(text).fetchall()), text
    assert sql.sql("SELECT x IN (SELECT y FROM u) FROM t").columns == ["x IN (SELECT y FROM u)"]
    check_queries(sql, Draw(2), 3)
    check_changes(sql, Draw(3))
    sql.sql("INSERT INTO t VALUES (50, NULL, 1, NULL)")
    assert sql.table("t").delete("n = 50 AND (x IN (SELECT 1)) IS NULL").rows == 1
    with refused("NOT_SUPPORTED", "rand"):
        sql.sql("SELECT x IN (SELECT rand()) FROM t")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 22))
def test_drawn_predicates(sql: Session, seed: int) -> None:
    draw = Draw(seed)
    check_queries(sql, draw, 6)
    check_changes(sql, draw)
