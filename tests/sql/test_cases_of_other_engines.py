"""What other engines' test suites try of MERGE, UPDATE and DELETE, by Spark (M1, M6)."""

from __future__ import annotations

import pytest

from tests.support.cases_of_other_engines import TRIED, Tried, play
from tests.support.refusals import refused
from trinity import Session

BY_SPARK = [
    Tried(
        "PostgreSQL's merge.sql: a function is the source",
        (
            (
                (
                    "MERGE INTO t USING range(2, 5) AS r ON t.id = r.id WHEN MATCHED THEN UPDATE SET v = 0 "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (r.id)"
                ),
                (2, 0, 1),
            ),
        ),
        [(1, 10, "a"), (2, 0, "b"), (3, 0, None), (4, None, None)],
    ),
    Tried(
        "DuckDB's merge_into_join_as_filter.test: a column of the source is NULL and has no type",
        (
            (
                (
                    "MERGE INTO t USING (SELECT 1 AS id, 5 AS v, NULL AS n UNION ALL SELECT 7, 6, NULL) s "
                    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                ),
                (1, 0, 1),
            ),
        ),
        [(1, 5, None), (2, 20, "b"), (3, 30, None), (7, 6, None)],
    ),
    Tried(
        "Iceberg's TestUpdate and TestDelete: several columns IN a subquery, and IN a list",
        (
            ("UPDATE t SET n = 'in' WHERE (id, v) IN (SELECT k, w + 13 FROM u)", (1, 0, 0)),
            ("DELETE FROM t WHERE (id, v) IN ((1, 10), (3, 5))", (0, 1, 0)),
            ("UPDATE t SET v = 0 WHERE (id, v) NOT IN (SELECT k, w FROM u)", (2, 0, 0)),
        ),
        [(2, 0, "in"), (3, 0, None)],
    ),
    Tried(
        "Spark's MergeIntoTableSuiteBase: CHAR and VARCHAR within a struct are padded and cut",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1)) x(id) ON t.id = x.id WHEN MATCHED THEN "
                    "UPDATE SET s.c = 'x', s.v = 'y' WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.c = 'z', s.v = 'yy  '"
                ),
                (2, 0, 0),
            ),
        ),
        [(1, {"c": "x  ", "v": "y"}), (2, {"c": "z  ", "v": "yy"})],
        ddl="id INT, s STRUCT<c: CHAR(3), v: VARCHAR(2)>",
        start="(1, named_struct('c', 'a', 'v', 'a')), (2, named_struct('c', 'b', 'v', 'b'))",
    ),
    Tried(
        "Trino's BaseConnectorTest: DOUBLE and FLOAT for columns of other numbers",
        (
            (
                (
                    "MERGE INTO t USING (SELECT 2L AS a, CAST(3.5 AS FLOAT) AS b, 4D AS c, 5 AS d) s ON t.a + 1 = s.a "
                    "WHEN MATCHED THEN UPDATE SET *"
                ),
                (1, 0, 0),
            ),
        ),
        [(2, 3.5, 4, 5.0)],
        ddl="a INT, b DOUBLE, c INT, d FLOAT",
        start="(1, 2, 3, 4)",
    ),
]


@pytest.mark.parametrize("tried", BY_SPARK, ids=lambda tried: tried.fact)
def test_what_this_process_leaves_to_spark(session: Session, tiered_fmt: str, tried: Tried) -> None:
    session.use(tiered_fmt, "default")
    play(session, tried)


@pytest.mark.full
@pytest.mark.parametrize("tried", TRIED, ids=lambda tried: tried.fact)
def test_rows_and_counts(session: Session, tiered_fmt: str, tried: Tried) -> None:
    session.use(tiered_fmt, "default")
    play(session, tried)


def test_conditions_that_are_not_about_one_pair_of_rows(session: Session) -> None:
    """Spark's MergeIntoTableSuiteBase, Iceberg's TestMerge: aggregates anywhere, and rand() in ON, are refused."""
    session.sql("CREATE TABLE t (id INT, v INT)")
    session.sql("INSERT INTO t VALUES (1, 10)")
    merge = "MERGE INTO t USING (VALUES (1)) s(id) ON t.id = s.id"
    for text, code in (
        (f"{merge} AND rand() > 2 WHEN MATCHED THEN DELETE", "INVALID_ARGUMENTS"),
        (f"{merge} AND max(s.id) = 1 WHEN MATCHED THEN DELETE", "NOT_SUPPORTED"),
        (f"{merge} WHEN MATCHED AND max(t.id) > 2 THEN DELETE", "INVALID_ARGUMENTS"),
        (f"{merge} WHEN MATCHED THEN UPDATE SET v = sum(s.id)", "INVALID_ARGUMENTS"),
        (f"{merge} WHEN NOT MATCHED THEN INSERT (id) VALUES (max(s.id))", "INVALID_ARGUMENTS"),
        ("DELETE FROM t WHERE count(*) > 2", "INVALID_ARGUMENTS"),
    ):
        with refused(code):
            session.sql(text)
    assert session.table("t").count() == 1
