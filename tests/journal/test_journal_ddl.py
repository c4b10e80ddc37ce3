"""Definitions of journalled tables apply to their journals, and views over the tables read live rows (J4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from trinity import dbapi


def journal_columns(plain: psycopg.Connection[Any]) -> list[str]:
    text = """SELECT column_name FROM information_schema.columns
              WHERE table_name = 'depts_journal' ORDER BY ordinal_position"""
    return [n for (n,) in plain.execute(text)]


def test_create_alter_and_drop(hr: dbapi.Connection, postgres: psycopg.Connection[Any]) -> None:
    assert journal_columns(postgres) == ["deptno", "name", "version_number", "subsequent_version_number"]
    keys = postgres.execute(
        "SELECT indexdef FROM pg_indexes WHERE tablename = 'depts_journal' AND indexname LIKE '%pkey'"
    ).fetchall()
    assert "(deptno, version_number)" in keys[0][0]
    hr.execute("INSERT INTO depts VALUES (1, 'one')")
    hr.execute("ALTER TABLE hr.depts ADD COLUMN budget INT DEFAULT 5, ADD COLUMN note TEXT")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "one", 5, None)]
    hr.execute("ALTER TABLE depts RENAME COLUMN note TO remark")
    hr.execute("ALTER TABLE depts ALTER COLUMN name TYPE TEXT")
    hr.execute("ALTER TABLE depts ALTER COLUMN budget SET NOT NULL, ALTER budget SET DEFAULT 6")
    nullable = "SELECT is_nullable FROM information_schema.columns WHERE table_schema = 'hr' AND column_name = 'budget'"
    assert hr.execute(nullable).fetchall() == [("NO",)]
    hr.execute("UPDATE depts SET remark = 'x', name = 'longer than ten'")
    hr.execute("ALTER TABLE depts ADD CONSTRAINT short CHECK (length(remark) < 5)")
    hr.execute("SAVEPOINT checked")
    with pytest.raises(dbapi.IntegrityError, match="short"):
        hr.execute("UPDATE depts SET remark = 'too long'")
    hr.execute("ROLLBACK TO SAVEPOINT checked")
    hr.execute("ALTER TABLE depts DROP CONSTRAINT short")
    hr.execute("ALTER TABLE depts DROP COLUMN budget")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "longer than ten", "x")]
    hr.execute("CREATE INDEX depts_name ON hr.depts (name, lower(remark))")
    hr.commit()
    [(index,)] = postgres.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'depts_name'").fetchall()
    assert "hr.depts_journal" in index
    hr.execute("TRUNCATE TABLE depts")
    assert hr.execute("SELECT * FROM depts").fetchall() == []
    hr.execute("DROP TABLE hr.depts, emps")
    with pytest.raises(dbapi.ProgrammingError, match=r"CREATE TABLE hr\.depts"):
        hr.execute("SELECT * FROM depts")
    hr.rollback()
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "longer than ten", "x")]


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_what_is_not_there_may_be_altered_if_it_exists(hr: dbapi.Connection) -> None:
    hr.execute("ALTER TABLE depts DROP COLUMN IF EXISTS nope, ADD COLUMN IF NOT EXISTS name TEXT")
    hr.execute("DROP TABLE emps")
    hr.execute("ALTER TABLE IF EXISTS emps ADD COLUMN a INT, DROP COLUMN b")
    hr.execute("ALTER TABLE IF EXISTS emps ADD CONSTRAINT c CHECK (a > 0)")
    hr.commit()
    with pytest.raises(dbapi.NotSupportedError, match="version column"):
        hr.execute("ALTER TABLE depts DROP COLUMN IF EXISTS version_number")


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_ordinary_tables_are_altered_whatever_their_columns_are_called(hr: dbapi.Connection) -> None:
    hr.execute("CREATE TABLE hr.other (id INT, depts INT)")
    hr.execute("ALTER TABLE hr.other ALTER COLUMN depts SET NOT NULL")
    with pytest.raises(dbapi.IntegrityError):
        hr.execute("INSERT INTO hr.other VALUES (1, NULL)")


def test_definitions_roll_back(hr: dbapi.Connection) -> None:
    hr.execute("ALTER TABLE depts ADD COLUMN extra INT")
    hr.rollback()
    hr.execute("INSERT INTO depts VALUES (1, 'one')")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "one")]


def test_another_connection_sees_a_changed_table(
    hr: dbapi.Connection, connect: Callable[..., dbapi.Connection]
) -> None:
    other = connect(autocommit=True)
    other.execute("ALTER TABLE depts ADD COLUMN extra INT")
    hr.execute("INSERT INTO depts (deptno, name, extra) VALUES (1, 'one', 7)")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "one", 7)]


def test_views_read_live_rows(hr: dbapi.Connection) -> None:
    hr.execute("CREATE VIEW hr.names(n) AS SELECT name FROM depts WHERE deptno > 0")
    hr.execute("CREATE TABLE hr.copied AS SELECT * FROM depts")
    hr.execute("INSERT INTO depts VALUES (1, 'one'), (2, 'two')")
    hr.execute("UPDATE depts SET name = 'new' WHERE deptno = 1")
    hr.execute("DELETE FROM depts WHERE deptno = 2")
    assert hr.execute("SELECT * FROM hr.names").fetchall() == [("new",)]
    assert hr.execute("SELECT * FROM hr.copied").fetchall() == []


def test_constraints_of_columns_hold(hr: dbapi.Connection) -> None:
    hr.execute("DROP TABLE depts")
    hr.execute(
        "CREATE TABLE depts (deptno INT, name TEXT CHECK (name <> ''), size INT DEFAULT 3, "
        "twice INT GENERATED ALWAYS AS (size * 2) STORED, CONSTRAINT k PRIMARY KEY (deptno), CHECK (size > 0))"
    )
    hr.execute("INSERT INTO depts (deptno, name) VALUES (1, 'one')")
    hr.execute("UPDATE depts SET size = 4")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(1, "one", 4, 8)]
    hr.execute("UPDATE depts SET deptno = 2, size = DEFAULT RETURNING *")
    assert hr.execute("SELECT * FROM depts").fetchall() == [(2, "one", 3, 6)]
    hr.commit()
    for text in ("UPDATE depts SET name = ''", "UPDATE depts SET size = 0", "INSERT INTO depts VALUES (NULL, 'x')"):
        with pytest.raises(dbapi.IntegrityError):
            hr.execute(text)
        hr.rollback()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CREATE TABLE depts (deptno INT, name TEXT PRIMARY KEY)", ["PRIMARY KEY (name)", "deptno"]),
        ("CREATE TABLE depts (deptno INT PRIMARY KEY, name TEXT UNIQUE)", ["UNIQUE (name)", "journalUniqueKeys"]),
        ("CREATE TABLE depts (deptno INT, version_number INT)", ["version_number"]),
        ("CREATE TABLE depts (deptno INT REFERENCES other (id))", ["REFERENCES"]),
        ("CREATE TABLE depts AS SELECT 1 AS deptno", ["hr.depts", "INSERT"]),
        ("CREATE VIEW depts AS SELECT 1 AS deptno", ["hr.depts"]),
    ],
)
def test_what_a_journal_cannot_hold(hr: dbapi.Connection, text: str, named: list[str]) -> None:
    hr.execute("DROP TABLE depts")
    with pytest.raises(dbapi.DatabaseError) as caught:
        hr.execute(text)
    for name in named:
        assert name in str(caught.value)
