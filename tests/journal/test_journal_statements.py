"""Statements on journalled tables in PostgreSQL do what they do on ordinary ones (J2, J3, J5, J6, J8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.support.journal import Rows, count, rows
from trinity import dbapi


@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_the_versions_are_rows_of_the_journal(depts: dbapi.Connection, versions: str) -> None:
    count(depts, "UPDATE depts SET name = 'x' WHERE deptno = 1")
    count(depts, "DELETE FROM depts WHERE deptno = 1")
    count(depts, "INSERT INTO depts VALUES (1, 'again')")
    found = rows(
        depts,
        """SELECT name, row_number() OVER (ORDER BY version_number), subsequent_version_number IS NOT NULL,
           subsequent_version_number = version_number FROM hr.depts_journal WHERE deptno = 1 ORDER BY version_number""",
    )
    assert found == [("one", 1, False, None), ("x", 2, False, None), ("x", 3, True, True), ("again", 4, False, None)]
    assert rows(depts, "SELECT name FROM depts WHERE deptno = 1") == [("again",)]
    if versions == "BIGINT":
        numbers = "SELECT version_number FROM hr.depts_journal WHERE deptno = 1 ORDER BY 1"
        assert rows(depts, numbers) == [(1,), (2,), (3,), (4,)]


QUERIES: list[tuple[str, Rows]] = [
    ("SELECT * FROM hr.depts ORDER BY deptno", [(1, "one"), (3, "three")]),
    ("SELECT d.* FROM depts AS d(k, n) WHERE k > 1", [(3, "three")]),
    ("SELECT hr.depts.name FROM hr.depts WHERE depts.deptno = 1", [("one",)]),
    ("SELECT a.name, b.name FROM depts a JOIN depts b ON a.deptno < b.deptno", [("one", "three")]),
    ("WITH depts AS (SELECT deptno FROM depts WHERE deptno > 1) SELECT * FROM depts", [(3,)]),
    ("WITH depts AS (SELECT 9 AS deptno) SELECT deptno FROM depts UNION SELECT deptno FROM hr.depts ORDER BY 1",
     [(1,), (3,), (9,)]),
    (("WITH RECURSIVE depts(deptno) AS (SELECT 1 UNION ALL SELECT deptno + 1 FROM depts WHERE deptno < 3) "
      "SELECT count(*) FROM depts"), [(3,)]),
    ("SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM depts WHERE deptno = id) ORDER BY 1", [(2,), (4,)]),
    ("SELECT (SELECT max(deptno) FROM depts d WHERE d.deptno <= o.deptno) FROM depts o ORDER BY 1", [(1,), (3,)]),
    ("SELECT deptno FROM depts EXCEPT SELECT id FROM x", [(3,)]),
    ("SELECT * FROM depts NATURAL JOIN (SELECT deptno FROM depts WHERE deptno = 3) s", [(3, "three")]),
    ("SELECT name FROM depts JOIN (VALUES (3)) AS v(deptno) USING (deptno)", [("three",)]),
    ("SELECT z.name FROM (depts d JOIN x ON d.deptno = x.id) JOIN depts z ON true WHERE z.deptno = 3", [("three",)]),
    ("SELECT d.deptno, y.n FROM depts d, LATERAL (SELECT n FROM x WHERE id = d.deptno) y", [(1, "uno")]),
    ("SELECT count(*), max(name) FROM depts GROUP BY deptno > 1 ORDER BY 2", [(1, "one"), (1, "three")]),
    ("TABLE depts ORDER BY deptno LIMIT 1", [(1, "one")]),
    ("SELECT 'depts', /* depts */ \"depts\".name FROM \"depts\" ORDER BY 2 LIMIT 1 -- depts", [("depts", "one")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), QUERIES)
def test_queries_see_the_newest_live_rows_in_every_scope(depts: dbapi.Connection, text: str, expected: Rows) -> None:
    count(depts, "UPDATE depts SET name = 'tmp' WHERE deptno = 3")
    count(depts, "UPDATE depts SET name = 'three' WHERE deptno = 3")
    count(depts, "DELETE FROM depts WHERE deptno = 2")
    assert rows(depts, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT version_number FROM depts",
        "SELECT * FROM depts WHERE subsequent_version_number IS NULL",
        "UPDATE depts SET name = 'x' WHERE version_number = 1",
        "UPDATE depts SET version_number = DEFAULT",
        "UPDATE depts SET name = 'x' RETURNING version_number",
        "INSERT INTO depts (deptno, name, version_number) VALUES (9, 'x', DEFAULT)",
        "INSERT INTO depts VALUES (9, 'x') RETURNING subsequent_version_number",
        "DELETE FROM depts WHERE _trinity_version IS NULL RETURNING depts.version_number",
    ],
)
def test_the_version_columns_are_hidden(depts: dbapi.Connection, text: str) -> None:
    with pytest.raises(dbapi.ProgrammingError) as caught:
        depts.execute(text)
    assert caught.value.code == "COLUMN_NOT_FOUND"


# (statement, its count, the rows afterwards)
CHANGES: list[tuple[str, int, Rows]] = [
    ("UPDATE depts SET name = 'x' WHERE deptno > 1", 2, [(1, "one"), (2, "x"), (3, "x")]),
    ("UPDATE depts SET name = name WHERE deptno = 1 OR deptno = 2", 2, [(1, "one"), (2, "two"), (3, "three")]),
    ("UPDATE depts SET name = 'x' WHERE deptno = 9", 0, [(1, "one"), (2, "two"), (3, "three")]),
    ("UPDATE depts SET deptno = deptno + 1", 3, [(2, "one"), (3, "two"), (4, "three")]),
    ("UPDATE depts SET deptno = 3 - deptno WHERE deptno < 3", 2, [(1, "two"), (2, "one"), (3, "three")]),
    ("UPDATE depts SET deptno = deptno * 10, name = 'x' WHERE deptno = 2", 1, [(1, "one"), (3, "three"), (20, "x")]),
    ("UPDATE depts d SET name = x.n FROM x WHERE x.id = d.deptno", 2, [(1, "uno"), (2, "dos"), (3, "three")]),
    ("UPDATE depts SET name = 'x' WHERE EXISTS (SELECT 1 FROM x WHERE id = deptno AND name = 'one')", 1,
     [(1, "x"), (2, "two"), (3, "three")]),
    ("UPDATE depts SET (name) = (SELECT 'y') WHERE deptno = 1", 1, [(1, "y"), (2, "two"), (3, "three")]),
    ("WITH s AS (SELECT 2 AS k) UPDATE depts SET name = 's' FROM s WHERE deptno = s.k", 1,
     [(1, "one"), (2, "s"), (3, "three")]),
    ("UPDATE depts SET name = 'x' FROM x a, x b WHERE deptno = 1", 1, [(1, "x"), (2, "two"), (3, "three")]),
    ("DELETE FROM depts WHERE name LIKE 't%'", 2, [(1, "one")]),
    ("DELETE FROM depts USING x WHERE id = deptno AND gone", 1, [(1, "one"), (3, "three")]),
    ("DELETE FROM depts WHERE deptno IN (SELECT max(deptno) FROM depts)", 1, [(1, "one"), (2, "two")]),
    ("WITH s AS (SELECT id FROM x) DELETE FROM depts WHERE deptno IN (SELECT id FROM s)", 2, [(3, "three")]),
    ("INSERT INTO depts (name, deptno) VALUES ('four', 4), ('five', 5)", 2,
     [(1, "one"), (2, "two"), (3, "three"), (4, "four"), (5, "five")]),
    ("INSERT INTO depts SELECT deptno + 10, upper(name) FROM depts WHERE deptno < 3", 2,
     [(1, "one"), (2, "two"), (3, "three"), (11, "ONE"), (12, "TWO")]),
    ("INSERT INTO depts SELECT 8, 'a' UNION ALL SELECT 9, 'b'", 2,
     [(1, "one"), (2, "two"), (3, "three"), (8, "a"), (9, "b")]),
    ("WITH s AS (SELECT 7 AS k, 'w' AS n) INSERT INTO depts SELECT * FROM s", 1,
     [(1, "one"), (2, "two"), (3, "three"), (7, "w")]),
    (("INSERT INTO depts AS d VALUES (1, 'new'), (4, 'four') ON CONFLICT (deptno) DO UPDATE "
      "SET name = excluded.name || d.name WHERE d.deptno < 2"), 2,
     [(1, "newone"), (2, "two"), (3, "three"), (4, "four")]),
    ("INSERT INTO depts SELECT id, n FROM x ON CONFLICT (deptno) DO UPDATE SET name = 'met'", 3,
     [(1, "met"), (2, "met"), (3, "three"), (4, "cuatro")]),
    ("INSERT INTO depts VALUES (1, 'new'), (4, 'a'), (4, 'b') ON CONFLICT DO NOTHING", 1,
     [(1, "one"), (2, "two"), (3, "three"), (4, "a")]),
    (("MERGE INTO depts d USING x ON d.deptno = x.id WHEN MATCHED AND gone THEN DELETE "
      "WHEN MATCHED THEN UPDATE SET name = n WHEN NOT MATCHED THEN INSERT VALUES (id, n)"), 3,
     [(1, "uno"), (3, "three"), (4, "cuatro")]),
    (("MERGE INTO depts USING x ON deptno = id AND NOT gone WHEN MATCHED THEN DO NOTHING "
      "WHEN NOT MATCHED AND id > 3 THEN INSERT (deptno, name) VALUES (id * 10, n)"), 1,
     [(1, "one"), (2, "two"), (3, "three"), (40, "cuatro")]),
    ("MERGE INTO depts d USING x ON d.deptno = x.id WHEN NOT MATCHED BY SOURCE THEN DELETE", 1,
     [(1, "one"), (2, "two")]),
    ("MERGE INTO depts d USING (SELECT 1 AS k) s ON d.deptno = s.k WHEN MATCHED THEN UPDATE SET deptno = 50", 1,
     [(2, "two"), (3, "three"), (50, "one")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "changed", "after"), CHANGES)
def test_changes(depts: dbapi.Connection, text: str, changed: int, after: Rows) -> None:
    assert count(depts, text) == changed
    assert rows(depts) == after


RETURNING: list[tuple[str, Rows]] = [
    ("INSERT INTO depts (name) VALUES ('x'), ('y') RETURNING *", [(1, "x"), (2, "y")]),
    ("INSERT INTO depts VALUES (10, 'x') RETURNING name, deptno * 2 AS twice", [("x", 20)]),
    ("UPDATE depts d SET name = 'x' RETURNING d.*, upper(name)", [(30, "x", "X")]),
    ("UPDATE depts SET deptno = 31 RETURNING deptno, name", [(31, "old")]),
    ("UPDATE depts SET name = n FROM x WHERE id = 1 RETURNING depts.name, x.n, id + deptno", [("uno", "uno", 31)]),
    ("DELETE FROM depts RETURNING *", [(30, "old")]),
    ("UPDATE depts SET name = n FROM x WHERE id = 1 RETURNING *", [(30, "uno", 1, "uno", False)]),
    ("UPDATE depts SET deptno = 5 FROM x JOIN x y USING (id) WHERE id = 1 RETURNING depts.*, y.*, id",
     [(5, "old", 1, "uno", False, 1)]),
    ("DELETE FROM depts USING x WHERE id = 2 RETURNING name, x.n", [("old", "dos")]),
    ("DELETE FROM depts USING x, (SELECT 7 AS k) s WHERE id = 2 RETURNING *, k + 1",
     [(30, "old", 2, "dos", True, 7, 8)]),
    ("MERGE INTO depts d USING x ON deptno = id + 28 WHEN MATCHED AND gone THEN DELETE RETURNING *",
     [(2, "dos", True, 30, "old")]),
    ("INSERT INTO depts VALUES (30, 'new') ON CONFLICT (deptno) DO UPDATE SET name = excluded.name RETURNING *",
     [(30, "new")]),
    ("MERGE INTO depts d USING x ON deptno = id + 28 WHEN MATCHED AND gone THEN UPDATE SET name = n RETURNING name",
     [("dos",)]),
    ("WITH d AS (DELETE FROM depts RETURNING deptno) SELECT deptno + 1 FROM d", [(31,)]),
    ("WITH d AS (UPDATE depts SET deptno = 5 RETURNING *) INSERT INTO x (id, n) SELECT * FROM d RETURNING id", [(5,)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RETURNING)
def test_returning(hr: dbapi.Connection, text: str, expected: Rows) -> None:
    hr.execute("CREATE TABLE hr.x (id INT, n TEXT, gone BOOLEAN)")
    hr.execute("INSERT INTO hr.x VALUES (1, 'uno', false), (2, 'dos', true)")
    hr.execute("INSERT INTO depts VALUES (30, 'old')")
    hr.execute("SET search_path = hr")
    cursor = hr.execute(text)
    assert cursor.fetchall() == expected
    assert cursor.rowcount == len(expected)


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("INSERT INTO depts VALUES (1, 'x')", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("INSERT INTO depts VALUES (8, 'x'), (8, 'y')", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("INSERT INTO depts SELECT id, n FROM x", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("UPDATE depts SET deptno = 3 WHERE deptno = 1", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("UPDATE depts SET deptno = 9", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("UPDATE depts SET deptno = NULL", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("INSERT INTO depts (deptno) VALUES (7)", dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("UPDATE depts SET name = 'longer than ten'", dbapi.DataError, "BAD_DATA"),
        ("UPDATE depts SET name = x.n || repeat('x', 9) FROM x", dbapi.DataError, "BAD_DATA"),
        ("INSERT INTO depts VALUES (1, 'a'), (1, 'b') ON CONFLICT (deptno) DO UPDATE SET name = 'c'",
         dbapi.ProgrammingError, "SUBQUERY_MULTIPLE_ROWS"),
        ("MERGE INTO depts USING (VALUES (1), (1)) s(k) ON deptno = k WHEN MATCHED THEN UPDATE SET name = 'x'",
         dbapi.ProgrammingError, "SUBQUERY_MULTIPLE_ROWS"),
        ("MERGE INTO depts USING (VALUES (1)) s(k) ON deptno = k + 8 WHEN NOT MATCHED THEN INSERT VALUES (1, 'x')",
         dbapi.IntegrityError, "CONSTRAINT_VIOLATION"),
        ("INSERT INTO depts VALUES (1, 'x', 2)", dbapi.ProgrammingError, "SYNTAX_ERROR"),
        ("INSERT INTO depts (deptno, deptno) VALUES (1, 2)", dbapi.ProgrammingError, "DUPLICATE_COLUMN_NAME"),
        ("INSERT INTO depts (nope) VALUES (1)", dbapi.ProgrammingError, "COLUMN_NOT_FOUND"),
        ("UPDATE depts SET nope = 1", dbapi.ProgrammingError, "COLUMN_NOT_FOUND"),
        ("UPDATE depts SET name = 'a', name = 'b'", dbapi.ProgrammingError, "DUPLICATE_COLUMN_NAME"),
        ("SELECT nope FROM depts", dbapi.ProgrammingError, "COLUMN_NOT_FOUND"),
        ("INSERT INTO depts VALUES (5, 'a') ON CONFLICT (name) DO NOTHING",
         dbapi.ProgrammingError, "INVALID_ARGUMENTS"),
        ("SELECT * FROM depts WHERE", dbapi.ProgrammingError, "SYNTAX_ERROR"),
        ("SELECT 1 / 0 FROM depts", dbapi.DataError, "BAD_DATA"),
    ],
)  # fmt: skip
def test_what_an_ordinary_table_refuses(depts: dbapi.Connection, text: str, kind: type[dbapi.Error], code: str) -> None:
    with pytest.raises(kind) as caught:
        depts.execute(text)
    assert caught.value.code == code
    depts.rollback()
    assert rows(depts) == [(1, "one"), (2, "two"), (3, "three")]


@pytest.mark.parametrize(
    "text",
    [
        "LOCK TABLE depts", "VACUUM depts", "COPY depts FROM STDIN", "DO $$ BEGIN DELETE FROM depts; END $$",
        "SELECT * FROM ONLY depts", "SELECT * FROM depts TABLESAMPLE BERNOULLI (10)",
        "SELECT * FROM depts LIMIT 1 FOR UPDATE SKIP LOCKED",
        "ALTER TABLE depts RENAME TO d", "CREATE UNIQUE INDEX ON depts (name)", "GRANT SELECT ON depts TO PUBLIC",
        "ALTER TABLE depts DROP COLUMN deptno", "CREATE TABLE t (LIKE depts)",
        "ALTER TABLE depts ADD CONSTRAINT u UNIQUE (name)", "ALTER TABLE depts DROP CONSTRAINT depts_journal_pkey",
        "CREATE TABLE t (d INT REFERENCES depts (deptno))",
        "COMMENT ON TABLE depts IS 'x'", "DROP VIEW depts", "EXPLAIN ANALYZE DELETE FROM depts",
        "SELECT * FROM (WITH d AS (DELETE FROM depts RETURNING *) SELECT * FROM d) s", "CALL depts(1)",
    ],
)  # fmt: skip
def test_what_cannot_be_rewritten_is_refused(depts: dbapi.Connection, text: str) -> None:
    with pytest.raises(dbapi.NotSupportedError):
        depts.execute(text)
    assert len(rows(depts)) == 3


def test_values_of_every_kind_are_bound(hr: dbapi.Connection) -> None:
    day = dt.date(2024, 2, 29)
    assert count(hr, "INSERT INTO emps VALUES (?, ?, ?, ?)", 1, None, Decimal("1.25"), day) == 1
    assert rows(hr, "SELECT *, ? FROM emps WHERE born = ?", "t", day) == [(1, None, Decimal("1.25"), day, "t")]
    assert count(hr, "UPDATE emps SET salary = salary + ?, deptno = DEFAULT WHERE empid = ?", 1, 1) == 1
    assert rows(hr, "SELECT deptno, salary FROM emps") == [(7, Decimal("2.25"))]
    assert count(hr, "UPDATE emps SET empid = empid + ?, born = ? WHERE salary > ?", 5, "2024-01-01", 2) == 1
    assert rows(hr, "SELECT empid, born FROM emps") == [(6, dt.date(2024, 1, 1))]
    merge = """MERGE INTO emps USING (SELECT CAST(? AS int) AS k) s ON empid = k WHEN MATCHED AND salary > ?
               THEN UPDATE SET salary = ? WHEN NOT MATCHED THEN INSERT (empid, salary) VALUES (k, ?)"""
    assert [count(hr, merge, k, 1, 3, 4) for k in (6, 7)] == [1, 1]
    assert rows(hr, "SELECT empid, salary FROM emps ORDER BY 1") == [(6, 3), (7, 4)]
    many = hr.cursor().executemany("INSERT INTO emps (empid) VALUES (?)", [(8,), (9,), (10,)])
    assert many.rowcount == 3


@pytest.mark.parametrize("value", ["'; DROP TABLE hr.depts_journal; --", "\\", "$1 ? %s", "depts", "Ünï ☃ 'q'", "\n\t"])
def test_parameters_and_literals_are_data(hr: dbapi.Connection, value: str) -> None:
    hr.execute("ALTER TABLE depts ADD COLUMN note TEXT")
    assert count(hr, "INSERT INTO depts VALUES (1, 'a', ?)", value) == 1
    literal = "'" + value.replace("'", "''") + "'"
    assert rows(hr, f"SELECT note = {literal} FROM depts WHERE note = ?", value) == [(True,)]
    assert count(hr, f"UPDATE depts SET note = note || {literal}") == 1
    assert rows(hr, "SELECT note FROM depts") == [(value * 2,)]


EXPRESSIONS = [
    "interval 'P1M', interval '1 day ago', interval '1 hour 2', interval '2' hour, interval '1 2' day to hour",
    "date_part('dow', date '2024-01-01'), date_trunc(name, timestamp '2024-02-03'), date_part(name, now()) IS NULL",
    "to_hex(deptno), log10(2.5::float8), mod(7, deptno), power(deptno, 2), deptno ^ 2 ^ 2, -2 ^ 2, pow(2, 3)",
    "json_object('{a,1}'), json_object('{a,b}', '{1,2}'), json_extract_path('[5,6]'::json, '1')",
    "char_length(name), substr(name, 2), btrim(name, 'd'), strpos(name, 'a'), ceiling(1.5), like(name, 'd%')",
    "regexp_like(name, 'D', 'i'), starts_with(name, 'd'), reverse(name), translate(name, 'd', 'x'), now() IS NULL",
    "current_time IS NULL, localtimestamp IS NULL, current_schema(), date('2024-01-01')",
    "count(*) FILTER (WHERE deptno > 1), string_agg(DISTINCT name, ',' ORDER BY name), variance(deptno), every(true)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY deptno), max(name), array_agg(deptno ORDER BY deptno DESC)",
    "CASE WHEN name LIKE 'm%' THEN hr.if(true, 1, 2) ELSE hr.nvl(1, 2) END",
]  # fmt: skip
"""What a parser of several dialects takes for functions of others, or for other types."""


@pytest.mark.parametrize("versions", ["BIGINT"])
@pytest.mark.parametrize("expressions", EXPRESSIONS)
def test_expressions_are_sent_as_they_were_written(hr: dbapi.Connection, expressions: str) -> None:
    hr.execute("CREATE FUNCTION hr.if(boolean, int, int) RETURNS int LANGUAGE sql AS 'SELECT 4'")
    hr.execute("CREATE FUNCTION hr.nvl(int, int) RETURNS int LANGUAGE sql AS 'SELECT 5'")
    hr.execute("CREATE TABLE hr.plain (deptno INT, name VARCHAR(10))")
    found = []
    for table in ("depts", "plain"):
        hr.execute(f"INSERT INTO hr.{table} VALUES (1, 'month'), (2, 'day')")
        cursor = hr.execute(f"SELECT {expressions} FROM hr.{table}")
        found.append(([column[:2] for column in cursor.description or ()], sorted(cursor.fetchall(), key=repr)))
    assert found[0] == found[1]
    text = (
        "DELETE FROM depts WHERE date '2024-01-10' + interval '5 days ago' < date '2024-01-07' AND to_hex(deptno) = '2'"
    )
    assert count(hr, text) == 1
    assert rows(hr) == [(1, "month")]


@pytest.mark.parametrize("versions", ["BIGINT"])
@pytest.mark.parametrize("expression", ["@ deptno", "@ 1", "0x1F", "1_000", "0b11", "'{1}'::int array"])
def test_what_would_be_read_as_something_else_is_refused(depts: dbapi.Connection, expression: str) -> None:
    with pytest.raises(dbapi.NotSupportedError, match="cannot rewrite"):
        depts.execute(f"SELECT {expression} AS n FROM depts WHERE deptno = ?", [2])


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_ordinary_rows_are_locked_whatever_their_columns_are_called(depts: dbapi.Connection) -> None:
    depts.execute("CREATE TABLE hr.queue (id INT, depts INT)")
    depts.execute("INSERT INTO hr.queue VALUES (1, 1), (2, 1)")
    text = "SELECT id FROM hr.queue WHERE depts = 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
    assert rows(depts, text) == [(1,)]
    assert rows(depts, f"SELECT count(*) FROM ({text}) AS q") == [(1,)]


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_default_is_the_value_of_a_generated_column(hr: dbapi.Connection) -> None:
    hr.execute("ALTER TABLE emps ADD COLUMN twice NUMERIC GENERATED ALWAYS AS (salary * 2) STORED")
    assert count(hr, "INSERT INTO emps VALUES (1, 2, 3, NULL, DEFAULT), (2, 2, 4, NULL, DEFAULT)") == 2
    upsert = "INSERT INTO emps (empid, salary, twice) VALUES (2, 5, DEFAULT) ON CONFLICT (empid) DO NOTHING"
    assert count(hr, upsert) == 0
    assert count(hr, "UPDATE emps SET twice = DEFAULT, salary = 6 WHERE empid = 2") == 1
    assert rows(hr, "SELECT empid, twice FROM emps ORDER BY 1") == [(1, 6), (2, 12)]


def test_defaults_of_columns_that_a_query_leaves_out(hr: dbapi.Connection) -> None:
    hr.execute("ALTER TABLE emps ADD COLUMN more JSONB, ADD COLUMN note TEXT DEFAULT 'n'")
    for text in (
        "INSERT INTO emps (empid, salary) SELECT i, 1 FROM generate_series(1, 2) i",
        "INSERT INTO emps (empid, salary) SELECT i, 2 FROM generate_series(2, 3) i ON CONFLICT (empid) DO NOTHING",
        "MERGE INTO emps USING (SELECT 4 AS i) s ON empid = s.i WHEN NOT MATCHED THEN INSERT (empid) VALUES (s.i)",
    ):
        hr.execute(text)
    assert rows(hr, "SELECT empid, deptno, salary, more, note FROM emps ORDER BY 1") == [
        (1, 7, 1, None, "n"), (2, 7, 1, None, "n"), (3, 7, 2, None, "n"), (4, 7, None, None, "n")
    ]  # fmt: skip


@pytest.mark.parametrize("versions", ["BIGINT"])  # the length does not matter for them
@pytest.mark.parametrize(("large", "number"), [(50_000, 60), pytest.param(500_000, 6_000, marks=pytest.mark.full)])
def test_statements_of_a_megabyte(hr: dbapi.Connection, large: int, number: int) -> None:
    """One large value, and many rows; in the long tier a megabyte of each."""
    hr.execute("ALTER TABLE depts ADD COLUMN note TEXT")
    big = "x'" * large
    hr.execute("INSERT INTO depts VALUES (0, 'big', '" + big.replace("'", "''") + "')")
    assert rows(hr, "SELECT note = ? FROM depts", big) == [(True,)]
    values = ", ".join(f"({i}, 'name {i % 9999}', '{'note ' * 30}')" for i in range(1, number))
    assert len(values) > 160 * number
    assert count(hr, f"INSERT INTO depts VALUES {values}") == number - 1
    assert rows(hr, "SELECT count(*), max(deptno) FROM depts") == [(number, number - 1)]


def test_unique_keys(connect: Callable[..., dbapi.Connection], model: dict[str, Any]) -> None:
    model["schemas"][0]["operand"]["journalUniqueKeys"] = {"depts": [["name"]]}
    other = connect()
    other.execute("CREATE TABLE depts (deptno INT PRIMARY KEY, name TEXT UNIQUE, n INT)")
    other.execute("INSERT INTO depts VALUES (1, 'a', 0), (2, 'b', 0), (3, NULL, 0), (4, NULL, 0)")
    other.commit()
    for text in ("INSERT INTO depts VALUES (5, 'a', 0)", "UPDATE depts SET name = 'b' WHERE deptno = 1"):
        with pytest.raises(dbapi.IntegrityError):
            other.execute(text)
        other.rollback()
    assert count(other, "UPDATE depts SET n = 1, name = name") == 4
    assert count(other, "INSERT INTO depts VALUES (9, 'a', 5) ON CONFLICT (name) DO UPDATE SET n = excluded.n") == 1
    assert rows(other, "SELECT deptno, n FROM depts WHERE name = 'a'") == [(1, 5)]
    assert count(other, "INSERT INTO depts VALUES (9, 'a', 5), (10, 'c', 5) ON CONFLICT DO NOTHING") == 1
    other.execute("DELETE FROM depts WHERE deptno = 1")
    assert count(other, "INSERT INTO depts VALUES (5, 'a', 0)") == 1


@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_the_past(depts: dbapi.Connection, versions: str) -> None:
    depts.autocommit = True
    if versions == "BIGINT":
        count(depts, "UPDATE depts SET name = 'new' WHERE deptno < 3")
        count(depts, "DELETE FROM depts WHERE deptno = 2")
        assert rows(depts, "SELECT name FROM depts FOR VERSION AS OF 1 ORDER BY deptno") == [
            ("one",),
            ("two",),
            ("three",),
        ]
        assert rows(depts, "SELECT name FROM depts FOR VERSION AS OF ? d WHERE d.deptno = 2", 2) == [("new",)]
        assert rows(depts) == [(1, "new"), (3, "three")]
        wrong = "SELECT * FROM depts FOR TIMESTAMP AS OF '2020-01-01'"
    else:
        [(before,)] = rows(depts, "SELECT clock_timestamp()")
        count(depts, "UPDATE depts SET name = 'new' WHERE deptno < 3")
        count(depts, "DELETE FROM depts WHERE deptno = 2")
        assert rows(depts, "SELECT deptno, name FROM depts FOR TIMESTAMP AS OF ? ORDER BY 1", before) == [
            (1, "one"), (2, "two"), (3, "three")
        ]  # fmt: skip
        assert rows(depts, "SELECT * FROM depts FOR TIMESTAMP AS OF '2000-01-01'") == []
        wrong = "SELECT * FROM depts FOR VERSION AS OF 1"
    with pytest.raises(dbapi.ProgrammingError, match="AS OF"):
        depts.execute(wrong)


def test_explain_shows_what_is_sent(depts: dbapi.Connection) -> None:
    sent = depts.explain("UPDATE depts SET name = ? WHERE deptno = 1")
    assert "hash_record_extended" in sent[0].lower()
    assert "pg_advisory_xact_lock" in sent[1]
    assert sent[2].startswith("INSERT INTO hr.depts_journal (deptno, name, version_number) SELECT")
    assert depts.explain("SELECT * FROM hr.x") == ["SELECT * FROM hr.x"]
    assert "depts_journal" in str(rows(depts, "EXPLAIN SELECT * FROM depts"))
    assert len(rows(depts)) == 3


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_explain_of_a_change(depts: dbapi.Connection) -> None:
    changes: list[tuple[str, list[Any]]] = [
        ("EXPLAIN UPDATE depts SET name = ? WHERE deptno = ?", ["x", 1]),
        ("EXPLAIN (COSTS OFF, FORMAT JSON) DELETE FROM depts USING x WHERE id = deptno", []),
        ("EXPLAIN INSERT INTO depts (name) VALUES (?)", ["y"]),  # the key is the next value of a sequence
    ]
    for text, values in changes:
        assert "depts_journal" in str(rows(depts, text, *values))
    assert rows(depts) == [(1, "one"), (2, "two"), (3, "three")]


def test_what_is_not_journalled_passes_unchanged(depts: dbapi.Connection) -> None:
    assert rows(depts, "SELECT ('{\"a\": 1}'::jsonb ->> 'a')::int, $$it's ? %s$$, ?::text", "v") == [
        (1, "it's ? %s", "v")
    ]
    assert count(depts, "UPDATE hr.depts_journal SET name = 'changed' WHERE deptno = 1") == 1
    assert rows(depts, "SELECT name FROM depts WHERE deptno = 1") == [("changed",)]
    assert count(depts, "INSERT INTO x SELECT deptno, name, false FROM depts") == 3
    assert count(depts, "UPDATE x SET n = d.name FROM depts d WHERE d.deptno = x.id AND x.gone") == 1
    assert count(depts, "DELETE FROM x WHERE id IN (SELECT deptno FROM depts)") == 5
