"""A recorded ``txn`` makes a retry of any statement a no-op, on every format (L4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.changes import rows_at
from trinity import Column, Session, Table, TransactionId, TrinityError, dbapi

Run = Callable[[Session, Table, TransactionId], Any]


def _merge(session: Session, table: Table, txn: TransactionId) -> Any:
    source = pa.table({"id": pa.array([1, 3], pa.int32())})
    merge = table.merge(source, "t.id = s.id").when_matched_update({"n": "t.n + 1"})
    return merge.when_not_matched_insert({"id": "s.id", "n": "0"}).execute(txn=txn)


STATEMENTS: dict[str, Run] = {
    "delete by condition": lambda session, table, txn: table.delete("n > 15", txn=txn),
    "delete by keys": lambda session, table, txn: table.delete([{"id": 1}], txn=txn),
    "update": lambda session, table, txn: table.update(set={"n": "n + 1"}, txn=txn),
    "merge": _merge,
    "UPDATE": lambda session, table, txn: session.sql(f"UPDATE {table.name} SET n = n + 1", txn=txn),
    "DELETE": lambda session, table, txn: session.sql(f"DELETE FROM {table.name} WHERE id = ?", [2], txn=txn),
    "MERGE": lambda session, table, txn: session.sql(
        f"MERGE INTO {table.name} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n * 2",
        txn=txn,
    ),
    "INSERT": lambda session, table, txn: session.sql(f"INSERT INTO {table.name} VALUES (9, 9)", txn=txn),
    "INSERT of its own": lambda session, table, txn: session.sql(
        f"INSERT INTO {table.name} SELECT id + 100, n FROM {table.name}", txn=txn
    ),
}


EVERYWHERE = ("delete by keys", "update", "INSERT")
"""Statements that run on every format; the others differ from them only before the commit."""


@pytest.fixture(params=["keyed", pytest.param("plain", marks=pytest.mark.full)])
def table(request: pytest.FixtureRequest, session: Session, fmt: str) -> Table:
    key = ", PRIMARY KEY (id)" if request.param == "keyed" else ""
    session.sql(f"CREATE TABLE {fmt}.default.t (id INT, n BIGINT{key})")
    session.sql(f"INSERT INTO {fmt}.default.t VALUES (1, 10), (2, 20)")
    return session.table(f"{fmt}.default.t")


@pytest.mark.full
@pytest.mark.tiered
def test_a_retry_of_a_statement_changes_nothing(session: Session, table: Table) -> None:
    check_retries(session, table, EVERYWHERE)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["parquet"], indirect=True)
def test_a_retry_of_any_statement_changes_nothing(session: Session, table: Table) -> None:
    check_retries(session, table, STATEMENTS.keys() - set(EVERYWHERE))


def check_retries(session: Session, table: Table, names: Iterable[str]) -> None:
    for number, name in enumerate(sorted(names)):
        if name == "delete by keys" and not table.definition.keyed:
            continue
        run = STATEMENTS[name]
        before = rows_at(table)
        first = run(session, table, ("app", number))
        assert not getattr(first, "skipped", False)
        done, version = rows_at(table), table.splits().version
        assert done != before, name
        again = run(session, table, ("app", number))
        assert getattr(again, "skipped", True) is True or sum(again.first()) == 0
        assert (rows_at(table), table.splits().version) == (done, version), name
        run(session, table, ("other", number))  # of another application
        session.sql(f"DELETE FROM {table.name}")
        session.sql(f"INSERT INTO {table.name} VALUES (1, 10), (2, 20)")


@pytest.mark.tiered
def test_a_statement_that_selects_nothing_is_recorded(session: Session, table: Table) -> None:
    assert not table.delete("id = 77", txn=("app", 1)).skipped
    session.sql(f"INSERT INTO {table.name} VALUES (77, 1)")
    assert table.delete("id = 77", txn=("app", 1)).skipped
    assert (77, 1) in rows_at(table)


@pytest.mark.tiered
def test_a_truncation_is_recorded(session: Session, table: Table) -> None:
    def truncated(version: int) -> int:
        return int(session.sql(f"TRUNCATE TABLE {table.name}", txn=("app", version)).head()[2])

    assert truncated(1) == 2
    assert truncated(2) == 0  # of an empty table
    session.sql(f"INSERT INTO {table.name} VALUES (1, 1)", txn=("app", 3))
    assert [truncated(version) for version in (1, 2, 3)] == [0, 0, 0]
    assert rows_at(table) == {(1, 1): 1}
    assert truncated(4) == 1


def test_two_of_one_txn_at_once(table: Table) -> None:
    done: list[Any] = []
    ready = threading.Barrier(3)

    def increment() -> None:
        ready.wait()
        done.append(table.update("id = 1", {"n": "n + 1"}, txn=("app", 1)))

    threads = [threading.Thread(target=increment) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts.skipped for counts in done) == [False, True, True]
    assert rows_at(table) == {(1, 11): 1, (2, 20): 1}


@pytest.mark.parametrize("catalog", ["parquet", "iceberg"])
def test_the_database_api_takes_one(tmp_path: Path, catalog: str) -> None:
    """executemany() takes a transaction id without Spark, too."""
    insert, rows = f"INSERT INTO {catalog}.default.t VALUES (?, ?)", [(1, 10), (2, 20)]
    columns = [Column("id", "int"), Column("n", "bigint")]
    with trinity.connect(tmp_path) as session, dbapi.connect(warehouse=tmp_path) as connection:
        table = session.create_table(f"{catalog}.default.t", columns, primary_key=["id"])
        cursor = connection.cursor()
        assert [cursor.executemany(insert, rows, txn=("app", 1)).rowcount for _ in range(2)] == [2, 0]
        with pytest.raises(dbapi.ProgrammingError, match=r"2 lists .* txn"):
            cursor.executemany(f"DELETE FROM {table.name} WHERE id = ?", [(1,), (2,)], txn=("app", 2))
        with pytest.raises(dbapi.ProgrammingError, match="txn"):
            cursor.execute("CREATE SCHEMA x", txn=("app", 2))
        assert cursor.executemany(insert, rows, txn=("app", 2)).rowcount == 2
        assert sum(file.rows for file in table.splits().files) == 4


def test_the_database_api_takes_one_of_any_statement(session: Session, warehouse: Path, tiered_fmt: str) -> None:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.t (id INT PRIMARY KEY, n BIGINT)")
    table = session.table(f"{tiered_fmt}.default.t")
    insert, rows = f"INSERT INTO {table.name} VALUES (?, ?)", [(1, 10), (2, 20)]
    with dbapi.connect(warehouse=warehouse) as connection:
        cursor = connection.cursor()
        assert [cursor.executemany(insert, rows, txn=("app", 1)).rowcount for _ in range(2)] == [2, 0]
        delete = f"DELETE FROM {table.name} WHERE id = ?"
        assert [connection.execute(delete, [2], txn=("app", 2)).rowcount for _ in range(2)] == [1, 0]
        assert cursor.executemany(insert, [(3, 30)], txn=("app", 2)).rowcount == 0  # a single list is a statement
        cursor.executemany(insert, rows, txn=("another", 1))
        with pytest.raises(dbapi.ProgrammingError, match=r"2 lists .* txn"):
            cursor.executemany(delete, [(1,), (2,)], txn=("app", 3))
        with pytest.raises(dbapi.ProgrammingError, match="txn"):
            cursor.execute("SELECT 1", txn=("app", 3))
    assert rows_at(table) == {(1, 10): 1, (2, 20): 1}


@pytest.mark.parametrize("text", ["SELECT 1", "CREATE SCHEMA x"])
def test_other_statements_take_no_txn(session: Session, text: str) -> None:
    session.sql("CREATE TABLE t (id INT)")
    with pytest.raises(TrinityError, match="txn") as raised:
        session.sql(text, txn=("app", 1))
    assert raised.value.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(
    "txn", [("a", True), ("a", False), ("a", 1.0), ("a", "1"), ("a", None), ("", 1), (True, 1), "ab"]
)
def test_what_is_no_application_and_number(tmp_path: Path, txn: Any) -> None:
    with trinity.connect(tmp_path) as session:
        table = session.create_table("parquet.default.t", [Column("id", "bigint")], primary_key=["id"])
        with pytest.raises(TrinityError) as refused:
            table.upsert(pa.table({"id": [1]}), txn=txn)
        assert refused.value.code == "INVALID_ARGUMENTS"
        assert table.to_arrow().num_rows == 0
