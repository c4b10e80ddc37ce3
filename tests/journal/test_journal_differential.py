"""Generated statement sequences: a journalled table and an ordinary one give equal rows, counts and error classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trinity import dbapi

Outcome = tuple[str, int, list[tuple[Any, ...]]]

KEYS = st.integers(0, 5)
NUMBERS = st.sampled_from(["NULL", "0", "1", "7", "-3", "60", "DEFAULT"])
TEXTS = st.sampled_from(["'a'", "'b'", "''", "NULL", "'too long'", "DEFAULT"])
GOOD_NUMBERS = st.sampled_from(["NULL", "0", "1", "7", "-3", "DEFAULT"])
GOOD_TEXTS = st.sampled_from(["'a'", "'b'", "NULL", "DEFAULT"])
CONDITIONS = st.sampled_from([
    "true", "k = 1", "k > 2", "a IS NULL", "b = 'a'", "a > c", "k IN (SELECT k FROM src.u)", "k IN (0, 3)", "NOT a > 0",
    "EXISTS (SELECT 1 FROM {t} o WHERE o.a = {t}.c AND o.k <> {t}.k)", "a = (SELECT max(a) FROM {t})", "b LIKE '%a'",
])  # fmt: skip
SETS = st.sampled_from([
    "a = a + 1", "a = c, c = a", "b = b || 'x'", "b = DEFAULT, a = DEFAULT", "a = 60, c = c - 1", "b = NULL",
    "(a, c) = (c, 5)", "c = (SELECT count(*) FROM {t})", "b = 'ab'", "(a, c) = (SELECT max(w), 1 FROM src.u)",
])  # fmt: skip
QUERIES = st.sampled_from([
    "SELECT * FROM {t}", "SELECT count(*), sum(a), min(b) FROM {t}",
    "SELECT x.k, y.k FROM {t} x JOIN {t} y ON x.a = y.c",
    "SELECT b, count(*) FROM {t} GROUP BY b HAVING count(*) > 1", "SELECT k FROM {t} EXCEPT SELECT k FROM src.u",
    "WITH s AS (SELECT * FROM {t} WHERE a > 0) SELECT u.w, s.b FROM src.u LEFT JOIN s USING (k)",
    "SELECT k, row_number() OVER (ORDER BY k DESC) FROM {t}", "SELECT DISTINCT a FROM {t} NATURAL JOIN src.u",
])  # fmt: skip
JOINED = st.sampled_from(["", " RETURNING *", " RETURNING u.*, a + w", " RETURNING {t}.b, u.k"])
RETURNING = st.sampled_from(["", " RETURNING *", " RETURNING k, a + 1 AS n, b"])


@st.composite
def inserts(draw: st.DrawFn) -> str:
    # a statement that breaks two rules in two rows may report either; so several rows break one rule at most
    several = st.lists(st.tuples(KEYS, GOOD_NUMBERS, GOOD_TEXTS), min_size=2, max_size=3)
    rows = draw(st.one_of(several, st.tuples(KEYS, NUMBERS, TEXTS).map(lambda row: [row])))
    values = ", ".join(f"({k}, {a}, {b})" for k, a, b in rows)
    return f"INSERT INTO {{t}} (k, a, b) VALUES {values}{draw(RETURNING)}"


@st.composite
def changes(draw: st.DrawFn) -> str:
    where, back = draw(CONDITIONS), draw(RETURNING)
    return draw(
        st.sampled_from([
            f"UPDATE {{t}} SET {draw(SETS)} WHERE {where}{back}",
            f"DELETE FROM {{t}} WHERE {where}{back}",
            f"UPDATE {{t}} SET a = u.w FROM src.u WHERE {{t}}.k = u.k AND u.k <> {draw(KEYS)}{draw(JOINED)}",
            f"DELETE FROM {{t}} USING src.u WHERE {{t}}.k = u.k AND u.w > {draw(KEYS)}{draw(JOINED)}",
            f"INSERT INTO {{t}} SELECT k + {draw(KEYS)}, a, b, c FROM {{t}} WHERE {where}{back}",
            f"INSERT INTO {{t}} (k, b) SELECT k, 'n' FROM src.u WHERE k > {draw(KEYS)}{back}",
            f"WITH gone AS (DELETE FROM {{t}} WHERE {where} RETURNING k, b) SELECT count(*), max(b) FROM gone",
            f"WITH s AS (SELECT k FROM src.u) UPDATE {{t}} SET b = 'w' WHERE k IN (SELECT k FROM s){back}",
        ])
    )  # fmt: skip


@st.composite
def merges(draw: st.DrawFn) -> str:
    source = draw(
        st.sampled_from(["src.u", "(SELECT k, max(w) AS w FROM src.u GROUP BY k)", "(VALUES (1, 2), (1, 3))"])
    )
    clauses = [
        f"WHEN MATCHED AND s.w > {draw(KEYS)} THEN DELETE",
        draw(st.sampled_from(["WHEN MATCHED THEN UPDATE SET a = s.w, b = 'm'", "WHEN MATCHED THEN DO NOTHING"])),
        draw(
            st.sampled_from(
                ["", "WHEN NOT MATCHED THEN INSERT (k, a) VALUES (s.k, s.w)", "WHEN NOT MATCHED THEN DO NOTHING"]
            )
        ),
    ]
    taken = " ".join(clauses[draw(st.integers(0, 1)) :])
    also = draw(st.sampled_from(["", " AND t.a > 0"]))
    return f"MERGE INTO {{t}} t USING {source} AS s(k, w) ON t.k = s.k{also} {taken}"


@st.composite
def upserts(draw: st.DrawFn) -> str:
    # values that pass the CHECK: PostgreSQL checks a row that conflicts and is never inserted, a journal does not
    rows = draw(st.lists(st.tuples(KEYS, st.sampled_from(["1", "NULL", "7"])), min_size=1, max_size=3))
    action = draw(
        st.sampled_from([
            "DO NOTHING", "(k) DO NOTHING", "(k) DO UPDATE SET a = excluded.a, b = t.b || 'u'",
            "(k) DO UPDATE SET c = t.c + excluded.a WHERE t.a IS NOT NULL",
        ])
    )  # fmt: skip
    values = ", ".join(f"({k}, {a})" for k, a in rows)
    return f"INSERT INTO {{t}} AS t (k, a) VALUES {values} ON CONFLICT {action}{draw(RETURNING)}"


MOVES = st.builds(
    "UPDATE {{t}} SET k = k + {}, a = {} WHERE {}{}".format, st.integers(-1, 1), GOOD_NUMBERS, CONDITIONS, RETURNING
)
ENDS = st.sampled_from(["COMMIT", "ROLLBACK"])


def histories(extra: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.one_of(inserts(), changes(), merges(), extra, QUERIES, ENDS), min_size=4, max_size=14)


class Pair:
    """A journalled and an ordinary table, each on a connection of its own."""

    def __init__(self, journalled: dbapi.Connection, ordinary: dbapi.Connection) -> None:
        self.sides = [(journalled, "hr.t"), (ordinary, "ord.t")]

    def empty(self) -> None:
        for connection, name in self.sides:
            connection.rollback()
            connection.execute(f"DELETE FROM {name}")
            connection.execute(f"INSERT INTO {name} VALUES (1, 1, 'a', 0), (2, NULL, 'b', 1)")
            connection.commit()

    def agree(self, history: list[str]) -> None:
        """Run a history on both tables. The message of a failure has the history to repeat it."""
        self.empty()
        for i, text in enumerate([*history, "SELECT * FROM {t}"]):
            journalled, ordinary = (_run(c, text.replace("{t}", name)) for c, name in self.sides)
            assert journalled == ordinary, f"step {i} differs; history = {history!r}"


def _run(connection: dbapi.Connection, text: str) -> Outcome:
    if text in ("COMMIT", "ROLLBACK"):
        connection.commit() if text == "COMMIT" else connection.rollback()
        return text, 0, []
    connection.execute("SAVEPOINT s")
    try:
        cursor = connection.execute(text)
        rows = sorted(cursor.fetchall(), key=repr) if cursor.description is not None else []
        return "", cursor.rowcount, rows
    except dbapi.Error as error:
        connection.execute("ROLLBACK TO SAVEPOINT s")
        return f"{type(error).__name__} {error.sqlstate}", -1, []


@pytest.fixture
def pair(
    postgres: psycopg.Connection[Any], model: dict[str, Any], connect: Callable[..., dbapi.Connection], deferred: bool
) -> Pair:
    """Return a pair. An ordinary key is checked row by row unless it is deferrable, a journal's at the end."""
    columns = "a INT DEFAULT 5 CHECK (a < 50), b VARCHAR(5) DEFAULT 'd' CHECK (b <> ''), c INT DEFAULT 2"
    postgres.execute("DROP SCHEMA IF EXISTS ord, src CASCADE; CREATE SCHEMA ord; CREATE SCHEMA src")
    postgres.execute(f"CREATE TABLE ord.t (k INT, {columns}, PRIMARY KEY (k) {'DEFERRABLE' if deferred else ''})")
    postgres.execute("CREATE TABLE src.u (k INT, w INT)")
    postgres.execute("INSERT INTO src.u VALUES (0, 10), (1, 1), (3, 4), (5, NULL)")
    model["schemas"][0]["operand"]["journalTables"] = {"t": "k"}
    journalled = connect()
    journalled.execute(f"CREATE TABLE hr.t (k INT PRIMARY KEY, {columns})")
    journalled.commit()
    return Pair(journalled, connect())


def check(pair: Pair, extra: st.SearchStrategy[str], examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(histories(extra))
    def agree(history: list[str]) -> None:
        pair.agree(history)

    agree()


@pytest.mark.parametrize("examples", [8, pytest.param(1000, marks=pytest.mark.full)])
@pytest.mark.parametrize("deferred", [True])
def test_histories_whose_keys_move(pair: Pair, examples: int) -> None:
    check(pair, MOVES, examples)


@pytest.mark.parametrize("examples", [8, pytest.param(1000, marks=pytest.mark.full)])
@pytest.mark.parametrize("deferred", [False])
def test_histories_with_on_conflict(pair: Pair, examples: int) -> None:
    check(pair, upserts(), examples)
