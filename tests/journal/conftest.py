"""Fixtures: an empty schema hr, a model and connections for each test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from trinity import dbapi


@pytest.fixture
def postgres(server: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection without the rewriter, and an empty schema hr."""
    with psycopg.connect(**server, autocommit=True) as connection:  # type: ignore[arg-type]  # not all are str
        connection.execute("DROP SCHEMA IF EXISTS hr CASCADE")
        connection.execute("CREATE SCHEMA hr")
        connection.execute("SET search_path = hr")
        yield connection


@pytest.fixture(params=["BIGINT", pytest.param("TIMESTAMP", marks=pytest.mark.full)])
def versions(request: pytest.FixtureRequest) -> str:
    """Return each version type in turn; in the short tier only numbers, unless a test asks for both."""
    return str(request.param)


@pytest.fixture
def model(server: dict[str, str], versions: str) -> dict[str, Any]:
    """Return the model of the seed: hr.depts with the key deptno and hr.emps with the key empid."""
    operand = {
        "jdbcDriver": "org.postgresql.Driver",
        "jdbcUrl": f"jdbc:postgresql://{server['host']}:{server['port']}/{server['dbname']}",
        "jdbcUser": server["user"],
        "jdbcSchema": "hr",
        "journalVersionType": versions,
        "journalDefaultKey": ["id"],
        "journalTables": {"depts": ["deptno"], "emps": ["empid"]},
    }
    factory = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
    schema = {"name": "hr", "type": "custom", "factory": factory, "operand": operand}
    return {"version": "1.0", "defaultSchema": "hr", "schemas": [schema]}


Open = Callable[..., dbapi.Connection]


@pytest.fixture
def connect(postgres: psycopg.Connection[Any], model: dict[str, Any]) -> Iterator[Open]:
    """Yield a function that opens connections with the model; close them after the test."""
    with contextlib.ExitStack() as stack:

        def connect(**options: Any) -> dbapi.Connection:
            connection = dbapi.connect(model, **options)
            stack.callback(_close, connection)
            return connection

        yield connect


def _close(connection: dbapi.Connection) -> None:
    with contextlib.suppress(dbapi.Error):
        connection.close()


@pytest.fixture
def hr(connect: Open) -> dbapi.Connection:
    """Return a connection with empty journalled tables depts and emps."""
    connection = connect()
    connection.execute("CREATE TABLE hr.depts (deptno SERIAL PRIMARY KEY, name VARCHAR(10) NOT NULL)")
    connection.execute(
        "CREATE TABLE hr.emps (empid INT PRIMARY KEY, deptno INT DEFAULT 7, salary NUMERIC(8,2), born DATE)"
    )
    connection.commit()
    return connection


@pytest.fixture
def depts(hr: dbapi.Connection) -> dbapi.Connection:
    """Fill depts: (1, one), (2, two), (3, three), and an ordinary table x: (1, uno, F), (2, dos, T), (4, cuatro, F)."""
    hr.execute("INSERT INTO depts VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    hr.execute("CREATE TABLE hr.x (id INT, n TEXT, gone BOOLEAN)")
    hr.execute("INSERT INTO hr.x VALUES (1, 'uno', false), (2, 'dos', true), (4, 'cuatro', false)")
    hr.execute("SET search_path = hr")
    hr.commit()
    return hr
