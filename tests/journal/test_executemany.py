"""executemany(): an INSERT of many rows is one statement, one commit, all or nothing, and names the row that fails."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.journal.warehouse import model
from trinity import Column, Session, Table, dbapi

NOON = dt.datetime(2020, 1, 1, 12)


@pytest.fixture
def items(session: Session, fmt: str) -> Table:
    """Make an empty keyed table in every format; its column types need no Spark."""
    columns = [
        Column("id", "bigint"),
        Column("name", "varchar(10)", nullable=False),
        Column("price", "decimal(8,2)"),
        Column("at", "timestamp"),
        Column("n", "int", default="7"),
    ]
    return session.create_table(f"{fmt}.default.items", columns, primary_key=["id"])


def versions(table: Table) -> int:
    return table.history().count()


def error_of(connection: dbapi.Connection, text: str, rows: Any) -> dbapi.Error:
    with pytest.raises(dbapi.Error) as caught:
        connection.cursor().executemany(text, rows)
    return caught.value


@pytest.mark.full
@pytest.mark.tiered
def test_many_rows_are_one_commit_or_none(items: Table, warehouse: Path) -> None:
    with dbapi.connect(warehouse=warehouse) as connection:
        before = versions(items)
        given = [(i, f"name {i}", Decimal(i) / 4, NOON) for i in range(500)]
        insert = f"INSERT INTO {items.name} VALUES (?,?,?,?,DEFAULT)"
        assert connection.cursor().executemany(insert, given).rowcount == 500
        assert versions(items) == before + 1
        read = f"SELECT * FROM {items.name} ORDER BY id"
        assert connection.execute(read).fetchall() == [(*row, 7) for row in given]
        assert connection.cursor().executemany(insert, []).rowcount == 0
        for row, code, named in [
            ((1000, None, 1, NOON), "CONSTRAINT_VIOLATION", "'name'"),
            ((None, "x", 1, NOON), "CONSTRAINT_VIOLATION", "'id'"),
            ((1000, "longer than ten", 1, NOON), "CONSTRAINT_VIOLATION", "'longer than ten'"),
            ((1000, "x", 10**6, NOON), "NUMERIC_VALUE_OUT_OF_RANGE", "'price'"),
            ((1000, "x", "one", NOON), "TYPE_MISMATCH", "Parameter 3"),
            ((1000, "x", 1), "INVALID_ARGUMENTS", "4 parameters"),
        ]:
            error = error_of(connection, insert, [*given[:17], row, *given])
            assert (error.code, named in error.message) == (code, True), error
            assert error.message.startswith("Row 18 of 518: ")
        assert versions(items) == before + 1


@pytest.fixture
def small(session: Session, tiered_fmt: str) -> Table:
    """Make an empty keyed table with a constraint, which Spark checks."""
    columns = [Column("id", "int"), Column("name", "string"), Column("price", "decimal(8,2)", default="1.5")]
    return session.create_table(
        f"{tiered_fmt}.default.small", columns, primary_key=["id"], checks={"paid": "price >= 0"}
    )


@pytest.mark.full
def test_expressions_are_evaluated_for_each_row(small: Table, warehouse: Path) -> None:
    with dbapi.connect(warehouse=warehouse) as connection:
        cursor = connection.cursor()
        before = versions(small)
        insert = f"INSERT INTO {small.name} (name, id, price) VALUES (upper(?)||'?', ?+?, DEFAULT)"
        assert cursor.executemany(insert, [("a", 1, 10), (None, 2, 20)]).rowcount == 2
        cursor.executemany(f"INSERT INTO {small.name} VALUES (?, ?, ?)", [(3, "c", 0.125), (4, "d", 2)])
        assert versions(small) == before + 2
        found = cursor.execute(f"SELECT * FROM {small.name} ORDER BY id").fetchall()
        assert found == [
            (3, "c", Decimal("0.13")),
            (4, "d", 2),
            (11, "A?", Decimal("1.50")),
            (22, None, Decimal("1.50")),
        ]
        for text, rows, code, row in [
            ("VALUES (?, 'x', 10 / ?)", [(1, 5), (2, 4), (3, 0)], "INVALID_ARGUMENTS", 3),
            ("VALUES (?, 'x', ? * 1)", [(1, 5), (2, 1e7)], "NUMERIC_VALUE_OUT_OF_RANGE", 2),
            ("VALUES (?, 'x', ?)", [(1, 5), (2, 1), (3, -1), (4, 1)], "CONSTRAINT_VIOLATION", 3),
            ("VALUES (?, max(?), 1)", [(1, "a"), (2, "b")], "INVALID_ARGUMENTS", 1),
            ("(id, nam) VALUES (?, ?)", [(1, "a"), (2, "b")], "COLUMN_NOT_FOUND", 1),
        ]:
            error = error_of(connection, f"INSERT INTO {small.name} {text}", rows)
            assert (error.code, error.message[:6]) == (code, f"Row {row} "), error
        assert versions(small) == before + 2
        with pytest.raises(dbapi.ProgrammingError, match="returns rows"):
            cursor.executemany("SELECT ?", [(1,), (2,)])
        assert cursor.executemany(f"UPDATE {small.name} SET name = ? WHERE id = ?", [("x", 3), ("y", 99)]).rowcount == 1


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_a_journalled_trinity_table(warehouse: Path, spark: object, tiered_fmt: str, versions: str) -> None:
    given = model(tiered_fmt, versions, {"depts": ["deptno"]})
    with dbapi.connect(given, warehouse=warehouse) as connection:
        cursor = connection.execute(
            "CREATE TABLE depts (deptno INT PRIMARY KEY, name STRING NOT NULL, n INT DEFAULT 7)"
        )
        journal = connection.backend.session.table(f"{tiered_fmt}.default.depts_journal")  # type: ignore[attr-defined]
        rows = [(f"name {i}", i) for i in range(40)]
        insert = "INSERT INTO depts (name,deptno,n) VALUES (?,?,DEFAULT)"
        before = journal.history().count()
        assert [cursor.executemany(insert, rows, txn=("app", 1)).rowcount for _ in range(2)] == [40, 0]
        assert journal.history().count() == before + 1
        assert cursor.execute("SELECT * FROM depts WHERE deptno > 37 ORDER BY 1").fetchall() == [
            (38, "name 38", 7),
            (39, "name 39", 7),
        ]
        for row, code in [
            (("again", 5), "CONSTRAINT_VIOLATION"),
            (("twice", 101), "CONSTRAINT_VIOLATION"),
            ((None, 103), "CONSTRAINT_VIOLATION"),
            (("x", 2**40), "NUMERIC_VALUE_OUT_OF_RANGE"),
        ]:
            error = error_of(connection, insert, [("a", 101), ("b", 102), row, ("c", 104)])
            assert (error.code, error.message[:12]) == (code, "Row 3 of 4: "), error
        error = error_of(connection, f"{insert} RETURNING *", [("a", 101), ("b", 102)])
        assert "returns rows" in error.message
        assert journal.history().count() == before + 1


LATER = [
    "timestamp", "timestamp_ntz", "date", "int", "tinyint", "bigint", "float", "double", "decimal(38,10)", "string",
    "varchar(3)", "char(3)", "binary", "boolean",
]  # fmt: skip
COLUMNS = ["decimal(8,2)", *(pytest.param(kind, marks=pytest.mark.full) for kind in LATER)]
VALUES = [
    None, True, 5, -300, 2**40, 2**53 + 1, 2.5, -1.005, 1e20, float("nan"), float("inf"), Decimal("1.005"),
    Decimal("-2.5"), Decimal("1E+10"), "a", "3", "2020-01-01", "a  ", "long text", b"ab", dt.date(2020, 2, 29), NOON,
    NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)), microsecond=7),
]  # fmt: skip


def outcome(connection: dbapi.Connection, text: str, rows: list[tuple[Any, ...]]) -> str:
    """Return the error's code, or ``stored``. One row is executed as by execute()."""
    try:
        connection.cursor().executemany(text, rows)
    except dbapi.Error as error:
        return error.code
    return "stored"


