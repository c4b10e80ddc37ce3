"""The database API on Trinity tables, plain and journalled, of every format."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import dbapi20
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.threads import at_once
from trinity import dbapi
from trinity.cli.main import app

SESSION = Path(__file__).parent / "session.txt"
FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
CHECKS = sorted(
    {n for n in dir(dbapi20.DatabaseAPI20Test) if n.startswith("test_")} - {"test_nextset", "test_setoutputsize"}
)


def model(fmt: str, versions: str, tables: dict[str, list[str]], schema: str = "default") -> dict[str, Any]:
    operand = {"jdbcCatalog": fmt, "journalVersionType": versions, "journalTables": tables}
    given = {"name": schema, "type": "custom", "factory": FACTORY, "operand": operand}
    return {"version": "1.0", "defaultSchema": schema, "schemas": [given]}


@pytest.fixture
def empty(warehouse: Path, spark: SparkSession, tiered_fmt: str, versions: str) -> Iterator[dbapi.Connection]:
    """An empty table depts."""
    given = model(tiered_fmt, versions, {"depts": ["deptno"]})
    with dbapi.connect(given, warehouse=warehouse) as connection:
        connection.execute("CREATE TABLE depts (deptno INT PRIMARY KEY, name STRING NOT NULL, n INT DEFAULT 0)")
        yield connection


@pytest.fixture
def depts(empty: dbapi.Connection) -> dbapi.Connection:
    """depts: (1, one, 0), (2, two, 0), (3, three, 0)."""
    empty.execute("INSERT INTO depts (deptno, name) VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    return empty


def rows(
    connection: dbapi.Connection, text: str = "SELECT * FROM depts ORDER BY 1", *values: Any
) -> list[tuple[Any, ...]]:
    return connection.execute(text, values).fetchall()


def count(connection: dbapi.Connection, text: str, *values: Any) -> int:
    return connection.execute(text, values).rowcount


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_statements_on_a_journalled_table(depts: dbapi.Connection, tiered_fmt: str) -> None:
    journal = depts.backend.session.table(f"{tiered_fmt}.default.depts_journal")  # type: ignore[attr-defined]
    before = journal.splits().version
    assert count(depts, "UPDATE depts SET name = upper(name), n = n + ? WHERE deptno < 3", 1) == 2
    assert count(depts, "DELETE FROM depts WHERE deptno IN (SELECT max(deptno) FROM depts)") == 1
    assert rows(depts) == [(1, "ONE", 1), (2, "TWO", 1)]
    for text in ("INSERT INTO depts VALUES (1, 'x', 0)", "INSERT INTO depts (deptno, name) VALUES (9, 'x'), (9, 'y')"):
        with pytest.raises(dbapi.IntegrityError):
            depts.execute(text)
    assert count(depts, "INSERT INTO depts (deptno, name) SELECT 3, 'again'") == 1
    merge = """MERGE INTO depts d USING (VALUES (1, 'gone'), (2, 'new'), (4, 'four')) AS s(k, v) ON d.deptno = s.k
               WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.v
               WHEN NOT MATCHED THEN INSERT (deptno, name) VALUES (s.k, s.v)"""
    assert count(depts, merge) == 3
    assert count(depts, "UPDATE depts SET deptno = 1 WHERE deptno = 4") == 1
    assert rows(depts, "SELECT d.* FROM depts d JOIN (SELECT deptno FROM depts) e USING (deptno) ORDER BY 1") == [
        (1, "four", 0), (2, "new", 1), (3, "again", 0)
    ]  # fmt: skip
    with pytest.raises(dbapi.ProgrammingError, match="version_number"):
        depts.execute("SELECT version_number FROM depts")
    assert rows(depts, f"SELECT name FROM depts VERSION AS OF {before} ORDER BY deptno") == [
        ("one",),
        ("two",),
        ("three",),
    ]
    assert len(journal.log().collect()) == 12
    assert journal.compact(full=True).skipped
    assert len(journal.log().collect()) == 12


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_no_update_of_two_writers_is_lost(
    depts: dbapi.Connection, warehouse: Path, tiered_fmt: str, versions: str
) -> None:
    given = model(tiered_fmt, versions, {"depts": ["deptno"]})
    writers = [dbapi.connect(given, warehouse=warehouse) for _ in range(2)]

    def work(connection: dbapi.Connection) -> None:
        for _ in range(3):
            assert count(connection, "UPDATE depts SET n = n + 1 WHERE deptno = 2") == 1

    assert at_once([partial(work, writer) for writer in writers]) == []
    assert rows(depts, "SELECT n FROM depts WHERE deptno = 2") == [(6,)]


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_what_trinity_tables_do_not_offer(empty: dbapi.Connection) -> None:
    for text in (
        "INSERT INTO depts VALUES (1, 'x', 0) RETURNING *", "VACUUM depts", "CREATE INDEX i ON depts (name)",
        "WITH d AS (DELETE FROM depts) SELECT 1",
    ):  # fmt: skip
        with pytest.raises(dbapi.DatabaseError):
            empty.execute(text)
    with pytest.raises(dbapi.NotSupportedError):
        empty.rollback()
    with pytest.raises(dbapi.NotSupportedError):
        empty.autocommit = False
    with pytest.raises(dbapi.NotSupportedError, match=r"tombstone\.retention"):
        empty.archive("depts")
    empty.commit()
    assert ("default", "depts", "JOURNALLED TABLE") in empty.backend.tables()
    assert empty.backend.columns("depts")[0] == ("deptno", "int")


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_parameters_are_data(empty: dbapi.Connection) -> None:
    texts = ["it's \\ ? 'q'", "'; DROP TABLE depts; --", "\\'", "☃\n\t%s $1", "\\\\n"]
    assert rows(empty, "SELECT ?, ?, ?, ?, ?", *texts) == [tuple(texts)]
    given = (1, -5, 1.5, Decimal("-1.20"), None, True, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6), b"\0'")
    assert rows(empty, f"SELECT {', '.join('?' * len(given))}", *given) == [given]
    with pytest.raises(dbapi.ProgrammingError, match="1 parameters"):
        empty.execute("SELECT ?")
    with pytest.raises(dbapi.ProgrammingError, match="set"):
        empty.execute("SELECT ?", ({1},))


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_a_model_meets_the_tables(empty: dbapi.Connection, warehouse: Path, tiered_fmt: str) -> None:
    for changed, named in [
        ({"journalVersionType": "TIMESTAMP"}, "journalVersionType"),
        ({"journalTables": {"depts": ["name"]}}, "key"),
        ({"journalSubsequentVersionField": "n"}, "tombstone-key"),
    ]:
        given = model(tiered_fmt, "BIGINT", {"depts": ["deptno"]})
        given["schemas"][0]["operand"].update(changed)
        with pytest.raises(dbapi.InterfaceError, match=named):
            dbapi.connect(given, warehouse=warehouse)


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_the_seeds_session(
    warehouse: Path, spark: SparkSession, tiered_fmt: str, versions: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model(tiered_fmt, versions, {"depts": ["deptno"]}, schema="hr")))
    typed, shown = SESSION.read_text().split("---- shown ----\n")
    lines = [
        "CREATE SCHEMA " + tiered_fmt + ".hr;",
        "CREATE TABLE hr.depts (deptno INT PRIMARY KEY, department_name STRING);",
    ]
    given = "\n".join([*lines, *typed.splitlines()[1:]])
    found = CliRunner().invoke(app, ["shell", "-m", str(path), "-w", str(warehouse)], input=given)
    assert found.exit_code == 0, found.output
    expected = [line for line in shown.splitlines() if line.startswith("| ") and "deptno" not in line]
    got = [
        " ".join(line.split()) for line in found.stdout.splitlines() if line.startswith("| ") and "deptno" not in line
    ]
    assert sorted(got[:2]) == sorted(expected[:2])
    assert got[2:] == expected[2:]


KEYS, NUMBERS = st.integers(0, 4), st.sampled_from(["NULL", "0", "7", "-3"])
WHERE = st.sampled_from(["k > 1", "a IS NULL", "b = 'x'", "k IN (SELECT max(k) FROM t)", "a > 0 OR k = 2", "true"])
STATEMENTS = st.one_of(
    st.builds("INSERT INTO t (k, a, b) VALUES ({}, {}, 'x'), ({}, 1, 'y')".format, KEYS, NUMBERS, KEYS),
    st.builds("INSERT INTO t (k, a, b) SELECT k + {}, a, b FROM t WHERE {}".format, KEYS, WHERE),
    st.builds("UPDATE t SET a = a + 1, b = {} WHERE {}".format, st.sampled_from(["b || 'u'", "'x'", "NULL"]), WHERE),
    st.builds("UPDATE t SET k = k + {} WHERE {}".format, st.integers(-1, 1), WHERE),
    st.builds("DELETE FROM t WHERE {}".format, WHERE),
    st.builds(
        """MERGE INTO t USING (SELECT {} AS s, {} AS w UNION ALL SELECT 1, 5) AS u ON t.k = u.s
           WHEN MATCHED AND u.w > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET a = u.w
           WHEN NOT MATCHED THEN INSERT (k, a, b) VALUES (u.s, u.w, 'm')""".format, KEYS, KEYS,
    ),
)  # fmt: skip


@pytest.mark.full
def test_histories_are_those_of_an_ordinary_postgresql_table(
    warehouse: Path, spark: SparkSession, server: dict[str, str], tmp_path: Path
) -> None:
    """Keys of the ordinary table are checked at the end of a statement, as a journal's are."""
    unused = {"dataSource": "org.postgresql.ds.PGSimpleDataSource", "journalTables": {"none": ["k"]}}
    ordinary_model = model("parquet", "BIGINT", {}, "none")
    ordinary_model["schemas"][0]["operand"] = unused
    options: dict[str, Any] = server
    create = "CREATE TABLE t (k INT, a INT, b VARCHAR(99) NOT NULL, PRIMARY KEY (k){})"

    @settings(max_examples=6, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(st.lists(STATEMENTS, min_size=6, max_size=10))
    def agree(history: list[str]) -> None:
        with (
            dbapi.connect(ordinary_model, autocommit=True, **options) as ordinary,
            dbapi.connect(model("parquet", "BIGINT", {"t": ["k"]}), warehouse=warehouse) as journalled,
        ):
            ordinary.execute("DROP TABLE IF EXISTS t")
            ordinary.execute(create.format(" DEFERRABLE"))
            journalled.execute("DROP TABLE IF EXISTS t")
            journalled.execute(create.format(""))
            for i, text in enumerate(history):
                seen = [(outcome(c, text), rows(c, "SELECT * FROM t ORDER BY k")) for c in (journalled, ordinary)]
                assert seen[0] == seen[1], f"step {i} differs; history = {history!r}"

    agree()


def outcome(connection: dbapi.Connection, text: str) -> int | str:
    """The count, or the class of the error."""
    try:
        return count(connection, text)
    except dbapi.Error as error:
        return type(error).__name__


class Suite(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]  # it has no types
    """PEP 249's shared suite on Trinity tables."""

    __test__ = False
    driver = dbapi
    connect_args = ()


class JournalledSuite(Suite):
    """The same on journalled ones."""

    ddl1 = "CREATE TABLE dbapi20test_booze (name VARCHAR(20), PRIMARY KEY (name))"
    ddl2 = "CREATE TABLE dbapi20test_barflys (name VARCHAR(20), drink VARCHAR(30), PRIMARY KEY (name))"


@pytest.mark.full
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("suite", [Suite, JournalledSuite])
def test_dbapi20(warehouse: Path, spark: SparkSession, suite: type[Suite], check: str) -> None:
    case = suite(check)
    tables = {"dbapi20test_booze": ["name"], "dbapi20test_barflys": ["name"]}
    given = model("parquet", "BIGINT", tables) if suite is JournalledSuite else None
    case.connect_kw_args = {"model": given, "warehouse": warehouse}
    result = case.run()
    assert result is not None
    assert not [text for _, text in [*result.errors, *result.failures]]
    assert result.testsRun == 1
