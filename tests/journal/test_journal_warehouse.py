"""The database API on Trinity tables, plain and journalled, of every format."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.journal.warehouse import model
from tests.support.journal import count, rows
from tests.support.threads import at_once
from trinity import dbapi
from trinity.cli.main import app

SESSION = Path(__file__).parent / "session.txt"


@pytest.fixture
def empty(warehouse: Path, spark: SparkSession, tiered_fmt: str, versions: str) -> Iterator[dbapi.Connection]:
    """Yield a connection with an empty table depts."""
    given = model(tiered_fmt, versions, {"depts": ["deptno"]})
    with dbapi.connect(given, warehouse=warehouse) as connection:
        connection.execute("CREATE TABLE depts (deptno INT PRIMARY KEY, name STRING NOT NULL, n INT DEFAULT 0)")
        yield connection


@pytest.fixture
def depts(empty: dbapi.Connection) -> dbapi.Connection:
    """Fill depts with (1, one, 0), (2, two, 0), (3, three, 0)."""
    empty.execute("INSERT INTO depts (deptno, name) VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    return empty


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


BIGINT_FIRST = ["BIGINT", pytest.param("TIMESTAMP", marks=pytest.mark.full)]


@pytest.mark.full
@pytest.mark.parametrize("versions", BIGINT_FIRST)
def test_returning_and_on_conflict(depts: dbapi.Connection) -> None:
    upsert = """INSERT INTO depts AS d (deptno, name) VALUES (1, 'x'), (4, 'four') ON CONFLICT (deptno)
                DO UPDATE SET name = d.name || excluded.name, n = DEFAULT RETURNING *"""
    assert sorted(rows(depts, upsert)) == [(1, "onex", 0), (4, "four", 0)]
    assert rows(depts, "UPDATE depts SET deptno = 5, n = 7 WHERE deptno = 4 RETURNING name, n + deptno AS m") == [
        ("four", 12)
    ]
    delete = "DELETE FROM depts WHERE deptno = ? RETURNING depts.*"
    found = [depts.execute(delete, [5], txn=("app", 1)).fetchall() for _ in range(2)]
    assert found == [[(5, "four", 7)], []]
    assert rows(depts) == [(1, "onex", 0), (2, "two", 0), (3, "three", 0)]


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_on_conflict_and_changes_by_other_tables(depts: dbapi.Connection, tiered_fmt: str) -> None:
    depts.execute(f"CREATE TABLE {tiered_fmt}.default.x (deptno INT, name STRING, n INT)")
    depts.execute(f"INSERT INTO {tiered_fmt}.default.x VALUES (1, 'uno', 1), (2, 'dos', 2), (4, 'cuatro', 4)")
    depts.execute(f"USE {tiered_fmt}.default")
    kept = "INSERT INTO depts VALUES (1, 'no', 1), (6, 'first', 1), (6, 'second', 2) ON CONFLICT DO NOTHING RETURNING *"
    assert rows(depts, kept) == [(6, "first", 1)]
    for repeated in (1, 8):
        with pytest.raises(dbapi.ProgrammingError) as caught:
            depts.execute(
                "INSERT INTO depts VALUES (?, 'a', 1), (?, 'b', 1) ON CONFLICT (deptno) DO UPDATE SET n = 5",
                (repeated, repeated),
            )
        assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    some = """INSERT INTO depts SELECT * FROM x ON CONFLICT (deptno) DO UPDATE SET name = excluded.name
              WHERE depts.deptno < 2"""
    assert count(depts, some) == 2
    assert count(depts, "UPDATE depts d SET (name, n) = (upper(x.name), x.n) FROM x WHERE x.deptno = d.deptno") == 3
    assert rows(depts, "SELECT name, n FROM depts WHERE n > 0 ORDER BY deptno") == [
        ("UNO", 1), ("DOS", 2), ("CUATRO", 4), ("first", 1)
    ]  # fmt: skip
    gone = "DELETE FROM depts USING x WHERE x.deptno = depts.deptno AND x.n > 1 RETURNING deptno, name"
    assert sorted(rows(depts, gone)) == [(2, "DOS"), (4, "CUATRO")]
    assert rows(depts, "DELETE FROM depts WHERE n = 99 RETURNING *") == []
    merge = """MERGE INTO depts d USING x ON d.deptno = x.deptno AND x.n < 3 WHEN MATCHED THEN UPDATE SET *
               WHEN NOT MATCHED AND x.n < 3 THEN INSERT * RETURNING d.*"""
    assert sorted(rows(depts, merge)) == [(1, "uno", 1), (2, "dos", 2)]
    for text, named in [
        ("INSERT INTO depts VALUES (9, 'x', 1) RETURNING version_number", "version_number"),
        ("INSERT INTO depts VALUES (9, 'x', 1) RETURNING nope", "RETURNING"),
        ("INSERT INTO depts VALUES (9, 'x', 1) ON CONFLICT (name) DO NOTHING", "deptno"),
        ("UPDATE depts SET name = 'x' FROM x WHERE x.n = 1 RETURNING x.n", "other tables"),
    ]:
        with pytest.raises(dbapi.DatabaseError, match=named):
            depts.execute(text)
    assert rows(depts) == [(1, "uno", 1), (2, "dos", 2), (3, "three", 0), (6, "first", 1)]


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_eight_writers_lose_nothing(depts: dbapi.Connection, warehouse: Path, tiered_fmt: str, versions: str) -> None:
    """They change a row, a row that any of them may be the first to insert, and one that all insert."""
    given = model(tiered_fmt, versions, {"depts": ["deptno"]})
    writers = [dbapi.connect(given, warehouse=warehouse) for _ in range(8)]
    inserted: list[int] = []

    def work(place: int, connection: dbapi.Connection) -> None:
        change = ("n = n + 1", "name = name || '1'")[place % 2]
        assert count(connection, f"UPDATE depts SET {change} WHERE deptno = 2") == 1
        upsert = "INSERT INTO depts VALUES (9, 'x', 1) ON CONFLICT (deptno) DO UPDATE SET n = depts.n + 1"
        assert count(connection, upsert) == 1
        with contextlib.suppress(dbapi.IntegrityError):
            inserted.append(count(connection, "INSERT INTO depts VALUES (7, 'once', 1)"))

    assert at_once([partial(work, place, writer) for place, writer in enumerate(writers)]) == []
    assert rows(depts) == [
        (1, "one", 0), (2, "two1111", 4), (3, "three", 0), (7, "once", 1), (9, "x", 8)
    ]  # fmt: skip
    assert inserted == [1]


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_archival_changes_no_read_and_shortens_the_journal(depts: dbapi.Connection, tiered_fmt: str) -> None:
    journal = depts.backend.session.table(f"{tiered_fmt}.default.depts_journal")  # type: ignore[attr-defined]
    count(depts, "UPDATE depts SET n = 1")
    count(depts, "DELETE FROM depts WHERE deptno = 3")
    before = rows(depts)
    for retention, named in [(None, "retention"), ("3 versions", "duration")]:
        with pytest.raises(dbapi.ProgrammingError, match=named):
            depts.archive("depts", retention)
    assert depts.archive("depts", "30 days") == (0, 4)
    assert rows(depts) == before == [(1, "one", 1), (2, "two", 1)]
    assert len(journal.log().collect()) == 3
    assert count(depts, "UPDATE depts SET n = 2 WHERE deptno = 1") == 1
    assert depts.archive("default.depts", "0 seconds") == (0, 2)
    assert count(depts, "INSERT INTO depts VALUES (3, 'again', 0)") == 1
    assert rows(depts) == [(1, "one", 2), (2, "two", 1), (3, "again", 0)]
    with pytest.raises(dbapi.ProgrammingError, match="nope"):
        depts.archive("nope", "1 day")


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT"])
def test_definitions_land_on_the_journal(depts: dbapi.Connection, warehouse: Path, tiered_fmt: str) -> None:
    other = dbapi.connect(model(tiered_fmt, "BIGINT", {"depts": ["deptno"]}), warehouse=warehouse)
    depts.execute("ALTER TABLE depts ADD COLUMN note STRING")
    assert count(other, "UPDATE depts SET note = 'x' WHERE deptno = 1") == 1
    depts.execute("ALTER TABLE depts RENAME COLUMN note TO remark")
    assert rows(depts, "SELECT name, remark FROM depts WHERE deptno < 3 ORDER BY 1") == [("one", "x"), ("two", None)]
    depts.execute("ALTER TABLE depts DROP COLUMN remark")
    with pytest.raises(dbapi.NotSupportedError, match="deptno"):
        depts.execute("ALTER TABLE depts DROP COLUMN deptno")
    assert rows(depts) == [(1, "one", 0), (2, "two", 0), (3, "three", 0)]
    journal = depts.backend.session.table(f"{tiered_fmt}.default.depts_journal")  # type: ignore[attr-defined]
    version = journal.splits().version
    depts.execute("TRUNCATE TABLE depts")
    assert rows(depts) == []
    assert rows(depts, f"SELECT count(*) FROM depts FOR VERSION AS OF {version}") == [(3,)]
    depts.execute("DROP TABLE depts")
    with pytest.raises(dbapi.ProgrammingError, match=r"CREATE TABLE default\.depts"):
        rows(depts)


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_unique_keys(depts: dbapi.Connection, warehouse: Path, tiered_fmt: str) -> None:
    given = model(tiered_fmt, "BIGINT", {"depts": ["deptno"]})
    given["schemas"][0]["operand"]["journalUniqueKeys"] = {"depts": ["Name"]}
    with dbapi.connect(given, warehouse=warehouse) as connection:
        for text in (
            "INSERT INTO depts VALUES (5, 'one', 0)", "UPDATE depts SET name = 'two' WHERE deptno = 1",
            "INSERT INTO depts VALUES (5, 'x', 0), (6, 'x', 0)",
        ):  # fmt: skip
            with pytest.raises(dbapi.IntegrityError, match="name"):
                connection.execute(text)
        swap = "UPDATE depts SET name = CASE name WHEN 'one' THEN 'two' ELSE 'one' END WHERE deptno < 3"
        assert count(connection, swap) == 2
        upsert = "INSERT INTO depts VALUES (9, 'one', 5) ON CONFLICT (name) DO UPDATE SET n = excluded.n"
        assert count(connection, upsert) == 1
        kept = "INSERT INTO depts VALUES (9, 'one', 5), (10, 'ten', 5) ON CONFLICT DO NOTHING"
        assert count(connection, kept) == 1
        assert count(connection, "DELETE FROM depts WHERE name = 'three'") == 1
        assert count(connection, "INSERT INTO depts VALUES (5, 'three', 0)") == 1
        assert rows(connection) == [(1, "two", 0), (2, "one", 5), (5, "three", 0), (10, "ten", 5)]
    given["schemas"][0]["operand"]["journalUniqueKeys"] = {"depts": ["nope"]}
    with pytest.raises(dbapi.InterfaceError, match="journalUniqueKeys"):
        dbapi.connect(given, warehouse=warehouse)


@pytest.mark.full
def test_names_in_any_case_and_long_statements(warehouse: Path, spark: SparkSession, tiered_fmt: str) -> None:
    with dbapi.connect(model(tiered_fmt, "BIGINT", {"Naïve": ["DeptNo"]}), warehouse=warehouse) as connection:
        connection.execute("CREATE TABLE `Naïve` (DEPTNO INT PRIMARY KEY, `Wörld``x` STRING)")
        big = "x'" * 500_000
        assert count(connection, "INSERT INTO naïve (deptno, `wörld``x`) VALUES (1, ?)", big) == 1
        assert count(connection, "UPDATE NAÏVE SET `WÖRLD``X` = concat(`wörld``x`, ?) WHERE DeptNo = 1", "☃") == 1
        assert rows(connection, "SELECT `wörld``x` = ? FROM `Naïve`", big + "☃") == [(True,)]
    with dbapi.connect(model(tiered_fmt, "BIGINT", {"naïve": ["deptno"]}), warehouse=warehouse) as connection:
        assert count(connection, "DELETE FROM naïve") == 1


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_what_trinity_tables_do_not_offer(empty: dbapi.Connection) -> None:
    for text in (
        "VACUUM depts", "CREATE INDEX i ON depts (name)", "WITH d AS (DELETE FROM depts) SELECT 1",
        "SELECT * FROM depts FOR UPDATE", "CREATE UNIQUE INDEX i ON depts (name)",
    ):  # fmt: skip
        with pytest.raises(dbapi.NotSupportedError):
            empty.execute(text)
    for text in ("SELEC * FROM depts", "SELEC 1"):
        with pytest.raises(dbapi.ProgrammingError, match="'SELECT'"):
            empty.execute(text)
    with pytest.raises(dbapi.NotSupportedError):
        empty.rollback()
    with pytest.raises(dbapi.NotSupportedError):
        empty.autocommit = False
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


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT"])
def test_the_seeds_session(
    warehouse: Path, spark: SparkSession, fmt: str, versions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements of the seed run on a warehouse whose journal is made first."""
    monkeypatch.chdir(tmp_path)
    path = Path("journalled-sql-rewriter-example/src/main/resources/myTestModel.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(model(fmt, versions, {"depts": ["deptno"]}, schema="hr")))
    typed, shown = SESSION.read_text().split("---- shown ----\n")
    lines = [
        f"CREATE SCHEMA {fmt}.hr;",
        "CREATE TABLE hr.depts (deptno INT PRIMARY KEY, department_name STRING);",
    ]
    connect, *statements = typed.splitlines()
    given = "\n".join([connect, *lines, *statements])
    found = CliRunner().invoke(app, ["shell", "-w", str(warehouse)], input=given)
    assert found.exit_code == 0, found.output
    expected = [line for line in shown.splitlines() if line.startswith("| ") and "deptno" not in line]
    got = [
        " ".join(line.split()) for line in found.stdout.splitlines() if line.startswith("| ") and "deptno" not in line
    ]
    assert sorted(got[:2]) == sorted(expected[:2])
    assert got[2:] == expected[2:]
