"""Tables in a bucket through the database API and the commands: journals, the shell, statements, maintenance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.journal.warehouse import model
from tests.support.bucket_lake import BucketLake
from tests.support.journal import count, rows
from trinity import dbapi

pytestmark = pytest.mark.full


def test_a_journalled_table(cloud: BucketLake, spark: SparkSession, warehouse: Path) -> None:
    given = model("lake", "BIGINT", {"depts": ["deptno"]})
    with dbapi.connect(given, warehouse=warehouse, catalogs={"lake": cloud.settings()}, catalog="lake") as connection:
        connection.execute("CREATE TABLE depts (deptno INT PRIMARY KEY, name STRING NOT NULL, n INT DEFAULT 0)")
        made = "INSERT INTO depts (deptno, name) VALUES (?, ?)"
        cursor = connection.cursor()
        cursor.executemany(made, [(1, "one"), (2, "two"), (3, "three")])
        assert cursor.rowcount == 3
        assert count(connection, "UPDATE depts SET n = n + 1 WHERE deptno < 3") == 2
        assert count(connection, "DELETE FROM depts WHERE deptno = 2") == 1
        upsert = """INSERT INTO depts VALUES (1, 'x', 7), (4, 'four', 7) ON CONFLICT (deptno)
                    DO UPDATE SET n = excluded.n RETURNING name"""
        assert sorted(rows(connection, upsert)) == [("four",), ("one",)]
        with pytest.raises(dbapi.IntegrityError):
            connection.execute("INSERT INTO depts VALUES (3, 'again', 0)")
        now = [(1, "one", 7), (3, "three", 0), (4, "four", 7)]
        assert rows(connection) == now
        connection.archive("depts", "30 days")
        assert rows(connection) == now
        journal = connection.backend.session.table("lake.default.depts_journal")  # type: ignore[attr-defined]
        assert journal.location.startswith(cloud.place)


@pytest.fixture
def run(cloud: BucketLake, place: str) -> Callable[..., str]:
    """Return a function that runs a command in a process that gets the store's options from its environment."""

    def called(*words: str) -> str:
        command = [sys.executable, "-c", "from trinity.cli.main import app; app()", *words, "-w", place]
        environment = {**os.environ, **cloud.environment, "COLUMNS": "200"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        return done.stdout

    return called


@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
def test_the_commands(run: Callable[..., str]) -> None:
    names = ("parquet.default.t", "delta.default.t")
    script = [
        statement
        for name in names
        for statement in (
            f"CREATE TABLE {name} (k INT, v STRING, PRIMARY KEY (k))",
            f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')",
            f"UPDATE {name} SET v = 'c' WHERE k = 2",
        )
    ]
    run("shell", *[word for statement in script for word in ("-e", statement)])
    for name in names:
        assert name in run("health", name)
        changed = run("tail", name, "--after", "1", "--once", "-o", "json")
        assert {json.loads(line)["v"] for line in changed.splitlines()} >= {"c"}
        assert "nothing is damaged" in run("repair", name)
    kept = run("maintain", "--vacuum", "0 seconds")
    assert [name for name in names if name not in kept] == []
    both = " UNION ALL ".join(f"SELECT k, v FROM {name}" for name in names)
    found = run("shell", "-e", f"SELECT * FROM ({both}) ORDER BY k", "-o", "json")
    assert json.loads(found) == [{"k": 1, "v": "a"}] * 2 + [{"k": 2, "v": "c"}] * 2
    assert "c" in run("sql", f"SELECT v FROM {names[1]} WHERE k = 2")
