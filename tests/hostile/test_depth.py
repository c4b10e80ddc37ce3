"""Deeply nested and very long expressions work, or are refused by name: no RecursionError, no StackOverflowError."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.journal.conftest import connect, hr, model, postgres  # noqa: F401 - fixtures
from trinity import Column, Session, Table, TrinityError, dbapi
from trinity.definition.define import define_table
from trinity.engine.reading.files import prune
from trinity.engine.reading.predicate import Predicate
from trinity.names import TableName
from trinity.predicates.conditions import Names, condition_facts
from trinity.syntax.parse import expression_tree

pytestmark = pytest.mark.inner

NESTED: Final[dict[str, Callable[[int, str], str]]] = {
    "parentheses": lambda n, c: "(" * n + c + ")" * n,
    "functions": lambda n, c: "abs(" * n + c + ")" * n,
    "CASE": lambda n, c: f"CASE WHEN {c} = 1 THEN " * n + c + " ELSE 2 END" * n,
    "CASE in ELSE": lambda n, c: f"CASE WHEN {c} = 7 THEN 1 ELSE " * n + c + " END" * n,
    "minus": lambda n, c: "- " * n + c,
}
CHAINED: Final[dict[str, Callable[[int, str], str]]] = {
    "AND": lambda n, c: " AND ".join(f"{c} <> {i}" for i in range(10, n + 10)),
    "OR": lambda n, c: " OR ".join(f"{c} = {i}" for i in range(1, n + 1)),
    "||": lambda n, c: " || ".join([f"cast({c} AS char(1))"] * n) + " <> ''",
    "+": lambda n, c: " + ".join([c] * n) + " > 0",
}
LEVELS, TERMS = 500, 10_000
BEYOND: Final = {"minus": 20_000}
"""Kind of nesting -> levels that exceed any stack, where 3000 do not."""


def outcome(work: Callable[[], Any]) -> str:
    """Return ``done``, or the code of the refusal of too deep a nesting; raise any other error."""
    try:
        work()
    except TrinityError as error:
        assert error.code == "NOT_SUPPORTED", error  # noqa: PT017
        assert "nested too deeply" in error.message or "too complex" in error.message or "stack" in error.message  # noqa: PT017
        return error.code
    return "done"


@pytest.fixture
def versions() -> str:
    return "BIGINT"


@pytest.fixture
def depts(hr: dbapi.Connection) -> Iterator[dbapi.Connection]:  # noqa: F811 - the fixture
    hr.execute("INSERT INTO hr.depts (deptno, name) VALUES (1, 'one'), (2, 'two')")
    hr.commit()
    before = sys.getrecursionlimit()
    yield hr
    assert sys.getrecursionlimit() == before


def tiered(kinds: Iterable[str], short: Container[str]) -> list[Any]:
    """Return each kind as a test parameter; those not named in ``short`` run in the long tier."""
    return [kind if kind in short else pytest.param(kind, marks=pytest.mark.full) for kind in kinds]


@pytest.mark.parametrize("kind", tiered(NESTED, ("parentheses", "CASE")))
def test_nested_expressions_on_postgresql(depts: dbapi.Connection, kind: str) -> None:
    text = NESTED[kind](LEVELS, "deptno")
    for statement in (
        f"SELECT {text} FROM hr.depts",
        f"UPDATE hr.depts SET name = 'x' WHERE {text} = 1",
        f"INSERT INTO hr.depts SELECT {text} + 10, 'y' FROM hr.depts",
    ):
        assert outcome(lambda: depts.execute(statement)) == "done"  # noqa: B023
        depts.rollback()
    beyond = NESTED[kind](BEYOND.get(kind, 3000), "deptno")
    assert outcome(lambda: depts.execute(f"UPDATE hr.depts SET name = 'x' WHERE {beyond} = 1")) == "NOT_SUPPORTED"


@pytest.mark.parametrize("kind", tiered(CHAINED, ("||",)))
def test_long_chains_on_postgresql(depts: dbapi.Connection, kind: str) -> None:
    text = CHAINED[kind](TERMS if kind in ("AND", "OR") else TERMS // 10, "deptno")
    done = depts.execute(f"UPDATE hr.depts SET name = 'x' WHERE {text}").rowcount
    assert done == 2


def test_room_is_there_while_anybody_needs_it() -> None:
    from trinity.depth import deep_recursion

    before, entered, leave = sys.getrecursionlimit(), threading.Event(), threading.Event()

    def inside() -> None:
        with deep_recursion():
            entered.set()
            leave.wait()

    other = threading.Thread(target=inside)
    other.start()
    entered.wait()
    with deep_recursion():
        assert sys.getrecursionlimit() > before
    assert sys.getrecursionlimit() > before
    leave.set()
    other.join()
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("kind", NESTED)
def test_nested_text_from_python(kind: str) -> None:
    """DEFAULT, CHECK and conditions are parsed and compared with statistics before Spark gets them."""
    text = NESTED[kind](LEVELS, "1")
    columns = [Column("k", "int"), Column("v", "int", default=text)]
    made = define_table(TableName("c", "s", "t"), columns, (), (), {}, (), {"c": f"{text} = k"})
    assert made.column("v").default == text
    assert condition_facts(expression_tree(f"k = 1 AND {text} = 1"), made, Names("t")).comparisons
    assert prune([], Predicate.of(made, f"k = 1 AND {text} = 1")) == []
    beyond = NESTED[kind](BEYOND.get(kind, 3000), "1")
    assert outcome(lambda: define_table(TableName("c", "s", "t"), columns[:1], (), (), {}, (), {"c": beyond})) != "done"


# -- Spark ---------------------------------------------------------------------------------------------------


@pytest.fixture
def deep(session: Session, tiered_fmt: str) -> Table:
    columns = [Column("id", "int"), Column("v", "int"), Column("s", "string")]
    table = session.create_table(f"{tiered_fmt}.default.deep", columns, primary_key=["id"])
    table.upsert(pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    return table


@pytest.mark.full
def test_deep_statements_on_spark(deep: Table) -> None:
    """A statement that fits Spark's stack works; a deeper one is refused by name, and changes nothing."""
    sql = deep.session.sql
    name = str(deep.name)
    found = {
        text: outcome(lambda: sql(text))  # noqa: B023
        for text in (
            f"UPDATE {name} SET v = {NESTED['parentheses'](45, 'v')} WHERE id = 1",
            f"UPDATE {name} SET v = v WHERE {CHAINED['AND'](1000, 'v')}",
            f"SELECT {NESTED['CASE'](100, 'v')} FROM {name}",
            f"UPDATE {name} SET v = {NESTED['parentheses'](LEVELS, 'v')} WHERE id = 1",
            f"SELECT {' || '.join(['s'] * 1000)} FROM {name}",
            f"UPDATE {name} SET v = {NESTED['parentheses'](20_000, 'v')} WHERE id = 1",
        )
    }
    assert next(iter(found.values())) == "done"
    # how deep Spark's stack reaches depends on what the JVM has compiled so far
    assert set(found.values()) <= {"done", "NOT_SUPPORTED"}
    assert {(r.id, r.v, r.s) for r in deep.to_df().collect()} == {(1, 1, "a"), (2, 2, "b")}
