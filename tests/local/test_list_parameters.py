"""Lists as parameters: values for an IN that has only the parameter, else an ARRAY."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import refused
from trinity import Session, dbapi

ROWS = [
    (1, ["x", "y'"], [1, 2]),
    (2, ["?", None], None),
    (3, None, [3, 4]),
]


@pytest.fixture
def tagged(local: Session) -> Session:
    """Return a session with a table whose arrays were inserted as parameters."""
    local.sql("CREATE TABLE t (id INT, tags ARRAY<STRING>, n ARRAY<INT>)")
    for row in ROWS:
        local.sql("INSERT INTO t VALUES (?, ?, ?)", row)
    return local


def ids(session: Session, condition: str, params: Any) -> list[int]:
    return sorted(row.id for row in session.sql(f"SELECT id FROM t WHERE {condition}", params).collect())


@pytest.fixture
def of_format(local: Session, local_fmt: str) -> Session:
    """Return a session whose current schema is of each format."""
    local.use(local_fmt, "default")
    return local


@pytest.mark.usefixtures("of_format")
def test_a_list_is_an_array(tagged: Session) -> None:
    assert sorted(map(tuple, tagged.sql("SELECT * FROM t").collect())) == ROWS
    tagged.sql("UPDATE t SET n = :n WHERE id IN :ids", {"n": np.array([7, 8]), "ids": (1, 3)})
    assert [row.n for row in tagged.sql("SELECT n FROM t ORDER BY id").collect()] == [[7, 8], None, [7, 8]]


def test_a_list_behind_in_is_its_values(tagged: Session) -> None:
    for ones in ([1, 3], (1, 3), np.array([1, 3]), pd.Series([1, 3])):
        assert ids(tagged, "id IN ?", [ones]) == [1, 3]
        assert ids(tagged, "id NOT IN (?)", [ones]) == [2]
        assert ids(tagged, "id in(\n:ones\n)", {"ones": ones}) == [1, 3]


def test_no_value_of_a_list_is_read_as_sql(tagged: Session) -> None:
    tagged.sql("CREATE TABLE names (name STRING)")
    odd = ["a' OR 'a' = 'a", "?", ":x", "b"]
    tagged.sql("INSERT INTO names VALUES (?), (?), (?), (?), ('c')", odd)
    found = tagged.sql("SELECT name FROM names WHERE name IN ? AND name IN (?)", [odd, odd])
    assert sorted(row.name for row in found.collect()) == sorted(odd)


def test_what_has_no_counterpart(tagged: Session) -> None:
    for wrong in ({"a": 1}, [{"a": 1}], object()):
        with refused("TYPE_MISMATCH", "no counterpart"):
            tagged.sql("SELECT * FROM t WHERE tags = ?", [wrong])


def test_lists_of_executemany(tagged: Session, warehouse: Path) -> None:
    with dbapi.connect(warehouse=warehouse, engine="local") as connection:
        cursor = connection.cursor()
        more = [(4, ["a"], [1]), (5, None, []), (6, ["b", None], np.array([2, 3]))]
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", more)
        found = cursor.execute("SELECT * FROM t WHERE id IN ? ORDER BY id", [[4, 5, 6]]).fetchall()
        assert found == [(4, ["a"], [1]), (5, None, []), (6, ["b", None], [2, 3])]
        with pytest.raises(dbapi.ProgrammingError, match="Row 2 of 2"):
            cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [(7, ["a"], [1]), (8, "a", [1])])
    assert ids(tagged, "id IN ?", [[7, 8]]) == []
