"""The positions of a statement's parameters: any spelling, with or without blanks, in both dialects."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from trinity import dbapi
from trinity.journal.binding import bind
from trinity.syntax.as_written import parsed
from trinity.syntax.parameters import number, with_literals

pytestmark = pytest.mark.inner

SPELLINGS = [
    ("INSERT INTO t VALUES (?,?,?,?)", 4),
    ("INSERT INTO t(a,b)VALUES(?,?),(?,?)", 4),
    ("SELECT ?||?", 2),
    ("SELECT(?)||(?)", 2),
    ("SELECT?,?", 2),
    ("SELECT ?::int,?::text||?", 3),
    ("SELECT ?|?,?&?", 4),
    ("SELECT a-?,-?,a*(?)FROM t WHERE b=?AND c IN(?,?)", 6),
    ("SELECT CASE WHEN?THEN?ELSE?END", 3),
    ("SELECT '?',\"?\",?/*?*/,?--?\n,?", 3),
]


@pytest.mark.parametrize("dialect", ["postgres", "spark"])
@pytest.mark.parametrize(("text", "count"), SPELLINGS)
def test_every_spelling_parses(text: str, count: int, dialect: str) -> None:
    numbered = number(text, dialect)
    assert numbered.count == count
    found = bind(parsed(numbered.text, dialect), dialect)
    assert sorted(found.parameters) == list(range(count))


_OPERATORS = ["||", "+", "-", "*", "=", "<>", "<=", " AND ", " OR ", "|", "&", ","]
_OPERANDS = st.sampled_from(
    ["?", "?", "(?)", "?::int", "-?", "a", "'?'", "f(?,?)", "(a)", "1", "CASE WHEN ? THEN ? END"]
)


@settings(max_examples=100)
@given(st.lists(st.tuples(_OPERANDS, st.sampled_from(_OPERATORS)), min_size=1, max_size=8))
@pytest.mark.parametrize("dialect", ["postgres", "spark"])
def test_blanks_change_nothing(dialect: str, parts: list[tuple[str, str]]) -> None:
    last = parts.pop()[0]
    compact = "SELECT " + "".join(o + s for o, s in parts) + last
    wide = "SELECT " + "".join(f"{o} {s} " for o, s in parts) + last
    trees = [parsed(number(text.replace("--", "- -"), dialect).text, dialect) for text in (compact, wide)]
    assert trees[0] == trees[1]
    # $1, $2, ... in the order of the text
    numbers = [int(p.this.name) for p in trees[0].find_all(exp.Parameter, bfs=False)]
    assert numbers == list(range(1, compact.replace("'?'", "").count("?") + 1))


def test_operators_with_a_question_mark_stay_postgresqls() -> None:
    for text, sent in [
        ("SELECT a ?| ?::text[]", "SELECT a ?| $1 ::text[]"),
        ("SELECT a?&b, a @? ?", "SELECT a?&b, a @? $1"),
        ("SELECT (a)?|b", "SELECT (a)?|b"),
        ("SELECT ? ?| ?", "SELECT $1 ?| $2"),
    ]:
        assert number(text, "postgres").text == sent


def test_literals_keep_apart_from_their_neighbours() -> None:
    assert with_literals("SELECT?AS a,?AS b", [1, "x"]) == "SELECT 1 AS a,'x' AS b"
    assert with_literals("SELECT 'a'?", ["b"]) == "SELECT 'a' 'b'"


VALUES = [(1, "a", None, 2.5), (2, "it's", "?", -1.0)]


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_a_row_without_blanks_on_postgresql(hr: dbapi.Connection) -> None:
    hr.execute("CREATE TABLE hr.plain (deptno INT, name VARCHAR(10))")
    for table in ("hr.depts", "hr.plain"):
        hr.execute(f"INSERT INTO {table} VALUES (?,?),(?,?)", [1, "a", 2, "b"])
        found = hr.execute(f"SELECT ?||name,?::int FROM {table} WHERE deptno=?AND name=?", ["x", 5, 2, "b"])
        assert found.fetchall() == [("xb", 5)]
        assert hr.execute(f"EXPLAIN SELECT * FROM {table} WHERE deptno IN(?,?)", [1, 2]).fetchall()


def test_a_row_without_blanks_on_trinity_tables(tmp_path: Path, spark: object) -> None:
    with dbapi.connect(warehouse=tmp_path) as connection:
        connection.execute("CREATE TABLE t (a INT, b STRING, c STRING, d DOUBLE)")
        for row in VALUES:
            connection.execute("INSERT INTO t VALUES (?,?,?,?)", row)
        assert connection.execute("SELECT * FROM t WHERE a IN(?,?)ORDER BY a", [1, 2]).fetchall() == VALUES
        assert connection.execute("SELECT?AS x,?||?", [1, "a", "b"]).fetchall() == [(1, "ab")]
