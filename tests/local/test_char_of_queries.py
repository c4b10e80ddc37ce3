"""CHAR columns of subqueries, groups and sources of statements are compared after padding, as a table's are (K2)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from trinity import Session

QUERIES: Final[dict[str, list[Any]]] = {
    "SELECT k FROM (SELECT k, c FROM t) q WHERE c = 'ab'": [1],
    "SELECT k FROM (SELECT DISTINCT k, c AS d FROM t ORDER BY k LIMIT 9) q WHERE q.d IN ('ab', 'cd')": [1, 2],
    "WITH a (x) AS (SELECT c FROM t), b AS (SELECT x AS y FROM a) SELECT y FROM b WHERE y <> 'ab'": ["cd  "],
    "SELECT q.k FROM (SELECT a.k, b.c FROM t a LEFT JOIN t b ON a.k = b.k) q WHERE c = 'ab'": [1],
    "SELECT q.k FROM (SELECT k, c FROM t) q JOIN t ON q.c = t.c WHERE q.c > 'ab'": [2],
    "SELECT k FROM (SELECT k, c, row_number() OVER (ORDER BY k) AS r FROM t) q WHERE c = 'cd'": [2],
    "SELECT k FROM (SELECT k, c, explode(array(1)) AS e FROM t) q WHERE c = 'cd'": [2],
    "SELECT count(*) AS n FROM t GROUP BY c HAVING c = 'ab'": [1],
    "SELECT c FROM t GROUP BY ROLLUP (c) HAVING c = 'ab'": ["ab  "],
    "SELECT c = 'ab' AS e FROM t GROUP BY c HAVING c IS NOT NULL": [False, True],
    "SELECT q.c FROM (SELECT c, max(k) AS m FROM t GROUP BY c) q WHERE c = 'cd'": ["cd  "],
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM (SELECT * FROM t) q WHERE q.k = t.k AND q.c = 'ab')": [1],
    # after UNION the type is that of the first part, and text of the others is not padded
    "SELECT k FROM (SELECT k, c FROM t UNION ALL SELECT k + 10, s FROM t) q WHERE c = 'cd'": [2, 12],
    "SELECT k FROM (SELECT k, c FROM t UNION ALL SELECT k + 10, s FROM t) q WHERE c = 'ab'": [1],
    "SELECT k FROM (SELECT k + 10 AS k, s AS c FROM t UNION ALL SELECT k, c FROM t) q WHERE c = 'ab'": [11],
    "SELECT k FROM (SELECT k, c FROM t INTERSECT SELECT k, s FROM t) q WHERE c = 'cd'": [2],
    "SELECT k FROM (SELECT k, c FROM t EXCEPT SELECT k, s FROM t) q WHERE c = 'ab'": [1],
    # values computed of CHAR are plain text
    "SELECT k FROM (SELECT k, coalesce(c, 'cd') AS c FROM t) q WHERE c = 'cd'": [3],
    "SELECT max(c) AS m FROM t HAVING max(c) = 'cd'": [],
}
CHANGES: Final[dict[str, dict[int, str | None]]] = {
    "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.c = 'ab' THEN UPDATE SET s = 'one'": {1: "one"},
    "MERGE INTO t USING (SELECT k, c AS x FROM u) q ON t.k = q.k AND q.x = 'cd' WHEN MATCHED THEN UPDATE SET s = x": {
        2: "cd  "
    },
    "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET s = CASE u.c WHEN 'ab' THEN 'y' ELSE 'n' END": {
        1: "y", 2: "n"
    },
    "MERGE INTO t USING u a JOIN u b ON a.k = b.k ON t.k = a.k WHEN MATCHED AND b.c = 'cd' THEN UPDATE SET s = 'b'": {
        2: "b"
    },
    "MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED AND u.c = 'ab' THEN INSERT (k, s) VALUES (u.k, 'new')": {
        6: "new"
    },
    "UPDATE t SET s = 'from' FROM u WHERE t.k = u.k AND u.c IN ('cd', 'x')": {2: "from"},
    "DELETE FROM t USING u WHERE t.k = u.k AND u.c = 'ab'": {1: None, 6: None},
}  # fmt: skip
"""Statement -> the values of s by k that it changes; None for a deleted row."""


def play(session: Session, fmt: str) -> None:
    session.use(fmt, "default")
    session.sql("CREATE TABLE t (k INT, c CHAR(4), s STRING)")
    session.sql("CREATE TABLE u (k INT, c CHAR(4))")
    session.sql("INSERT INTO t VALUES (1, 'ab', 'ab'), (2, 'cd', 'cd  '), (3, NULL, NULL)")
    session.sql("INSERT INTO u VALUES (1, 'ab'), (2, 'cd'), (6, 'ab')")
    for text, expected in QUERIES.items():
        assert sorted(row[0] for row in session.sql(text)) == expected, text
    kept: dict[int, str | None] = {1: "ab", 2: "cd  ", 3: None}
    for text, changed in CHANGES.items():
        session.sql(text)
        kept = {k: s for k, s in (kept | changed).items() if s is not None or k not in changed}
        assert {row.k: row.s for row in session.sql("SELECT k, s FROM t")} == kept, text


def test_char_stays_char(local: Session, local_fmt: str) -> None:
    play(local, local_fmt)


@pytest.mark.full
def test_char_stays_char_in_spark(session: Session, fmt: str) -> None:
    play(session, fmt)