@pytest.mark.full
@pytest.mark.parametrize("column", COLUMNS)
def test_rows_together_are_stored_as_one_by_one(session: Session, warehouse: Path, column: str) -> None:
    """executemany() stores or refuses the same as an INSERT of one value, for every type of column and value (M6)."""
    for name in ("one", "many"):
        session.create_table(f"parquet.default.{name}", [Column("i", "int"), Column("v", column)])
    with dbapi.connect(warehouse=warehouse) as connection:
        alone, together = "INSERT INTO one VALUES (?, ?)", "INSERT INTO many VALUES (?, ?)"
        for i, value in enumerate(VALUES):
            first = outcome(connection, alone, [(i, value)])
            assert outcome(connection, together, [(i, value)] * 2) == first, value
        one, many = (connection.execute(f"SELECT DISTINCT * FROM {t} ORDER BY i").fetchall() for t in ("one", "many"))
        assert repr(one) == repr(many)


# -- PostgreSQL -----------------------------------------------------------------------------------------

ROWS = [(i, f"n{i}") for i in range(3000)]


@pytest.fixture(params=["depts", "plain"])
def name(hr: dbapi.Connection, request: pytest.FixtureRequest) -> str:
    """Return the name of a journalled table, then of an ordinary one."""
    hr.execute("CREATE TABLE hr.plain (deptno INT PRIMARY KEY, name VARCHAR(10) NOT NULL)")
    hr.commit()
    return f"hr.{request.param}"


