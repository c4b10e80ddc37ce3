"""PEP 249, by the suite that its drivers share (PyPI ``dbapi-compliance``), on ordinary and on journalled tables."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import dbapi20
import pytest

from trinity import dbapi

# PEP 249 leaves these open, and the suite wants them overridden: whether there are several result sets, what
# setoutputsize does, and whether close() of a closed connection is an error (the suite and we say it is).
LEFT_OPEN = {"test_nextset", "test_setoutputsize"}
CHECKS = sorted({n for n in dir(dbapi20.DatabaseAPI20Test) if n.startswith("test_")} - LEFT_OPEN)


class Suite(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]  # it has no types
    """PEP 249's suite of tests on one model."""

    __test__ = False  # run check by check below
    driver = dbapi
    connect_args = ()

    def _connect(self) -> dbapi.Connection:
        opened: dbapi.Connection = super()._connect()
        self.addCleanup(_closed, opened)  # some checks do not close it
        return opened


def _closed(connection: dbapi.Connection) -> None:
    with contextlib.suppress(dbapi.Error):  # closed by the check itself
        connection.close()


class JournalledSuite(Suite):
    """The same suite with keys in the definitions of its two tables."""

    ddl1 = "CREATE TABLE dbapi20test_booze (name VARCHAR(20), PRIMARY KEY (name))"
    ddl2 = "CREATE TABLE dbapi20test_barflys (name VARCHAR(20), drink VARCHAR(30), PRIMARY KEY (name))"


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("suite", [Suite, JournalledSuite])
def test_dbapi20(postgres: object, model: dict[str, Any], versions: str, suite: type[Suite], check: str) -> None:
    given = copy.deepcopy(model)
    if suite is JournalledSuite:
        given["schemas"][0]["operand"]["journalTables"] = {
            "dbapi20test_booze": ["name"],
            "dbapi20test_barflys": ["name"],
        }
    elif versions == "TIMESTAMP":
        return  # ordinary tables have no versions
    given["schemas"][0]["operand"]["jdbcUrl"] += "?currentSchema=hr"
    case = suite(check)
    case.connect_kw_args = {"model": given}
    result = case.run()
    assert result is not None
    assert not [text for _, text in [*result.errors, *result.failures]]
    assert result.testsRun == 1


def test_the_exceptions_are_a_tree() -> None:
    assert not issubclass(dbapi.Warning, dbapi.Error)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert not issubclass(dbapi.InterfaceError, dbapi.DatabaseError)
    for name in (
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)


def test_descriptions_and_row_counts(hr: dbapi.Connection) -> None:
    cursor = hr.cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    cursor.execute("SELECT empid, salary, born, 'x' AS label FROM emps")
    assert cursor.description is not None
    assert [d[0] for d in cursor.description] == ["empid", "salary", "born", "label"]
    assert [len(d) for d in cursor.description] == [7] * 4
    kinds = [d[1] for d in cursor.description]
    assert kinds == [dbapi.NUMBER, dbapi.NUMBER, dbapi.DATETIME, dbapi.STRING]
    assert kinds[0] != dbapi.STRING
    assert hr.execute("SELECT * FROM depts").description is not None
    cursor.execute("INSERT INTO depts VALUES (1, 'a'), (2, 'b')")
    assert cursor.rowcount == 2
    cursor.execute("UPDATE depts SET deptno = deptno + 5")
    assert cursor.rowcount == 2
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchall()


def test_fetching(hr: dbapi.Connection) -> None:
    hr.cursor().executemany("INSERT INTO depts VALUES (?, ?)", [(i, str(i)) for i in range(5)])
    cursor = hr.execute("SELECT deptno FROM depts ORDER BY 1")
    assert cursor.fetchmany() == [(0,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(1,), (2,)]
    assert cursor.fetchone() == (3,)
    assert list(cursor) == [(4,)]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    with pytest.raises(dbapi.ProgrammingError):
        cursor.executemany("SELECT ?", [(1,)])


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_the_wrong_number_of_parameters(hr: dbapi.Connection, values: tuple[int, ...]) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="2 parameters"):
        hr.execute("SELECT * FROM depts WHERE deptno IN (?, ?)", values)


@pytest.mark.parametrize(
    "text", ["", " ; ", "-- nothing", "SELECT 1; SELECT 2", "SELECT 'open", "SELECT $1 FROM depts"]
)
def test_one_statement_at_a_time(hr: dbapi.Connection, text: str) -> None:
    with pytest.raises(dbapi.ProgrammingError) as caught:
        hr.execute(text)
    assert caught.value.code == "SYNTAX_ERROR"


@pytest.mark.parametrize("text", ["SELEC * FROM depts", "SELEC 1", "INSRT INTO hr.depts VALUES (1, 'a')"])
def test_a_misspelt_statement_is_a_programming_error(hr: dbapi.Connection, text: str) -> None:
    with pytest.raises(dbapi.ProgrammingError) as caught:
        hr.execute(text)
    assert caught.value.code == "SYNTAX_ERROR"
    assert text.split()[0] in caught.value.message


def test_parameters_are_a_sequence(hr: dbapi.Connection) -> None:
    for values in ("a", 5):
        with pytest.raises(dbapi.ProgrammingError, match="sequence"):
            hr.execute("SELECT ?", values)


def test_after_close_nothing_works(hr: dbapi.Connection, connect: Callable[..., dbapi.Connection]) -> None:
    other = connect()
    cursor = other.cursor()
    used = other.execute("SELECT 1")
    used.close()
    with pytest.raises(dbapi.InterfaceError):
        used.fetchall()
    other.execute("INSERT INTO depts VALUES (1, 'lost')")
    other.close()
    for use in (other.cursor, other.commit, other.rollback, other.close, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError):
            use()
    assert hr.execute("SELECT * FROM depts").fetchall() == []


def test_what_cannot_be_connected(model: dict[str, Any]) -> None:
    with pytest.raises(dbapi.InterfaceError, match="model="):
        dbapi.connect()
    model["schemas"][0]["operand"]["jdbcUrl"] = "jdbc:postgresql://127.0.0.1:1/none"
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(model)
    del model["schemas"][0]["operand"]["jdbcUrl"], model["schemas"][0]["operand"]["jdbcDriver"]
    with pytest.raises(dbapi.InterfaceError, match="backend"):
        dbapi.connect(model)


def test_what_is_not_offered(hr: dbapi.Connection) -> None:
    cursor = hr.cursor()
    assert not hasattr(cursor, "nextset")
    assert not hasattr(cursor, "callproc")
    cursor.setinputsizes([1])
    cursor.setoutputsize(5, 1)
