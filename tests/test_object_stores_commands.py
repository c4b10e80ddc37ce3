"""Tables in a bucket through the database API and the commands: journalled tables, the shell, statements, upkeep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.journal.warehouse import count, model, rows
from tests.support.bucket_lake import BucketLake
from trinity import dbapi
from trinity.cli.main import app

pytestmark = pytest.mark.full


@pytest.fixture
def told(lake: BucketLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says how the store is reached."""
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)


def test_a_journalled_table(lake: BucketLake, spark: SparkSession, warehouse: Path) -> None:
    given = model("lake", "BIGINT", {"depts": ["deptno"]})
    with dbapi.connect(given, warehouse=warehouse, catalogs={"lake": lake.settings()}, catalog="lake") as connection:
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
        assert journal.location.startswith(lake.place)


@pytest.fixture(params=["parquet", "delta"])
def catalog(request: pytest.FixtureRequest) -> str:
    """The catalogs of a warehouse in a bucket."""
    return str(request.param)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("lake", ["parquet"], indirect=True)
def test_the_commands(told: None, spark: SparkSession, place: str, catalog: str) -> None:
    at, name = ("-w", place), f"{catalog}.default.t"
    run("sql", f"CREATE TABLE {name} (k INT, v STRING, PRIMARY KEY (k))", *at)
    script = (f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')", f"UPDATE {name} SET v = 'c' WHERE k = 2")
    run("shell", *at, "-e", script[0], "-e", script[1])
    found = run("shell", *at, "-e", f"SELECT * FROM {name} ORDER BY k", "-o", "json")
    assert json.loads(found) == [{"k": 1, "v": "a"}, {"k": 2, "v": "c"}]
    assert "│ 2 │ c │" in run("sql", f"SELECT * FROM {name}", *at)
    assert name in run("health", name, *at)
    changed = run("tail", name, *at, "--after", "1", "--once", "-o", "json")
    assert {json.loads(line)["v"] for line in changed.splitlines()} == {"b", "c"}
    assert name in run("maintain", *at, "--vacuum", "0 seconds")
    assert "nothing is damaged" in run("repair", name, *at)
    left = run("shell", *at, "-e", f"SELECT count(*) AS n FROM {name}", "-o", "json")
    assert json.loads(left) == [{"n": 2}]
