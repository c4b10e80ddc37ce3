"""SQL's UPDATE, DELETE and MERGE in this process: the same rows, counts and refusals as by Spark."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.refusals import refused
from trinity import Session

CHANGES: Final[list[tuple[str, tuple[int, int, int]]]] = [
    ("UPDATE t SET n = n + 1 WHERE id > 5", (0, 0, 0)),
    ("UPDATE t AS x SET n = x.n * 10, v = DEFAULT WHERE x.id IN (1, 2)", (2, 0, 0)),
    ("DELETE FROM t WHERE n = 20 OR v = 'nothing'", (0, 1, 0)),
    (
        (
            "MERGE INTO t USING src AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n, v = s.w "
            "WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.id, s.n, s.w)"
        ),
        (0, 0, 2),
    ),
    (
        (
            "MERGE INTO t USING (VALUES (1, 50), (9, 60)) AS x(id, n) ON t.id = x.id "
            "WHEN MATCHED AND x.n > 10 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n + 1)"
        ),
        (0, 1, 1),
    ),
    (
        (
            "MERGE INTO t USING (SELECT id, n FROM src WHERE n > 30) q ON t.id = q.id "
            "WHEN MATCHED THEN UPDATE SET n = t.n + q.n WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"
        ),
        (1, 1, 0),
    ),
    ("MERGE INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n + 1", (3, 0, 0)),
    ("UPDATE t SET v = s.w FROM src s WHERE t.id = s.id AND s.n = 20", (1, 0, 0)),
]
LEFT: Final = [(2, 21, "B"), (4, 81, "D"), (9, 62, None)]
REFUSED: Final = [
    ("UPDATE t SET m = 1", "COLUMN_NOT_FOUND", "'m'"),
    ("UPDATE t SET n = m", "COLUMN_NOT_FOUND", "'m'"),
    ("UPDATE t SET n = 'x'", "TYPE_MISMATCH", "'n'"),
    ("DELETE FROM t WHERE n", "TYPE_MISMATCH", "boolean"),
    ("DELETE FROM t WHERE n = (", "SYNTAX_ERROR", "("),
    ("MERGE INTO t USING src ON t.id = src.id WHEN MATCHED THEN UPDATE SET *", "COLUMN_NOT_FOUND", "v"),
    ("MERGE INTO t USING src AS t ON t.id = t.id WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS", "'t'"),
    ("MERGE INTO t USING nosuch ON t.id = nosuch.id WHEN MATCHED THEN DELETE", "TABLE_NOT_FOUND", "nosuch"),
    (
        "MERGE INTO t USING (VALUES (2), (2)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        "M2",
    ),
]


def play(session: Session, fmt: str, key: str) -> None:
    session.use(fmt, "default")
    session.sql(f"CREATE TABLE t (id INT, n INT, v STRING{key})")
    session.sql("CREATE TABLE src (id INT, n INT, w STRING)")
    session.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    session.sql("INSERT INTO src VALUES (2, 20, 'B'), (4, 40, 'D')")
    for text, counts in CHANGES:
        [found] = session.sql(text).fetchall()
        assert tuple(found) == (sum(counts), *counts), text
    assert read(session) == LEFT
    version = session.table("t").version
    for text, code, named in REFUSED:
        with refused(code, named):
            session.sql(text)
    assert session.table("t").version == version


def read(session: Session) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.table("t").to_arrow().to_pylist())


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_changes_need_no_spark(local: Session, local_fmt: str, key: str) -> None:
    play(local, local_fmt, key)


@pytest.mark.parametrize("fmt", ["parquet", pytest.param("iceberg", marks=pytest.mark.full)])
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id)"], ids=["plain", "keyed"])
def test_spark_makes_the_same_of_them(session: Session, fmt: str, key: str) -> None:
    play(session, fmt, key)


def test_queries_outside_the_source_are_left_to_spark(local: Session) -> None:
    local.sql("CREATE TABLE t (id INT, n INT)")
    for text in (
        "DELETE FROM t WHERE id IN (SELECT 1)",
        "WITH q AS (SELECT 1 AS id) MERGE INTO t USING q ON t.id = q.id WHEN MATCHED THEN DELETE",
        "DELETE FROM t USING t AS u WHERE t.id = u.n",
        "UPDATE t SET n = hash(n)",
    ):
        with refused("NOT_SUPPORTED", "needs Spark", "engine='auto'"):
            local.sql(text)


def test_other_dialects_and_parameters(local: Session) -> None:
    local.sql("CREATE TABLE t (id INT, v STRING)")
    local.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    local.sql("UPDATE t SET v = 'q' WHERE \"id\" = 2", dialect="trino")
    local.sql("DELETE FROM t WHERE v = :v", {"v": "a"})
    assert read(local) == [(2, "q")]
