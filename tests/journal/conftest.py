"""Fixtures: one PostgreSQL for the run, in a temporary folder on a free port; a fresh schema for each test."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from trinity import dbapi

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "timezone": "UTC",
    "deadlock_timeout": "200ms",
}


def _binary(name: str) -> str:
    """``initdb`` or ``pg_ctl``: on the PATH, or where Debian has it."""
    if found := shutil.which(name):
        return found
    known = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    assert known, f"PostgreSQL's {name} is not on this machine: install the package postgresql"
    return str(known[-1])


def _user() -> str | None:
    """Who runs the server, which refuses root; None for the user of the tests."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@contextlib.contextmanager
def running_server() -> Iterator[dict[str, str]]:
    """Starts a server and stops it afterwards; what psycopg needs to reach it."""
    folder = Path(tempfile.mkdtemp(prefix="trinity-postgres-"))
    user = _user()
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def run(*command: str) -> None:
        subprocess.run(
            command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}
        )

    try:
        run(
            _binary("initdb"), "-D", "data", "-U", "tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        port = _free_port()
        options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in {**_SETTINGS, "port": port}.items())
        run(_binary("pg_ctl"), "-D", "data", "-w", "-l", "log", "-o", options, "start")
        try:
            yield {"host": "127.0.0.1", "port": port, "user": "tests", "dbname": "postgres"}
        finally:
            run(_binary("pg_ctl"), "-D", "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture(scope="session")
def server() -> Iterator[dict[str, str]]:
    """The server of the whole run: what psycopg needs to reach it."""
    with running_server() as options:
        yield options


@pytest.fixture
def plain(server: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """A connection without the rewriter, and an empty schema hr."""
    with psycopg.connect(**server, autocommit=True) as connection:  # type: ignore[arg-type]  # not all are str
        connection.execute("DROP SCHEMA IF EXISTS hr CASCADE")
        connection.execute("CREATE SCHEMA hr")
        connection.execute("SET search_path = hr")
        yield connection


@pytest.fixture(params=["BIGINT", "TIMESTAMP"])
def versions(request: pytest.FixtureRequest) -> str:
    """Each version type in turn."""
    return str(request.param)


@pytest.fixture
def model(server: dict[str, str], versions: str) -> dict[str, Any]:
    """The seed's model: hr.depts by deptno and hr.emps by empid."""
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
def opened(plain: psycopg.Connection[Any], model: dict[str, Any]) -> Iterator[Open]:
    """Opens connections with the model; they are closed after the test."""
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
def hr(opened: Open) -> dbapi.Connection:
    """A connection with empty journalled tables depts and emps."""
    connection = opened()
    connection.execute("CREATE TABLE hr.depts (deptno SERIAL PRIMARY KEY, name VARCHAR(10) NOT NULL)")
    connection.execute(
        "CREATE TABLE hr.emps (empid INT PRIMARY KEY, deptno INT DEFAULT 7, salary NUMERIC(8,2), born DATE)"
    )
    connection.commit()
    return connection
