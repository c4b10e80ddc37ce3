"""Correlated subqueries, and sources that are joins, in statements of this process (M1)."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import trinity
from tests.support.refusals import refused
from trinity import Session
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_frame

pytestmark = pytest.mark.inner

ROWS: Final = pa.table(
    {
        "id": pa.array([1, 2, 3, None, 5, 6], pa.int32()),
        "n": pa.array([10, 20, None, 40, 7, None], pa.int64()),
        "v": ["a", "b", "c", "d", None, "f"],
    }
)
OTHERS: Final = pa.table(
    {
        "k": pa.array([1, 1, 2, None, 3, 5], pa.int64()),
        "m": pa.array([10, None, 7, 1, None, 7], pa.int32()),
        "w": ["a", "x", "b", "n", "q", None],
    }
)
QUERIES: Final = [
    "SELECT {} FROM u WHERE u.k = t.id",
    "SELECT {} FROM u WHERE k = id AND w <> 'x'",
    "SELECT {} FROM u AS o WHERE o.w = t.v AND coalesce(o.k, 0L) = coalesce(t.id, 0)",
    "SELECT {} FROM (SELECT k, m, w FROM u WHERE m IS NOT NULL) q WHERE q.k = nullif(t.id, 2)",
]
CONDITIONS: Final = [
    *(f"{no}EXISTS ({query})".format("1") for no, query in product(("", "NOT "), QUERIES)),
    *(f"{no}(t.n IN ({query}))".format("m") for no, query in product(("", "NOT "), QUERIES)),
    *(f"n NOT IN ({query})".format("CAST(m AS BIGINT) AS big") for query in QUERIES[:2]),
]
VALUES: Final = [
    *(f"({query})".format(f"{call}") for query in QUERIES for call in ("max(m)", "count(*)", "sum(m)", "count(w)")),
    *(f"({query})".format("coalesce(max(m), -1) AS value") for query in QUERIES),
    "(SELECT w FROM u WHERE u.m = t.n AND u.k = 1)",
]


def with_tables(session: Session, catalog: str) -> Session:
    session.use(catalog, "default")
    for name, rows in (("t", ROWS), ("u", OTHERS)):
        session.sql(f"DROP TABLE IF EXISTS {name}")
        session.create_table(name, rows)
    return session


def ids(session: Session) -> list[Any]:
    return sorted((row.id for row in session.sql("SELECT id FROM t").fetchall()), key=str)


def test_subqueries_about_the_row_around_them_mean_what_they_mean_in_spark(session: Session, warehouse: Path) -> None:
    """Each condition deletes the rows that it selects in Spark, and each value is the one that Spark selects."""
    spark = session.spark
    for name, rows in (("t", ROWS), ("u", OTHERS)):
        arrow_frame(spark, rows).createOrReplaceTempView(name)
    selected = [
        *(f"SELECT {n} AS q, id, CAST(NULL AS STRING) AS x FROM t WHERE {text}" for n, text in enumerate(CONDITIONS)),
        *(f"SELECT {-n} AS q, id, CAST({text} AS STRING) AS x FROM t" for n, text in enumerate(VALUES, 1)),
    ]
    with pinned(spark):
        found = spark.sql(" UNION ALL ".join(selected)).toArrow().to_pylist()
    for name in ("t", "u"):
        spark.catalog.dropTempView(name)
    with trinity.connect(warehouse, catalogs={"memory": {"connector": "memory"}}, engine="local") as local:
        for number, text in enumerate(CONDITIONS):
            with_tables(local, "memory").sql(f"DELETE FROM t WHERE {text}")
            gone = [row["id"] for row in found if row["q"] == number]
            left = [one for one in ROWS.column("id").to_pylist() if one not in gone]
            assert ids(local) == sorted(left, key=str), text
        for number, text in enumerate(VALUES, 1):
            with_tables(local, "memory").sql(f"UPDATE t SET v = CAST({text} AS STRING)")
            given = {row.id: row.v for row in local.sql("SELECT id, v FROM t").fetchall()}
            assert given == {row["id"]: row["x"] for row in found if row["q"] == -number}, text


def test_every_clause_may_have_them(local: Session, local_fmt: str) -> None:
    with_tables(local, local_fmt)
    local.sql(
        """MERGE INTO t USING (VALUES (1, 'S'), (9, 'T'), (5, 'U')) s(a, b)
           ON t.id = s.a AND EXISTS (SELECT 1 FROM u WHERE u.k = s.a)
           WHEN MATCHED AND s.a IN (SELECT k FROM u WHERE u.w = t.v)
             THEN UPDATE SET v = concat(s.b, (SELECT min(w) FROM u WHERE u.k = t.id))
           WHEN MATCHED AND NOT EXISTS (SELECT w FROM u WHERE u.w = t.v) THEN DELETE
           WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.a, (SELECT count(m) FROM u WHERE u.k = s.a), s.b)
           WHEN NOT MATCHED BY SOURCE AND t.id = (SELECT max(k) FROM u WHERE u.w = t.v) THEN DELETE"""
    )
    assert sorted(map(tuple, local.sql("SELECT * FROM t").fetchall()), key=str) == [
        (1, 10, "Sa"), (3, None, "c"), (6, None, "f"), (9, 0, "T"), (None, 40, "d"),
    ]  # fmt: skip


def test_a_source_may_be_a_join(local: Session, local_fmt: str) -> None:
    with_tables(local, local_fmt)
    joined = "u JOIN (VALUES (1, 'one'), (3, 'three')) x(k, z) ON u.k = x.k"
    local.sql(f"MERGE INTO t USING {joined} ON t.id = x.k AND u.w <> 'x' WHEN MATCHED THEN UPDATE SET v = concat(w, z)")
    local.sql(f"UPDATE t SET n = m FROM {joined.replace('JOIN', 'LEFT JOIN')} WHERE t.id = u.k AND x.k IS NULL")
    local.sql(
        "WITH q AS (SELECT k FROM u) DELETE FROM t USING q RIGHT JOIN t AS y ON q.k = y.id "
        "WHERE t.id = y.id AND q.k IS NULL"
    )
    local.sql("INSERT INTO t SELECT t.id + 10 AS id, m, w FROM t FULL JOIN u ON t.id = u.k WHERE t.id IS NULL")
    assert sorted(map(tuple, local.sql("SELECT * FROM t").fetchall()), key=str) == [
        (1, 10, "aone"), (2, 7, "b"), (3, None, "qthree"), (5, 7, None), (None, 1, "n"), (None, 40, "d"),
        (None, None, None),
    ]  # fmt: skip


def test_what_is_wrong_or_only_sparks_is_said_so(local: Session) -> None:
    with_tables(local, "memory")
    for text, code, named in (
        ("UPDATE t SET v = (SELECT w FROM u WHERE u.k = t.id)", "SUBQUERY_MULTIPLE_ROWS", "several rows"),
        ("UPDATE t SET v = (SELECT w FROM u WHERE u.nosuch = t.id)", "COLUMN_NOT_FOUND", "nosuch"),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.nosuch)", "COLUMN_NOT_FOUND", "nosuch"),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k < t.id)", "NOT_SUPPORTED", "than in an equality"),
        ("DELETE FROM t WHERE EXISTS (SELECT max(k) FROM u WHERE u.k = t.id)", "NOT_SUPPORTED", "aggregates"),
        ("DELETE FROM t WHERE n IN (SELECT m FROM u WHERE u.k = t.id LIMIT 1)", "NOT_SUPPORTED", "LIMIT"),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE CAST(u.k AS DOUBLE) = t.id)", "NOT_SUPPORTED", "double"),
        (
            "MERGE INTO t USING u LEFT JOIN u x ON u.k = x.k OR u.m < 1 ON t.id = u.k WHEN MATCHED THEN DELETE",
            "NOT_SUPPORTED",
            "LEFT JOIN",
        ),
    ):
        with refused(code, named):
            local.sql(text)
    assert ids(local) == [1, 2, 3, 5, 6, None]
    local.sql("UPDATE t SET v = (SELECT w FROM u WHERE u.k = t.id) WHERE id = 2")  # row 1 would have two values
    assert local.sql("SELECT v FROM t WHERE id = 2").fetchall() == [("b",)]
