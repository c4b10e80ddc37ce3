"""Transactions and concurrent writers on PostgreSQL: nothing is lost under either version type (J1, J7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.threads import at_once
from trinity import dbapi

Open = Callable[..., dbapi.Connection]


def names(connection: dbapi.Connection) -> list[str]:
    return [n for (n,) in connection.execute("SELECT name FROM depts ORDER BY deptno").fetchall()]


@pytest.fixture
def one(hr: dbapi.Connection) -> dbapi.Connection:
    """Fill depts with (1, one) and emps with (1, 0, 0, NULL)."""
    hr.execute("INSERT INTO depts VALUES (1, 'one')")
    hr.execute("INSERT INTO emps VALUES (1, 0, 0, NULL)")
    hr.commit()
    return hr


def test_commit_rollback_and_visibility(one: dbapi.Connection, connect: Open) -> None:
    other = connect()
    one.execute("UPDATE depts SET name = 'new'")
    assert names(one) == ["new"]
    assert names(other) == ["one"]
    one.rollback()
    assert names(one) == ["one"]
    one.execute("UPDATE depts SET name = 'new'")
    one.commit()
    assert names(other) == ["new"]
    with connect() as third:
        third.execute("DELETE FROM depts")
    assert names(other) == []
    third = connect()
    third.execute("INSERT INTO depts VALUES (2, 'x')")
    with pytest.raises(dbapi.DataError), third:
        third.execute("SELECT 1/0 FROM depts")
    assert names(other) == []


def test_autocommit_savepoints_and_failed_transactions(one: dbapi.Connection, connect: Open) -> None:
    other = connect(autocommit=True)
    other.execute("UPDATE depts SET name = 'auto'")
    assert names(one) == ["auto"]
    with pytest.raises(dbapi.IntegrityError):
        other.execute("INSERT INTO depts VALUES (1, 'x')")
    assert names(other) == ["auto"]
    one.execute("INSERT INTO depts VALUES (2, 'two')")
    one.execute("SAVEPOINT a")
    one.execute("DELETE FROM depts")
    with pytest.raises(dbapi.IntegrityError):
        one.execute("INSERT INTO depts VALUES (5, NULL)")
    with pytest.raises(dbapi.InternalError):
        one.execute("SELECT * FROM depts")
    one.execute("ROLLBACK TO SAVEPOINT a")
    one.execute("UPDATE depts SET name = 'kept' WHERE deptno = 2")
    one.commit()
    assert names(other) == ["auto", "kept"]


def test_many_statements_of_one_transaction_on_one_key(one: dbapi.Connection) -> None:
    for i in range(20):
        one.execute("UPDATE depts SET name = ? WHERE deptno = 1", (f"round {i}",))
        one.execute("UPDATE emps SET salary = salary + 1")
    one.execute("DELETE FROM depts")
    one.execute("INSERT INTO depts VALUES (1, 'back')")
    one.commit()
    assert names(one) == ["back"]
    assert one.execute("SELECT salary FROM emps").fetchall() == [(20,)]


@pytest.mark.parametrize(("writers", "times"), [(8, 5), pytest.param(8, 100, marks=pytest.mark.full)])
def test_no_update_of_eight_writers_is_lost(one: dbapi.Connection, connect: Open, writers: int, times: int) -> None:
    """They change different columns and the same one, in transactions of several statements."""
    connections = [connect() for _ in range(writers)]

    def work(connection: dbapi.Connection, column: str) -> None:
        for _ in range(times):
            assert connection.execute(f"UPDATE emps SET {column} = {column} + 1 WHERE empid = 1").rowcount == 1
            connection.commit()

    works = [lambda c=c, i=i: work(c, ("salary", "deptno")[i % 2]) for i, c in enumerate(connections)]
    assert at_once(works) == []
    assert one.execute("SELECT salary, deptno FROM emps").fetchall() == [(writers * times / 2, writers * times / 2)]


def test_a_transaction_that_began_earlier_loses_nothing(one: dbapi.Connection, connect: Open) -> None:
    early = connect()
    early.execute("SELECT now()")  # its transaction begins here
    one.execute("UPDATE depts SET name = 'later'")
    one.execute("UPDATE emps SET deptno = 5")
    one.commit()
    early.execute("UPDATE depts SET name = name || '+'")
    early.execute("UPDATE emps SET salary = 9")
    early.commit()
    assert names(one) == ["later+"]
    assert one.execute("SELECT deptno, salary FROM emps").fetchall() == [(5, 9)]


def waits_for(plain: psycopg.Connection[Any], count: int) -> None:
    """Wait until this many connections wait for an advisory lock, as the server reports."""
    text = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while plain.execute(text).fetchone() != (count,):
        plain.execute("SELECT pg_sleep(0.01)")


def test_a_deletion_wins_over_an_update_that_waited(
    one: dbapi.Connection, connect: Open, postgres: psycopg.Connection[Any]
) -> None:
    other = connect()
    found: list[int] = []
    one.execute("DELETE FROM depts WHERE deptno = 1")
    thread = threading.Thread(
        target=lambda: found.append(other.execute("UPDATE depts SET name = 'x' WHERE deptno = 1").rowcount)
    )
    thread.start()
    waits_for(postgres, 1)
    one.commit()
    thread.join()
    other.commit()
    assert found == [0]
    assert names(one) == []


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_an_insert_waits_for_another_of_the_same_key(
    hr: dbapi.Connection, connect: Open, postgres: psycopg.Connection[Any], ending: str
) -> None:
    other = connect()
    errors: list[Exception] = []

    def insert() -> None:
        try:
            other.execute("INSERT INTO depts VALUES (7, 'second')")
            other.commit()
        except dbapi.IntegrityError as error:
            errors.append(error)

    hr.execute("INSERT INTO depts VALUES (7, 'first')")
    thread = threading.Thread(target=insert)
    thread.start()
    waits_for(postgres, 1)
    getattr(hr, ending)()
    thread.join()
    other.rollback()
    assert names(hr) == (["first"] if ending == "commit" else ["second"])
    assert len(errors) == (ending == "commit")


def test_rows_that_are_selected_for_update_stay_as_they_were_read(
    one: dbapi.Connection, connect: Open, postgres: psycopg.Connection[Any]
) -> None:
    other = connect()
    found: list[Any] = []
    one.execute("UPDATE depts SET name = 'first' WHERE deptno = 1")

    def read_and_write() -> None:
        found.extend(other.execute("SELECT d.name FROM depts d WHERE d.deptno = ? FOR UPDATE", (1,)).fetchall())
        other.execute("UPDATE depts SET name = ? WHERE deptno = 1", (found[0][0] + "+",))
        other.commit()

    thread = threading.Thread(target=read_and_write)
    thread.start()
    waits_for(postgres, 1)
    one.commit()
    thread.join()
    assert found == [("first",)]
    assert names(one) == ["first+"]
    assert one.execute("SELECT * FROM depts ORDER BY name FOR UPDATE").fetchall() == [(1, "first+")]
    assert one.execute("SELECT * FROM depts WHERE deptno = 9 FOR SHARE").fetchall() == []


def test_writers_of_different_keys_do_not_wait(one: dbapi.Connection, connect: Open) -> None:
    other = connect()
    one.execute("UPDATE depts SET name = 'x' WHERE deptno = 1")
    other.execute("SET statement_timeout = '5s'")
    other.execute("INSERT INTO depts VALUES (2, 'two')")
    other.execute(
        "MERGE INTO depts USING (SELECT 3 AS k) s ON depts.deptno = s.k WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'm')"
    )
    other.execute("INSERT INTO depts VALUES (4, 'c') ON CONFLICT (deptno) DO UPDATE SET name = 'd'")
    other.commit()
    one.commit()
    assert names(one) == ["x", "two", "m", "c"]


def test_whole_tables_wait_for_keys(one: dbapi.Connection, connect: Open, postgres: psycopg.Connection[Any]) -> None:
    """A statement locks the table if it changes more keys than are locked one by one, or moves keys."""
    one.execute("INSERT INTO emps SELECT i, 0, 0 FROM generate_series(2, 1500) i")
    one.commit()
    other = connect()
    one.execute("UPDATE emps SET salary = salary + 1 WHERE empid = 1")
    thread = threading.Thread(target=lambda: other.execute("UPDATE emps SET salary = salary + 1"))
    thread.start()
    waits_for(postgres, 1)
    one.commit()
    thread.join()
    other.commit()
    assert one.execute("SELECT salary, count(*) FROM emps GROUP BY 1 ORDER BY 1").fetchall() == [(1, 1499), (2, 1)]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_an_old_snapshot_does_not_write_over_what_it_cannot_see(
    one: dbapi.Connection, connect: Open, level: str
) -> None:
    for change in ("UPDATE depts SET name = name || '!'", "UPDATE depts SET deptno = deptno + 1", "DELETE FROM depts"):
        other = connect()
        other.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert names(other) == ["one"]
        one.execute("UPDATE emps SET salary = 1")
        one.execute("UPDATE depts SET name = 'new'")
        one.commit()
        assert names(other) == ["one"]
        with pytest.raises(dbapi.OperationalError) as caught:
            other.execute(change)
        assert (caught.value.code, caught.value.sqlstate) == ("TRANSACTION_CONFLICT", "40001")
        other.rollback()
        other.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert other.execute(change).rowcount == 1
        other.rollback()
        one.execute("UPDATE depts SET name = 'one'")
        one.commit()


def test_versions_grow_although_the_clock_steps_back(connect: Open, one: dbapi.Connection, versions: str) -> None:
    if versions == "TIMESTAMP":
        one.execute("UPDATE hr.depts_journal SET version_number = now() + interval '1 day'")
    one.execute("UPDATE depts SET name = 'a'")
    one.execute("UPDATE depts SET name = 'b'")
    assert names(one) == ["b"]
    one.execute("DELETE FROM depts")
    assert names(one) == []
    one.execute("INSERT INTO depts VALUES (1, 'c')")
    assert names(one) == ["c"]


def test_the_original_driver_reads_and_writes_the_same_journals(one: dbapi.Connection, connect: Open) -> None:
    """The seed's documented statements run on the same table."""
    one.autocommit = True
    one.execute("INSERT INTO hr.depts_journal (deptno, name) VALUES (8, 'theirs')")
    one.execute("UPDATE depts SET name = name || '!' WHERE deptno = 8")
    original = """SELECT deptno, name FROM (
                  SELECT *, MAX(version_number) OVER (PARTITION BY deptno) AS last_version_number
                  FROM hr.depts_journal) AS link_last
                  WHERE subsequent_version_number IS NULL AND version_number = last_version_number ORDER BY deptno"""
    assert one.execute(original).fetchall() == [(1, "one"), (8, "theirs!")]
    one.execute("DELETE FROM depts WHERE deptno = 1")
    assert one.execute(original).fetchall() == one.execute("SELECT * FROM depts").fetchall() == [(8, "theirs!")]


def test_archival_changes_no_read_and_shortens_the_journal(one: dbapi.Connection, versions: str) -> None:
    for i in range(5):
        one.execute("UPDATE depts SET name = ?", (str(i),))
    one.execute("INSERT INTO depts VALUES (2, 'gone')")
    one.execute("DELETE FROM depts WHERE deptno = 2")
    one.commit()
    before = one.execute("SELECT * FROM depts").fetchall()
    assert one.archive("hr.depts") == (6, 0)
    assert one.archive("depts") == (0, 0)
    assert one.execute("SELECT * FROM depts").fetchall() == before
    one.execute("UPDATE depts SET name = 'after' WHERE deptno = 1")
    assert names(one) == ["after"]
    one.commit()
    if versions == "BIGINT":
        assert one.archive("depts", "2") == (1, 4)
        with pytest.raises(dbapi.ProgrammingError, match="number of versions"):
            one.archive("depts", "2 days")
    else:
        assert one.archive("depts", "0 seconds")[1] == 8
    assert names(one) == ["after"]
    one.execute("INSERT INTO depts VALUES (2, 'again')")
    assert names(one) == ["after", "again"]
    with pytest.raises(dbapi.ProgrammingError):
        one.archive("x")