@pytest.mark.parametrize("autocommit", [False, True])
def test_many_rows_on_postgresql(hr: dbapi.Connection, name: str, autocommit: bool) -> None:
    hr.autocommit = autocommit
    cursor = hr.cursor()
    insert = f"INSERT INTO {name} VALUES (?,?)"
    read = f"SELECT * FROM {name} ORDER BY 1"
    assert cursor.executemany(insert, ROWS).rowcount == 3000
    assert cursor.execute(read).fetchall() == ROWS
    for row, code, state in [
        ((5, "x"), "CONSTRAINT_VIOLATION", "23505"),
        ((5001, "x"), "CONSTRAINT_VIOLATION", "23505"),
        ((5003, None), "CONSTRAINT_VIOLATION", "23502"),
        ((5003, "eleven char"), "BAD_DATA", "22001"),
        ((2**40, "x"), "NUMERIC_VALUE_OUT_OF_RANGE", "22003"),
        ((5003,), "INVALID_ARGUMENTS", None),
    ]:
        error = error_of(hr, insert, [(5001, "a"), (5002, "b"), row, (5004, "c")])
        assert (error.code, error.sqlstate, error.message[:11]) == (code, state, "Row 3 of 4:"), error
        assert error_of(hr, insert, [row, (5001, "a")]).message.startswith("Row 1 of 2: ") is (row[0] != 5001)
        assert len(cursor.execute(read).fetchall()) == 3000
    assert cursor.executemany(f"INSERT INTO {name} (name, deptno) VALUES (upper(?), ?)", [("a", 5001)]).rowcount == 1
    error = error_of(hr, f"UPDATE {name} SET name = ? WHERE deptno = ?", [("fine", 1), ("eleven char", 2)])
    assert error.message.startswith("Row 2 of 2: ")
    error = error_of(hr, f"WITH w AS (SELECT 1) {insert}", [(6000, "a"), (6000, "b")])
    assert error.message.startswith("Row 2 of 2: ")
    assert error_of(hr, f"INSERT INTO {name} VALUES (?,?,3)", ROWS).message[:3] != "Row"
    error = error_of(hr, f"{insert} RETURNING name", [(6000, "a"), (6001, "b")])
    assert "returns rows" in error.message
    with pytest.raises(dbapi.NotSupportedError, match="txn"):
        cursor.executemany(insert, [(7000, "a")], txn=("app", 1))
    if not autocommit:
        hr.rollback()
        assert cursor.execute(read).fetchall() == []
    else:
        assert cursor.execute(read).fetchall() == [*ROWS, (5001, "A")]


def test_columns_of_many_types_on_postgresql(hr: dbapi.Connection) -> None:
    cursor = hr.execute(
        "CREATE TABLE hr.kinds (id INT PRIMARY KEY, n NUMERIC(8,2) DEFAULT 3, c CHAR(3), b BYTEA, at TIMESTAMPTZ, "
        "x FLOAT)"
    )
    moment = NOON.replace(tzinfo=dt.UTC)
    rows: list[tuple[Any, ...]] = [(1, 1, "a", b"\0", moment, 1.5), (2, Decimal("2.555"), None, None, None, None)]
    cursor.executemany("INSERT INTO hr.kinds VALUES (?,?,?,?,?,?)", rows)
    cursor.executemany("INSERT INTO hr.kinds (id, n, c) VALUES (?,DEFAULT,'k')", [(3,), (4,)])
    assert cursor.execute("SELECT * FROM hr.kinds ORDER BY id").fetchall() == [
        (1, Decimal("1.00"), "a  ", b"\0", moment, 1.5),
        (2, Decimal("2.56"), None, None, None, None),
        (3, Decimal("3.00"), "k  ", None, None, None),
        (4, Decimal("3.00"), "k  ", None, None, None),
    ]


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_the_rows_of_a_journalled_table_are_sent_together(
    hr: dbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of requests to the server is that of one INSERT, however many rows there are."""
    sent: list[str] = []
    backend = hr.backend
    run = backend._run  # type: ignore[attr-defined]  # what is sent shows nowhere else

    def sending(sql: str, *rest: Any) -> Any:
        sent.append(sql)
        return run(sql, *rest)

    monkeypatch.setattr(backend, "_run", sending)
    hr.cursor().executemany("INSERT INTO depts VALUES (?, ?)", ROWS)
    assert len(sent) == 1


@pytest.mark.parametrize("versions", ["BIGINT"])
def test_a_list_is_one_value_on_postgresql(hr: dbapi.Connection) -> None:
    hr.execute("CREATE TABLE hr.plain (deptno SERIAL, name VARCHAR(10))")
    for table in ("depts", "plain"):
        hr.cursor().executemany(f"INSERT INTO hr.{table} (name) VALUES (?)", [(["a", "b"],), (["c", "d"],)])
        found = hr.execute(f"SELECT deptno, name FROM hr.{table} ORDER BY deptno").fetchall()
        assert found == [(1, "{a,b}"), (2, "{c,d}")]
