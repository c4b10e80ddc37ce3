"""CREATE OR REPLACE TABLE beside another session's statement: it is as if one had come after the other (L13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import trinity
from trinity import Session
from trinity.errors import ignoring

METHODS = (
    "get_table",
    "get_splits",
    "begin_insert",
    "begin_merge",
    "create_table",
    "truncate",
    "finish_insert",
    "finish_merge",
    "finish_replace",
)
"""The calls of an adapter before each of which the other session's statement comes in turn."""
STATEMENTS = {
    "empty": "CREATE OR REPLACE TABLE {t} (id INT, word STRING)",
    "query": "CREATE OR REPLACE TABLE {t} AS SELECT id, word FROM s",
    "keyed": "CREATE OR REPLACE TABLE {t} WITH ('primary-key' = 'id') AS SELECT id, word FROM s",
    "like": "CREATE OR REPLACE TABLE {t} LIKE s",
}
OTHERS = {
    "another": ["CREATE OR REPLACE TABLE {t} AS SELECT 1 AS q"],
    "same names": ["CREATE OR REPLACE TABLE {t} AS SELECT 'x' AS id, 2 AS word"],
    "dropped": ["DROP TABLE IF EXISTS {t}"],
    "keyed": ["CREATE OR REPLACE TABLE {t} WITH ('primary-key' = 'id') AS SELECT id + 7 AS id, word FROM s"],
    "anew": ["DROP TABLE IF EXISTS {t}", "CREATE TABLE {t} (z INT)"],
    "moved": ["ALTER TABLE {t} RENAME TO {t}_old", "CREATE TABLE IF NOT EXISTS {t} (z INT)"],
    "made": ["CREATE TABLE IF NOT EXISTS {t} (z INT)"],
    "altered": ["ALTER TABLE {t} ADD COLUMN more INT", "INSERT INTO {t} (id, more) VALUES (9, 9)"],
}
ERRORS: Final = ("TABLE_NOT_FOUND", "COLUMN_NOT_FOUND", "INVALID_ARGUMENTS")
"""Errors of the other session's statements where they come after the replacement, or find no table."""


@pytest.fixture
def two_sessions(tmp_path: Path, fmt: str) -> Iterator[tuple[Session, Session]]:
    """Yield two sessions on one warehouse, with a table of the query's rows."""
    with trinity.connect(tmp_path / "w") as one, trinity.connect(tmp_path / "w") as other:
        for session in (one, other):
            session.use(fmt, "default")
        one.sql("CREATE TABLE s (id INT, word STRING)")
        one.sql("INSERT INTO s VALUES (1, 'a'), (2, 'b')")
        yield one, other


def state(session: Session, table: str) -> object:
    """Return a table's columns, its key and its rows; None if there is no table."""
    if not session.table_exists(table):
        return None
    found = session.table(table)
    rows = sorted((tuple(row.values()) for row in found.to_arrow().to_pylist()), key=str)
    return [(c.name, str(c.type)) for c in found.definition.visible], found.definition.primary_key, rows


def run_all(session: Session, texts: list[str], table: str) -> None:
    for text in texts:
        with ignoring(*ERRORS):
            session.sql(text.format(t=table))


class Before:
    """A session's adapter, a call of which another session's statements precede.

    Args:
        session: the session.
        at: the number of the call.
        act: runs the other session's statements.
    """

    def __init__(self, session: Session, at: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        metadata = session.connector(session.current_catalog).metadata
        for name in METHODS:
            monkeypatch.setattr(metadata, name, self._preceded(getattr(metadata, name), at, act))

    def _preceded(self, method: Callable[..., Any], at: int, act: Callable[[], None]) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == at + 1:
                act()
            return method(*positional, **named)

        return call


def check(
    two_sessions: tuple[Session, Session],
    statement: str,
    others: list[str],
    there: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let the other session's statements precede each call of the statement in turn."""
    one, other = two_sessions

    def started(table: str) -> str:
        if there:
            one.sql(f"CREATE TABLE {table} AS SELECT id + 5 AS id, word FROM s")
        return table

    orders = [[statement, *others], [*others, statement]]
    for number, texts in enumerate(orders):
        run_all(one, texts, started(f"serial{number}"))
    allowed = [state(one, f"serial{number}") for number in range(len(orders))]
    at, more = 0, True
    while more:
        table = started(f"t{at}")
        with monkeypatch.context() as patched:
            before = Before(one, at, lambda table=table: run_all(other, others, table), patched)  # type: ignore[misc]
            one.sql(statement.format(t=table))
        more = before.calls > at
        assert not more or state(other, table) in allowed, (at, state(other, table), allowed)
        at += 1
    assert at > 3


def pairs() -> Iterator[Any]:
    """Yield each pair of statements; a few of them are in the short tier."""
    for statement in STATEMENTS:
        for other in OTHERS:
            for there in (True, False):
                if there or other not in ("altered", "moved"):
                    short = (statement, other, there) in SHORT
                    yield pytest.param(
                        statement,
                        other,
                        there,
                        id=f"{statement}-{other}-{there}",
                        marks=[] if short else pytest.mark.full,
                    )


SHORT = [
    ("empty", "another", True),
    ("empty", "altered", True),
    ("query", "same names", True),
    ("query", "dropped", True),
    ("query", "made", False),
    ("query", "keyed", False),
]


@pytest.mark.parametrize(("statement", "other", "there"), list(pairs()))
def test_one_comes_after_the_other(
    two_sessions: tuple[Session, Session], statement: str, other: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(two_sessions, STATEMENTS[statement], OTHERS[other], there, monkeypatch)
