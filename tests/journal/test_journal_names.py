"""Names in statements on journalled tables of PostgreSQL: search paths, quotes, schemas, and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.journal import count, rows
from trinity import dbapi


def test_a_table_or_view_that_bears_the_name_is_hidden(
    depts: dbapi.Connection, postgres: psycopg.Connection[Any]
) -> None:
    postgres.execute("CREATE TABLE hr.depts (deptno INT, name TEXT)")
    postgres.execute("INSERT INTO hr.depts VALUES (99, 'hidden')")
    assert len(rows(depts, "SELECT * FROM hr.depts")) == 3
    count(depts, "DELETE FROM hr.depts")
    depts.commit()
    assert postgres.execute("SELECT count(*) FROM hr.depts").fetchone() == (1,)
    assert ("hr", "depts", "JOURNALLED TABLE") in depts.backend.tables()
    assert ("hr", "depts", "BASE TABLE") not in depts.backend.tables()


def test_unqualified_names_follow_the_search_path(
    connect: Callable[..., dbapi.Connection],
    hr: dbapi.Connection,
    model: dict[str, Any],
    postgres: psycopg.Connection[Any],
) -> None:
    hr.execute("INSERT INTO hr.depts VALUES (1, 'journalled')")
    hr.commit()
    model["defaultSchema"] = ""
    other = connect()
    postgres.execute("CREATE SCHEMA IF NOT EXISTS before; DROP TABLE IF EXISTS before.depts")
    postgres.execute("CREATE TABLE before.depts AS SELECT 2 AS deptno, 'ordinary' AS name")
    other.execute("SET search_path = hr, before")
    assert rows(other) == [(1, "journalled")]
    other.execute("SET search_path = before, hr")
    assert rows(other) == [(2, "ordinary")]
    with pytest.raises(dbapi.ProgrammingError):
        other.execute("SET search_path = public") and rows(other)


def test_names_that_need_quotes(connect: Callable[..., dbapi.Connection], model: dict[str, Any]) -> None:
    model["schemas"][0]["operand"]["journalTables"] = {'Order "x"': ["The Key", "select"], "naïve": ["é"]}
    other = connect()
    other.execute(
        'CREATE TABLE hr."Order ""x""" ("The Key" INT, "select" TEXT, "Wörld" TEXT, PRIMARY KEY ("The Key", "select"))'
    )
    assert count(other, 'INSERT INTO "Order ""x""" VALUES (1, \'a\', \'b\')') == 1
    assert count(other, 'UPDATE "Order ""x""" AS "T t" SET "select" = \'c\' WHERE "T t"."The Key" = 1') == 1
    assert rows(other, 'SELECT * FROM hr."Order ""x"""') == [(1, "c", "b")]
    assert count(other, 'DELETE FROM "Order ""x""" WHERE "Wörld" = ?', "b") == 1
    with pytest.raises(dbapi.ProgrammingError):
        other.execute('SELECT * FROM "order ""x"""')


def test_a_prepared_model_meets_the_database(
    connect: Callable[..., dbapi.Connection], postgres: psycopg.Connection[Any], versions: str
) -> None:
    kind = "BIGINT" if versions == "BIGINT" else "TIMESTAMPTZ"
    other = "TIMESTAMPTZ" if versions == "BIGINT" else "BIGINT"
    for columns, named in [
        (f"deptno INT, version_number {other}, subsequent_version_number {other}", ["journalVersionType", versions]),
        (f"no INT, version_number {kind}, subsequent_version_number {kind}", ["key", "deptno"]),
        (f"deptno INT, subsequent_version_number {kind}", ["journalVersionField", "version_number"]),
    ]:
        postgres.execute("DROP TABLE IF EXISTS hr.depts_journal")
        postgres.execute(f"CREATE TABLE hr.depts_journal ({columns})")
        with pytest.raises(dbapi.InterfaceError) as caught:
            connect()
        for name in ["'hr'", "'depts'", *named]:
            assert name in str(caught.value)
    postgres.execute("DROP TABLE hr.depts_journal")
    postgres.execute(
        f"CREATE TABLE hr.depts_journal (version_number {kind}, deptno INT, subsequent_version_number {kind})"
    )
    keyless = connect()
    assert rows(keyless, "SELECT * FROM depts") == []
    with pytest.raises(dbapi.InterfaceError, match="unique index"):
        keyless.execute("DELETE FROM depts")
    with pytest.raises(dbapi.ProgrammingError, match=r"CREATE TABLE hr\.emps"):
        keyless.execute("SELECT * FROM emps")


