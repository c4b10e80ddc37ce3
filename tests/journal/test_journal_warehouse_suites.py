"""Journals in Trinity tables against an ordinary PostgreSQL table, and against PEP 249's suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dbapi20
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.journal.warehouse import model
from tests.support.journal import rows
from trinity import dbapi

CHECKS = sorted(
    {n for n in dir(dbapi20.DatabaseAPI20Test) if n.startswith("test_")} - {"test_nextset", "test_setoutputsize"}
)
KEYS, NUMBERS = st.integers(0, 4), st.sampled_from(["NULL", "0", "7", "-3", "DEFAULT"])
WHERE = st.sampled_from(["k > 1", "a IS NULL", "b = 'x'", "k IN (SELECT max(k) FROM t)", "a > 0 OR k = 2", "true"])
RETURNING = st.sampled_from(["", " RETURNING *", " RETURNING k, a + 1 AS n, b"])
STATEMENTS = st.one_of(
    st.builds("INSERT INTO t (k, a, b) VALUES ({}, {}, 'x'), ({}, 1, 'y'){}".format, KEYS, NUMBERS, KEYS, RETURNING),
    st.builds("INSERT INTO t (k, a, b) SELECT k + {}, a, b FROM t WHERE {}".format, KEYS, WHERE),
    st.builds(
        "INSERT INTO t AS t (k, b, a) VALUES ({}, 'p', {}), ({}, 'q', 1) ON CONFLICT {}{}".format, KEYS, NUMBERS, KEYS,
        st.sampled_from([
            "DO NOTHING", "(k) DO UPDATE SET a = excluded.a, b = t.b || excluded.b",
            "(k) DO UPDATE SET a = DEFAULT WHERE t.a IS NOT NULL",
        ]), RETURNING,
    ),
    st.builds(
        "UPDATE t SET {} WHERE {}{}".format,
        st.sampled_from(["a = a + 1, b = b || 'u'", "b = NULL", "(a, b) = (DEFAULT, 'x')"]), WHERE, RETURNING,
    ),
    st.builds("UPDATE t SET k = k + {} WHERE {}{}".format, st.integers(-1, 1), WHERE, RETURNING),
    st.builds("UPDATE t SET a = u.w FROM u WHERE t.k = u.k AND u.k <> {}".format, KEYS),
    st.builds("DELETE FROM t WHERE {}{}".format, WHERE, RETURNING),
    st.builds("DELETE FROM t USING u WHERE t.k = u.k AND u.w > {}".format, KEYS),
    st.builds(
        """MERGE INTO t USING (SELECT {} AS s, {} AS w UNION ALL SELECT 1, 5) AS u ON t.k = u.s
           WHEN MATCHED AND u.w > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET a = u.w
           WHEN NOT MATCHED THEN INSERT (k, a, b) VALUES (u.s, u.w, 'm')""".format, KEYS, KEYS,
    ),
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("versions", ["BIGINT", "TIMESTAMP"])
def test_histories_are_those_of_an_ordinary_postgresql_table(
    warehouse: Path, spark: SparkSession, server: dict[str, str], tiered_fmt: str, versions: str
) -> None:
    """Compare counts, RETURNING, classes of errors, and rows.

    The keys of the ordinary table are checked at the end of a statement, as a journal's are. ON CONFLICT does not work
    with such deferrable keys, so histories with it have other ones.
    """
    unused = {"dataSource": "org.postgresql.ds.PGSimpleDataSource", "journalTables": {"none": ["k"]}}
    ordinary_model = model(tiered_fmt, versions, {}, "none")
    ordinary_model["schemas"][0]["operand"] = unused
    options: dict[str, Any] = server
    create = "CREATE TABLE t (k INT, a INT DEFAULT 5, b VARCHAR(99) NOT NULL, PRIMARY KEY (k){})"
    others = "INSERT INTO u VALUES (0, 10), (1, 1), (3, 4), (4, NULL)"

    @settings(max_examples=4, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(st.lists(STATEMENTS, min_size=6, max_size=10))
    def agree(history: list[str]) -> None:
        with (
            dbapi.connect(ordinary_model, autocommit=True, **options) as ordinary,
            dbapi.connect(model(tiered_fmt, versions, {"t": ["k"]}), warehouse=warehouse) as journalled,
        ):
            for connection in (ordinary, journalled):
                connection.execute("DROP TABLE IF EXISTS t")
                connection.execute("DROP TABLE IF EXISTS u")
                connection.execute("CREATE TABLE u (k INT, w INT)")
                connection.execute(others)
            moves = not any("ON CONFLICT" in text for text in history)
            ordinary.execute(create.format(" DEFERRABLE" if moves else ""))
            journalled.execute(create.format(""))
            for i, text in enumerate(history):
                if not moves and "SET k" in text:
                    continue
                seen = [(outcome(c, text), rows(c, "SELECT * FROM t ORDER BY k")) for c in (journalled, ordinary)]
                assert seen[0] == seen[1], f"step {i} differs; history = {history!r}"

    agree()


def outcome(connection: dbapi.Connection, text: str) -> object:
    """Return the count and the rows of a statement, or the class of its error."""
    try:
        cursor = connection.execute(text)
        return cursor.rowcount, sorted(cursor.fetchall(), key=repr) if cursor.description is not None else None
    except dbapi.Error as error:
        return type(error).__name__


class Suite(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]  # it has no types
    """PEP 249's suite of tests on tables of Trinity."""

    __test__ = False
    driver = dbapi
    connect_args = ()


class JournalledSuite(Suite):
    """The same suite on journalled tables."""

    ddl1 = "CREATE TABLE dbapi20test_booze (name VARCHAR(20), PRIMARY KEY (name))"
    ddl2 = "CREATE TABLE dbapi20test_barflys (name VARCHAR(20), drink VARCHAR(30), PRIMARY KEY (name))"


READING_AND_WRITING = [
    "test_None", "test_description", "test_execute", "test_executemany", "test_fetchall", "test_mixedfetch",
    "test_rowcount",
]  # fmt: skip
"""The checks that run enough statements to distinguish formats."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("tiered_fmt", "check"),
    [*(("parquet", check) for check in CHECKS), *((f, c) for f in ("delta", "iceberg") for c in READING_AND_WRITING)],
)
@pytest.mark.parametrize("suite", [Suite, JournalledSuite])
def test_dbapi20(warehouse: Path, spark: SparkSession, suite: type[Suite], tiered_fmt: str, check: str) -> None:
    case = suite(check)
    tables = {"dbapi20test_booze": ["name"], "dbapi20test_barflys": ["name"]}
    given = model(tiered_fmt, "BIGINT", tables) if suite is JournalledSuite else None
    case.connect_kw_args = {"model": given, "warehouse": warehouse, "catalog": tiered_fmt}
    result = case.run()
    assert result is not None
    assert not [text for _, text in [*result.errors, *result.failures]]
    assert result.testsRun == 1
