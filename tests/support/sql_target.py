"""The table ``t``, the target of statements that change rows, and its rows afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from trinity import Session
from trinity.errors import TrinityError


def make_target(session: Session, *, keyed: bool) -> None:
    """Make ``t`` in the current schema with the rows (1, 10, a), (2, 20, b), (3, 30, NULL)."""
    key = ", PRIMARY KEY (id)" if keyed else ""
    session.sql(f"CREATE TABLE t (id INT NOT NULL, v INT, n STRING DEFAULT 'none'{key})")
    session.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)")


def rows_of(session: Session, table: str = "t") -> list[tuple[Any, ...]]:
    """Return the sorted rows of a table."""
    return sorted((tuple(r) for r in session.sql(f"SELECT * FROM {table}").collect()), key=repr)


def refusal_of(session: Session, text: str) -> TrinityError:
    """Return the error of a statement; check that it leaves the table unchanged, and makes no commit."""
    before, commits = rows_of(session), session.table("t").history().count()
    with pytest.raises(TrinityError) as caught:
        session.sql(text)
    assert rows_of(session) == before
    assert session.table("t").history().count() == commits
    return caught.value
