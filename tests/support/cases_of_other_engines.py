"""Statements that other engines' own test suites try, over tables of ours, with the rows that must be left.

Each case names the suite that has the fact. ``docs/proof.md`` says which versions were read.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from trinity import Session

Counts = tuple[int, int, int]
"""Rows that were updated, deleted and inserted."""

START: Final = "(1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)"
"""The rows of t: id, v and n."""
OTHER: Final = "(1, 5), (1, 6), (2, 7), (4, 8)"
"""The rows of u, the other table: k and w."""


@dataclass(frozen=True)
class Tried:
    """Statements about ``t``, with ``u`` beside it.

    Attributes:
        fact: the suite that tries it, and what it shows.
        texts: statements, with the counts of each.
        left: the rows of ``t`` afterwards.
        ddl: the columns of ``t``.
        start: the rows of ``t`` at first.
        keyed: whether the same holds with ``id`` as the primary key.
        duckdb: whether DuckDB, too, takes the statements as they are.
    """

    fact: str
    texts: tuple[tuple[str, Counts], ...]
    left: list[tuple[Any, ...]]
    ddl: str = "id INT, v INT, n STRING"
    start: str = START
    keyed: bool = True
    duckdb: bool = True


TRIED: Final = [
    Tried(
        "PostgreSQL's merge.sql: behind WHEN … AND an OR is not cut off, and AND binds closer than OR",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 1), (2, 9), (3, 2)) AS s(id, w) ON t.id = s.id "
                    "WHEN MATCHED AND t.v = 10 AND s.w > 5 OR s.w = 2 THEN UPDATE SET v = 0 "
                    "WHEN MATCHED AND s.w < 5 OR t.v > 99 AND s.w = 9 THEN DELETE"
                ),
                (1, 1, 0),
            ),
        ),
        [(2, 20, "b"), (3, 0, None)],
    ),
    Tried(
        "PostgreSQL's merge.sql: ON is a subquery without any column",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (7)) AS s(w) ON (SELECT TRUE) "
                    "WHEN MATCHED AND v > 10 THEN UPDATE SET v = w "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (w)"
                ),
                (2, 0, 0),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (8)) AS s(w) ON (SELECT max(k) > 4 FROM u) WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (w)"
                ),
                (0, 0, 1),
            ),
        ),
        [(1, 10, "a"), (2, 7, "b"), (3, 7, None), (8, None, None)],
    ),
    Tried(
        "PostgreSQL's merge.sql: the source has groups, and HAVING drops those that would match twice",
        (
            (
                (
                    "MERGE INTO t USING (SELECT k, max(w) AS w FROM u GROUP BY k HAVING count(*) = 1 ORDER BY k) AS s "
                    "ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = w "
                    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w)"
                ),
                (1, 0, 1),
            ),
        ),
        [(1, 10, "a"), (2, 7, "b"), (3, 30, None), (4, 8, None)],
    ),
    Tried(
        "PostgreSQL's merge.sql: subqueries about the target, in every clause, see it as it was",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1), (2), (8)) AS s(id) ON t.id = s.id AND (SELECT count(*) "
                    "FROM t) = 3 "
                    "WHEN MATCHED AND (SELECT min(id) FROM t) = 1 THEN UPDATE SET v = (SELECT max(v) FROM t), n = 'x' "
                    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, (SELECT min(v) FROM t)) "
                    "WHEN NOT MATCHED BY SOURCE AND v = (SELECT max(v) FROM t) THEN DELETE"
                ),
                (2, 1, 1),
            ),
        ),
        [(1, 30, "x"), (2, 30, "x"), (8, 10, None)],
    ),
    Tried(
        "PostgreSQL's merge.sql: INSERT DEFAULT VALUES for each row that nothing matches",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1), (8), (9)) AS s(k) ON t.id = s.k "
                    "WHEN NOT MATCHED AND s.k < 9 THEN INSERT DEFAULT VALUES "
                    "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.k, DEFAULT)"
                ),
                (0, 0, 2),
            ),
        ),
        [(1, 10, "a"), (2, 20, "b"), (3, 30, None), (9, 4, "none"), (None, 4, "none")],
        ddl="id INT, v INT DEFAULT 4, n STRING DEFAULT 'none'",
        keyed=False,
    ),
    Tried(
        "PostgreSQL's merge.sql: a WITH query that nothing reads",
        (
            (
                (
                    "WITH q AS (SELECT * FROM u), unread AS (SELECT k FROM q) "
                    "MERGE INTO t USING q ON t.id = q.k AND q.w > 5 WHEN MATCHED THEN UPDATE SET v = w"
                ),
                (2, 0, 0),
            ),
        ),
        [(1, 6, "a"), (2, 7, "b"), (3, 30, None)],
    ),
    Tried(
        "DuckDB's merge_into_error.test: a condition is not evaluated for rows that an earlier clause has taken",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 'x'), (2, '7'), (9, 'y'), (8, '5')) AS s(id, w) ON t.id = s.id "
                    "WHEN MATCHED AND s.w = 'x' THEN UPDATE SET n = 'first' "
                    "WHEN MATCHED AND CAST(s.w AS INT) > 5 THEN DELETE "
                    "WHEN NOT MATCHED AND s.w = 'y' THEN DO NOTHING "
                    "WHEN NOT MATCHED AND CAST(s.w AS INT) < 100 THEN INSERT (id) VALUES (s.id)"
                ),
                (1, 1, 1),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (7, 'x')) AS s(id, w) ON t.id = s.id "
                    "WHEN NOT MATCHED AND TRUE THEN INSERT (id, n) VALUES (s.id, s.w) "
                    "WHEN NOT MATCHED AND CAST(s.w AS INT) > 5 THEN DO NOTHING"
                ),
                (0, 0, 1),
            ),
        ),
        [(1, 10, "first"), (3, 30, None), (7, None, "x"), (8, None, None)],
    ),
    Tried(
        "Beside DuckDB's merge_into_error.test, where DuckDB fails: nor is a value for rows that its clause "
        "does not take",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 'x'), (2, '7')) AS s(id, w) ON t.id = s.id "
                    "WHEN MATCHED AND s.w <> 'x' THEN UPDATE SET v = CAST(s.w AS INT)"
                ),
                (1, 0, 0),
            ),
            ("UPDATE t SET v = CAST(n AS INT) WHERE n IS NULL", (1, 0, 0)),
        ),
        [(1, 10, "a"), (2, 7, "b"), (3, None, None)],
        duckdb=False,
    ),
    Tried(
        "DuckDB's merge_into_parenthesis_bug.test: brackets and new lines behind ON and AND",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 10), (2, 1)) AS s(id, w)\nON (\n t.id = s.id AND\n"
                    " ( t.v <> s.w\n OR t.id = 5 )\n)\nWHEN MATCHED AND (\n t.v IS DISTINCT FROM s.w\n) THEN "
                    "UPDATE SET v = (0)"
                ),
                (1, 0, 0),
            ),
        ),
        [(1, 10, "a"), (2, 0, "b"), (3, 30, None)],
    ),
    Tried(
        "DuckDB's merge_into_join_as_filter.test: ON names columns of the target alone, or of the source alone",
        (
            (
                (
                    "MERGE INTO t USING (SELECT 2 AS w) AS s ON t.n IS NOT NULL WHEN MATCHED THEN UPDATE SET v = s.w "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.w) "
                    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 'alone'"
                ),
                (3, 0, 0),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (5, TRUE), (6, FALSE)) AS s(w, f) ON s.f "
                    "WHEN MATCHED AND t.v = 2 THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.w)"
                ),
                (0, 2, 1),
            ),
        ),
        [(3, 30, "alone"), (6, None, None)],
    ),
    Tried(
        "DuckDB's merge_into_index.test: a list is updated, and inserted",
        (
            (
                (
                    "MERGE INTO t USING (SELECT 1 AS id, array(1, 2, 3) AS l UNION ALL SELECT 3, "
                    "array(CAST(NULL AS INT))) "
                    "AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET l = s.l "
                    "WHEN NOT MATCHED THEN INSERT (id, l) VALUES (s.id, s.l)"
                ),
                (1, 0, 1),
            ),
        ),
        [(1, [1, 2, 3]), (2, None), (3, [None])],
        ddl="id INT, l ARRAY<INT>",
        start="(1, array(0)), (2, NULL)",
        duckdb=False,
    ),
    Tried(
        "Spark's MergeIntoTableSuiteBase: NULL without a type, behind AND in ON and in WHEN",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 7)) AS s(id, w) ON t.id = s.id AND NULL WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.w)"
                ),
                (0, 0, 1),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (2), (9)) AS s(id) ON t.id = s.id WHEN MATCHED AND NULL THEN DELETE "
                    "WHEN NOT MATCHED AND NULL THEN INSERT (id) VALUES (s.id) "
                    "WHEN NOT MATCHED BY SOURCE AND NULL THEN DELETE"
                ),
                (0, 0, 0),
            ),
        ),
        [(1, 10, "a"), (2, 20, "b"), (3, 30, None), (7, None, None)],
    ),
    Tried(
        "Iceberg's TestMerge, Spark's MergeIntoTableSuiteBase: UNION ALL, EXCEPT and INTERSECT are sources",
        (
            (
                (
                    "MERGE INTO t USING (SELECT k, w FROM u WHERE w = 7 UNION ALL SELECT k, w FROM u WHERE k = 4) AS s "
                    "ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = w "
                    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w)"
                ),
                (1, 0, 1),
            ),
            (
                (
                    "MERGE INTO t USING (SELECT k FROM u EXCEPT SELECT id FROM t WHERE v > 7) AS s ON t.id = s.k "
                    "WHEN MATCHED THEN DELETE"
                ),
                (0, 1, 0),
            ),
            (
                (
                    "MERGE INTO t USING (SELECT k FROM u INTERSECT SELECT id FROM t) AS s ON t.id = s.k "
                    "WHEN NOT MATCHED BY SOURCE THEN DELETE"
                ),
                (0, 1, 0),
            ),
        ),
        [(1, 10, "a"), (4, 8, None)],
    ),
    Tried(
        "Spark's MergeIntoTableSuiteBase: rows of before a column was added match by its DEFAULT, and are set to it",
        (
            ("ALTER TABLE t ADD COLUMN x STRING DEFAULT 'old'", (0, 0, 0)),
            ("ALTER TABLE t ADD COLUMN y INT", (0, 0, 0)),
            (
                (
                    "MERGE INTO t USING (VALUES (1, 'old'), (2, 'z'), (5, 'new')) AS s(id, x) "
                    "ON t.id = s.id AND t.x = 'old' AND t.y IS NULL WHEN MATCHED AND t.x = s.x THEN UPDATE SET y = 1 "
                    "WHEN MATCHED THEN UPDATE SET x = s.x, v = DEFAULT WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) "
                    "WHEN NOT MATCHED BY SOURCE AND x = 'old' THEN UPDATE SET x = DEFAULT, y = 3"
                ),
                (3, 0, 1),
            ),
        ),
        [(1, 10, "a", "old", 1), (2, None, "b", "z", None), (3, 30, None, "old", 3), (5, None, None, "old", None)],
    ),
    Tried(
        "Spark's MergeIntoTableSuiteBase, Trino's BaseConnectorTest: lists and maps within structs, by two "
        "kinds of WHEN",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, -2)) AS x(id, c) ON t.id = x.id WHEN MATCHED THEN UPDATE SET "
                    "s.c = x.c, s.d.l = array(-1), s.d.m = map('k', 'v') "
                    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.s.d.l = array(9)"
                ),
                (2, 0, 0),
            ),
            ("UPDATE t SET s = named_struct('c', s.c + 1, 'd', s.d) WHERE s.c = -2", (1, 0, 0)),
            (
                (
                    "MERGE INTO t USING (VALUES (2)) AS x(id) ON t.id = x.id AND t.s.c IS NULL "
                    "WHEN MATCHED THEN UPDATE SET s.c = NULL, s.d = NULL "
                    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.d.l = NULL"
                ),
                (2, 0, 0),
            ),
            ("DELETE FROM t WHERE s.d IS NULL AND s IS NOT NULL", (0, 1, 0)),
        ),
        [(1, {"c": -1, "d": {"l": None, "m": [("k", "v")]}})],
        ddl="id INT, s STRUCT<c: INT, d: STRUCT<l: ARRAY<INT>, m: MAP<STRING, STRING>>>",
        start="(1, named_struct('c', 2, 'd', named_struct('l', array(1, 2), 'm', map('a', 'b')))), (2, NULL)",
        duckdb=False,
    ),
    Tried(
        "Iceberg's TestMerge: rows that are NULL in every column are rows, of the target and of the source",
        (
            (
                (
                    "MERGE INTO t USING (SELECT CAST(NULL AS INT) AS id, CAST(NULL AS INT) AS v, CAST(NULL AS "
                    "STRING) AS n "
                    "UNION ALL SELECT 1, 5, 'x') AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v, n = s.n "
                    "WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, s.v, s.n)"
                ),
                (1, 0, 1),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (1)) AS s(id) ON t.id = s.id "
                    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
                ),
                (2, 0, 0),
            ),
            (
                (
                    "MERGE INTO t USING (SELECT CAST(NULL AS INT) AS id) AS s ON t.id IS NOT DISTINCT FROM s.id "
                    "AND t.v = 1 "
                    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (v) VALUES (NULL)"
                ),
                (0, 0, 1),
            ),
        ),
        [(1, 5, "x"), (None, 0, None), (None, 0, None), (None, None, None)],
        start="(CAST(NULL AS INT), CAST(NULL AS INT), CAST(NULL AS STRING)), (1, 10, 'a')",
        keyed=False,
    ),
    Tried(
        "Iceberg's TestMerge, TestUpdate and TestDelete: a table into which nothing was ever written",
        (
            (
                "MERGE INTO t USING u ON t.id = u.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE",
                (0, 0, 0),
            ),
            ("UPDATE t SET v = 1", (0, 0, 0)),
            ("DELETE FROM t WHERE id = 1", (0, 0, 0)),
            ("DELETE FROM t", (0, 0, 0)),
            (
                (
                    "MERGE INTO t USING u ON t.id = u.k WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED AND u.w > 6 THEN INSERT (id) VALUES (u.k)"
                ),
                (0, 0, 2),
            ),
        ),
        [(2, None, None), (4, None, None)],
        start="",
    ),
    Tried(
        "Iceberg's TestDelete: conditions without a column",
        (
            ("DELETE FROM t WHERE FALSE", (0, 0, 0)),
            ("DELETE FROM t WHERE 50 <> 50", (0, 0, 0)),
            ("DELETE FROM t WHERE 1 > NULL", (0, 0, 0)),
            ("UPDATE t SET v = v + 1 WHERE 2 > 1 AND TRUE", (3, 0, 0)),
            ("DELETE FROM t WHERE 50 > 40 AND id > 1 OR 1 = 2", (0, 2, 0)),
        ),
        [(1, 11, "a")],
    ),
    Tried(
        "Trino's BaseConnectorTest: an ON that is never true, as arithmetic and as a column that differs from itself",
        (
            (
                (
                    "MERGE INTO t USING (VALUES (1, 7)) AS s(id, w) ON 23 - (12 + 10) > 1 WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.w)"
                ),
                (0, 0, 1),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (1, 8)) AS s(id, w) ON t.id <> t.id OR s.w < s.w "
                    "WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.w) WHEN NOT MATCHED BY SOURCE AND v = 10 THEN DELETE"
                ),
                (0, 1, 1),
            ),
        ),
        [(2, 20, "b"), (3, 30, None), (7, None, None), (8, None, None)],
    ),
    Tried(
        "Trino's BaseConnectorTest: numbers of other widths than their columns, also in ON",
        (
            (
                (
                    "MERGE INTO t USING (SELECT CAST(2 AS BIGINT) AS id, CAST(3 AS SMALLINT) AS b, CAST(4.4 AS "
                    "DECIMAL(9, 1)) "
                    "AS d) AS s ON t.id + 1 = s.id WHEN MATCHED THEN UPDATE SET id = s.id, b = s.b, d = s.d"
                ),
                (1, 0, 0),
            ),
        ),
        [(2, 3, Decimal("4.40"))],
        ddl="id INT, b BIGINT, d DECIMAL(12, 2)",
        start="(1, 2, 3)",
    ),
    Tried(
        "Trino's BaseConnectorTest: dates before the Gregorian calendar, new lines and padded text in conditions",
        (
            (
                "UPDATE t SET id = 10 WHERE d = DATE '0001-01-01' AND n = 'a b' AND c = 'ab'",
                (1, 0, 0),
            ),
            (
                "UPDATE t SET id = 20 WHERE d < DATE '1582-10-15' AND d > DATE '1582-10-04' AND n = 'two\nlines'",
                (1, 0, 0),
            ),
            (
                (
                    "MERGE INTO t USING (VALUES (DATE '9999-12-31', 'żółw')) AS x(d, n) ON t.d = x.d AND t.n = x.n "
                    "WHEN MATCHED THEN UPDATE SET id = 30"
                ),
                (1, 0, 0),
            ),
            ("MERGE INTO t USING (VALUES ('ab '), ('')) AS x(c) ON t.c = x.c WHEN MATCHED THEN DELETE", (0, 2, 0)),
        ),
        [(20, dt.date(1582, 10, 10), "two\nlines", "zzz"), (30, dt.date(9999, 12, 31), "żółw", None)],
        ddl="id INT, d DATE, n STRING, c CHAR(3)",
        start="(1, DATE '0001-01-01', 'a b', 'ab'), (2, DATE '1582-10-10', 'two\nlines', 'zzz'), "
        "(3, DATE '9999-12-31', 'żółw', NULL), (4, DATE '1582-10-15', '', '')",
        duckdb=False,
    ),
]


def play(session: Session, tried: Tried, key: str = "") -> None:
    """Run the statements of a case; check the counts of each, and the rows that are left."""
    session.sql(f"CREATE TABLE t ({tried.ddl}{key})")
    session.sql("CREATE TABLE u (k INT, w INT)")
    session.sql(f"INSERT INTO u VALUES {OTHER}")
    if tried.start:
        session.sql(f"INSERT INTO t VALUES {tried.start}")
    for text, counts in tried.texts:
        found = session.sql(text).fetchall()
        assert found == [(sum(counts), *counts)] or not found, text  # ALTER TABLE has no result
    assert left(session) == sorted(tried.left, key=str)


def left(session: Session) -> list[tuple[Any, ...]]:
    """Return the rows of ``t``, sorted."""
    return sorted((tuple(row.values()) for row in session.table("t").to_arrow().to_pylist()), key=str)
