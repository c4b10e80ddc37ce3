"""INSERT OVERWRITE and REPLACE WHERE: one commit removes the old rows and adds the new ones."""

from __future__ import annotations

import pytest

from tests.support.refusals import refused
from tests.support.tables import arrow_rows
from trinity import Session, Table

OLD = [{"d": 1, "n": 10, "s": "a"}, {"d": 1, "n": 11, "s": "a"}, {"d": 2, "n": 20, "s": "a"}]


@pytest.fixture
def table(local: Session, local_fmt: str) -> Table:
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE t (d INT, n BIGINT, s STRING DEFAULT 'new')")
    local.table("t").append(OLD)
    local.sql("CREATE TABLE s (d INT, n BIGINT)")
    local.sql("INSERT INTO s VALUES (3, 30), (4, 40)")
    return local.table("t")


def test_all_rows_are_replaced_in_one_commit(local: Session, table: Table) -> None:
    before = table.version
    counted = local.sql("INSERT OVERWRITE TABLE t (d, n) SELECT d, n + 1 AS n FROM s WHERE d = 3").first()
    assert (counted.num_inserted_rows, counted.num_deleted_rows) == (1, 3)
    assert arrow_rows(table) == [(3, 31, "new")]
    assert len(table.history().collect()) == len([e for e in table.history().collect() if e.version <= before]) + 1
    assert arrow_rows(table, version=before) == [(1, 10, "a"), (1, 11, "a"), (2, 20, "a")]
    local.sql("INSERT OVERWRITE t VALUES (7, 70, DEFAULT), (8, 80, 'x')")
    assert arrow_rows(table) == [(7, 70, "new"), (8, 80, "x")]
    local.sql("INSERT OVERWRITE t SELECT * FROM t WHERE d = 8")
    assert arrow_rows(table) == [(8, 80, "x")]
    local.sql("WITH w AS (SELECT n, d FROM s) INSERT OVERWRITE t BY NAME SELECT n, d FROM w")
    assert arrow_rows(table) == [(3, 30, "new"), (4, 40, "new")]
    local.sql("INSERT OVERWRITE t SELECT d, n, 'z' FROM s WHERE d > 100")
    assert arrow_rows(table) == []


def test_rows_of_a_condition_are_replaced(local: Session, table: Table) -> None:
    local.sql("INSERT INTO t REPLACE WHERE d = 1 VALUES (1, 12, 'b')")
    assert arrow_rows(table) == [(1, 12, "b"), (2, 20, "a")]
    local.sql("INSERT INTO t REPLACE WHERE d > 1 AND (n > 0 OR s = 'select') SELECT d, n, 'c' FROM s")
    assert arrow_rows(table) == [(1, 12, "b"), (3, 30, "c"), (4, 40, "c")]


def test_what_is_refused_changes_nothing(local: Session, table: Table) -> None:
    version = table.version
    with refused("CONSTRAINT_VIOLATION", "d = 1", "t"):
        local.sql("INSERT INTO t REPLACE WHERE d = 1 SELECT d, n, 'c' FROM s")
    with refused("COLUMN_NOT_FOUND", "nope"):
        local.sql("INSERT OVERWRITE t (nope) SELECT d FROM s")
    local.sql("CREATE TABLE keyed (k INT PRIMARY KEY, n INT)")
    with refused("NOT_SUPPORTED", "keyed", "TRUNCATE"):
        local.sql("INSERT OVERWRITE keyed VALUES (1, 1)")
    with refused("NOT_SUPPORTED", "PARTITION", "REPLACE WHERE column = value"):
        local.sql("INSERT OVERWRITE t PARTITION (d = 1) SELECT n, 'x' FROM s")
    assert table.version == version


def test_a_transaction_is_recorded(local: Session, table: Table) -> None:
    statement = "INSERT OVERWRITE t SELECT d, n, 'c' FROM s"
    local.sql(statement, txn=("daily", 1))
    local.sql("DELETE FROM t WHERE d = 3")
    local.sql(statement, txn=("daily", 1))
    assert arrow_rows(table) == [(4, 40, "c")]
