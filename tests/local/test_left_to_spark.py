"""What only Spark reads is left to it: it is neither read in another way, nor an error of this process's own."""

from __future__ import annotations

import pytest

from tests.support.refusals import refused
from trinity import Session

TIME_TRAVEL = [
    "SELECT * FROM t@v0", "SELECT k FROM t WHERE k IN (SELECT k FROM t@v0)", "INSERT INTO t SELECT * FROM t@v0",
    "CREATE TABLE copied AS SELECT * FROM t@v0", "SELECT * FROM (SELECT * FROM t)@v0", "SELECT * FROM t:x",
    "MERGE INTO t USING t@v0 ON FALSE WHEN NOT MATCHED THEN INSERT *",
]  # fmt: skip
EXPRESSIONS = [
    # numbers beyond the range of their type, which Spark does not parse
    "d = 1e400", "d = -1e400", "d = 2e308D", "d = 1e39F", "d = -3.4028235e38F",
    # numbers in place of texts
    "s = lpad(s, 5, 0)", "s = replace(s, 1, 2)", "s = regexp_replace(s, '1', 2)", "s = split_part(s, 1, 1)",
    "k = instr(s, 1)", "s = if(s LIKE 1, 'x', 'y')", "s = if(startswith(s, 1), 'x', 'y')",
    # || and + are of one level in Spark
    "s = '4' || 1 + 2", "s = s || d - k", "s = s || 'x' || k - 1 || 'y'",
    "s = if(s LIKE 'x%' ESCAPE '', 'x', 'y')", "s = if(NULL <=> NULL, 'x', 'y')",
]  # fmt: skip


@pytest.fixture
def with_table(local: Session, local_fmt: str) -> Session:
    """Return a session whose table t has had two versions with rows."""
    local.use(local_fmt, "default")
    local.sql("CREATE TABLE t (k INT, d DOUBLE, s STRING)")
    local.sql("INSERT INTO t VALUES (1, 0.5D, '1a')")
    local.sql("INSERT INTO t VALUES (2, 1.5D, 'x')")
    return local


def test_a_version_behind_a_name_is_not_taken_for_an_alias(with_table: Session) -> None:
    for text in TIME_TRAVEL:
        with refused("NOT_SUPPORTED", "Spark"):
            with_table.sql(text)
    assert with_table.table("t").to_arrow().num_rows == 2


def test_expressions(with_table: Session) -> None:
    for text in EXPRESSIONS:
        with refused("NOT_SUPPORTED", "Spark"):
            with_table.sql(f"UPDATE t SET {text}")
    with refused("NOT_SUPPORTED", "'1 + 2' is an operand of || without parentheses"):
        with_table.sql("MERGE INTO t USING t AS o ON t.k = o.k WHEN MATCHED THEN UPDATE SET s = '4' || 1 + 2")
    with_table.sql("UPDATE t SET d = 1.7976931348623157e308, s = lpad(s, 5, '0') WHERE k = 1")
    with_table.sql("UPDATE t SET d = 3.4028234e38F WHERE k = 2")
    rows = sorted(map(tuple, with_table.sql("SELECT * FROM t").fetchall()))
    assert rows == [(1, 1.7976931348623157e308, "0001a"), (2, 3.4028234663852886e38, "x")]
