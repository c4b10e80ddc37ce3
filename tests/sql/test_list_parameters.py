"""Lists as parameters of statements that Spark runs."""

from __future__ import annotations

from trinity import Session


def test_lists_in_spark(session: Session) -> None:
    session.sql("CREATE TABLE t (id INT, tags ARRAY<STRING>)")
    session.sql("INSERT INTO t VALUES (?, ?), (?, ?), (NULL, ?)", [1, ["x", None], 2, [], None])
    for condition, params, found in (
        ("array_contains(?, id)", [[2, 3]], [2]),
        ("id IN ?", [[]], []),
        ("id NOT IN (?)", [[]], [None, 1, 2]),
        ("tags = ARRAY()", [], [2]),
        ("id IN :ids AND size(:ids) = 2", {"ids": [1, 9]}, [1]),
    ):
        rows = session.sql(f"SELECT id FROM t WHERE {condition}", params).collect()
        assert sorted((row.id for row in rows), key=lambda n: n or 0) == found, condition
    assert session.sql("DELETE FROM t WHERE id NOT IN ?", [[]]).first().num_deleted_rows == 3