def test_a_schema_that_has_another_name_on_the_backend(
    connect: Callable[..., dbapi.Connection], model: dict[str, Any], postgres: psycopg.Connection[Any]
) -> None:
    """DML and ordinary tables beside the journalled ones use the name, too."""
    model["defaultSchema"] = model["schemas"][0]["name"] = "people"
    model["schemas"][0]["operand"]["jdbcCatalog"] = "postgres"
    other = connect(autocommit=True)
    other.execute("CREATE TABLE people.depts (deptno SERIAL PRIMARY KEY, name TEXT)")
    assert rows(other, "INSERT INTO postgres.people.depts (name) VALUES ('a'), ('b') RETURNING *") == [
        (1, "a"),
        (2, "b"),
    ]
    assert count(other, "UPDATE depts SET name = upper(name) WHERE deptno = 1") == 1
    other.execute("CREATE TABLE people.plain AS SELECT deptno FROM people.depts")
    assert rows(other, "SELECT d.name FROM people.depts d JOIN people.plain USING (deptno) ORDER BY 1") == [
        ("A",),
        ("b",),
    ]
    assert postgres.execute("SELECT count(*) FROM hr.depts_journal").fetchone() == (3,)
    assert postgres.execute("SELECT count(*) FROM hr.plain").fetchone() == (2,)


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_definitions_and_columns_use_the_other_name_too(
    connect: Callable[..., dbapi.Connection], model: dict[str, Any], postgres: psycopg.Connection[Any]
) -> None:
    """The backend has a schema of the users' name as well, which no statement touches."""
    model["defaultSchema"] = model["schemas"][0]["name"] = "people"
    model["schemas"][0]["operand"]["jdbcSchema"] = "human"
    postgres.execute("DROP SCHEMA IF EXISTS people, human CASCADE; CREATE SCHEMA people")
    for name in ("plain", "rest"):
        postgres.execute(f"CREATE TABLE people.{name} (id INT, z INT); INSERT INTO people.{name} VALUES (7, 7)")
    other = connect(autocommit=True)
    other.execute("CREATE SCHEMA people")
    other.execute("CREATE TABLE people.plain (id INT, n INT)")
    other.execute("CREATE TABLE people.rest (id INT)")
    other.execute("INSERT INTO people.plain VALUES (1, 1), (2, 2)")
    other.execute("INSERT INTO people.rest VALUES (1)")
    assert rows(other, "SELECT people.plain.n, people.rest.* FROM people.plain JOIN people.rest USING (id)") == [(1, 1)]
    assert count(other, "UPDATE people.plain SET n = 5 WHERE people.plain.id = 1") == 1
    assert count(other, "DELETE FROM people.plain WHERE people.plain.id = 2") == 1
    other.execute("ALTER TABLE people.plain ADD COLUMN z INT DEFAULT 3")
    other.execute("CREATE INDEX by_n ON people.plain (n)")
    other.execute("DROP INDEX people.by_n")
    assert rows(other, "SELECT * FROM people.plain") == [(1, 5, 3)]
    other.execute("TRUNCATE people.rest")
    other.execute("DROP TABLE people.plain")
    assert postgres.execute("SELECT count(*) FROM human.rest").fetchone() == (0,)
    other.execute("DROP SCHEMA people CASCADE")
    for name in ("plain", "rest"):
        assert postgres.execute(f"SELECT id, z FROM people.{name}").fetchall() == [(7, 7)]
    postgres.execute("DROP SCHEMA people CASCADE")
