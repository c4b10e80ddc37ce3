"""``rewrite`` as a function: no backend, numbered parameters, other dialects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from trinity.errors import TrinityError
from trinity.journal import JournalModel, load_model, rewrite
from trinity.journal.backends.warehouse.rewriter import rewrite_merged

pytestmark = pytest.mark.inner

FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
COLUMNS = {
    "hr.depts": {
        "deptno": "integer",
        "version_number": "bigint",
        "name": "character varying(10)",
        "subsequent_version_number": "bigint",
    }
}


@pytest.fixture
def journal() -> JournalModel:
    operand = {"journalVersionType": "BIGINT", "journalTables": {"depts": ["deptno"]}}
    schema = {"name": "hr", "type": "custom", "factory": FACTORY, "operand": operand}
    loaded = load_model({"defaultSchema": "hr", "schemas": [schema]})
    return loaded.journal.with_columns(COLUMNS)


def values(sql: str, parameters: tuple[int, ...], given: list[Any]) -> str:
    """Return the SQL with its parameters filled in."""
    for i in range(len(parameters), 0, -1):
        sql = sql.replace(f"${i}", repr(given[parameters[i - 1]]) if parameters[i - 1] >= 0 else "LOCKED")
    return sql


def test_parameters_keep_their_values_wherever_they_go(journal: JournalModel) -> None:
    found = rewrite("UPDATE depts SET name = ?, deptno = ? WHERE name = ? OR deptno IN (?, ?)", journal)
    assert found.count == 5
    text = values(found.sql, found.parameters, ["n0", 1, "n2", 3, 4])
    assert "CAST('n0' AS character varying)" in text
    assert "name = 'n2' OR deptno IN (3, 4)" in text
    assert found.counted


def test_a_parameter_may_be_sent_twice(journal: JournalModel) -> None:
    found = rewrite("UPDATE depts SET name = 'x' WHERE deptno = ?", journal)
    [lock] = found.locks
    assert lock.keys is not None
    assert lock.keys.parameters == (0,)
    assert sorted(found.parameters) == [-1, -1, 0]


def test_one_model_gives_one_text(journal: JournalModel) -> None:
    text = "DELETE FROM hr.depts WHERE deptno = ?"
    assert rewrite(text, journal) == rewrite(text + " ; -- the same", journal)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM other WHERE a ->> 'depts' = ?::text",
        "CREATE EXTENSION x",
        "FROB a",
        "select depts /* hr.depts */ from fin.depts",
        "SELECT depts FROM other AS depts(depts)",
    ],
)
def test_what_names_no_journalled_table_is_left_alone(journal: JournalModel, text: str) -> None:
    found = rewrite(text, journal)
    assert (found.sql, found.kind) == (text.replace("?", "$1 "), "plain")


@pytest.mark.parametrize("rewriter", [rewrite, rewrite_merged])
@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("SELEC * FROM depts", "SYNTAX_ERROR", "'SELEC' begins no statement. Did you mean 'SELECT'?"),
        ("FROB depts", "SYNTAX_ERROR", "'FROB'"),
        ("VACUUM depts", "NOT_SUPPORTED", "depts_journal"),
        ("GRANT SELECT ON depts TO somebody", "NOT_SUPPORTED", "depts_journal"),
    ],
)
def test_what_is_no_statement_is_not_merely_unsupported(
    journal: JournalModel, rewriter: Callable[..., object], text: str, code: str, named: str
) -> None:
    with pytest.raises(TrinityError) as caught:
        rewriter(text, journal)
    assert (caught.value.code, named in caught.value.message) == (code, True)


def test_volatile_statements_lock_the_table(journal: JournalModel) -> None:
    for text, keys in [
        ("UPDATE depts SET name = 'x' WHERE deptno = 1", True),
        ("UPDATE depts SET name = md5(random()::text) WHERE deptno = 1", True),
        ("UPDATE depts SET name = 'x' WHERE random() < 0.5", False),
        ("DELETE FROM depts WHERE own_function(deptno)", False),
        ("UPDATE depts SET deptno = 2", False),
        ("INSERT INTO depts SELECT nextval('s'), 'x'", False),
        ("INSERT INTO depts VALUES (nextval('s'), 'x')", True),
    ]:
        [lock] = rewrite(text, journal).locks
        assert (lock.keys is not None) == keys, text
    assert rewrite("INSERT INTO depts VALUES (nextval('s'), 'x')", journal).computed is not None


def test_other_dialects_read_by_the_window_of_the_original(journal: JournalModel) -> None:
    """DuckDB runs the rewritten statement."""
    with duckdb.connect() as engine:
        engine.execute("CREATE SCHEMA hr")
        engine.execute(
            "CREATE TABLE hr.depts_journal AS SELECT * FROM (VALUES (1, 1, 'old', NULL::BIGINT), (1, 2, 'new', NULL), "
            "(2, 1, 'gone', NULL), (2, 2, 'gone', 2)) AS t(deptno, version_number, name, subsequent_version_number)"
        )
        found = rewrite("SELECT d.* FROM depts d JOIN depts e USING (deptno)", journal, "duckdb")
        assert engine.execute(found.sql).fetchall() == [(1, "new")]
    assert "MAX(version_number) OVER (PARTITION BY deptno)" in found.sql


def test_a_journal_that_does_not_exist(journal: JournalModel) -> None:
    missing = replace(journal, tables=tuple(replace(t, columns=()) for t in journal.tables))
    with pytest.raises(TrinityError) as caught:
        rewrite("SELECT * FROM depts", missing)
    assert caught.value.code == "TABLE_NOT_FOUND"
    assert rewrite("CREATE TABLE depts (deptno INT)", missing).sql.startswith("CREATE TABLE hr.depts_journal (")


@pytest.mark.parametrize("text", ["date_format(name, 'y')", "CAST(name AS TIME)", "my_function(name, 1)[0]"])
def test_functions_of_spark_stay_what_they_are(journal: JournalModel, text: str) -> None:
    """sqlglot would write 'yyyy', which is another pattern in Spark."""
    assert text in rewrite_merged(f"UPDATE hr.depts SET name = {text} WHERE deptno = 1", journal).sql
