"""The adapter of DuckLake tables, a fourth real format. Without Spark.

``make test-ducklake`` has DuckDB read its tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ducklake import ducklake_class, open_lake
from tests.support.refusals import refused
from trinity import Session
from trinity_conformance import run_check


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with open_lake(tmp_path, monkeypatch) as session:
        yield session


@pytest.mark.full
def test_the_adapter_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run_check(ducklake_class(monkeypatch), None, budget="smoke", folder=tmp_path)
    assert report.conforms, report.text()
    assert report.undeclared == []


def rows_by_duckdb(warehouse: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query of the catalog's database, run by SQLite itself."""
    database = sqlite3.connect(warehouse / "ducklake.sqlite")
    with database:
        found = database.execute(query).fetchall()
    database.close()
    return found


def test_the_catalog_says_what_others_read(opened: Session, tmp_path: Path) -> None:
    opened.sql("CREATE TABLE t (k INT NOT NULL PRIMARY KEY, v STRING)")
    opened.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    opened.table("t").compact("full")
    opened.sql("ALTER TABLE t RENAME COLUMN v TO w")
    opened.sql("DELETE FROM t WHERE k = 2")
    opened.table("t").compact("resolve")
    live = "WHERE end_snapshot IS NULL"
    columns = rows_by_duckdb(
        tmp_path / "lake", f"SELECT column_name, column_type, nulls_allowed FROM ducklake_column {live}"
    )
    assert columns == [("k", "int32", 0), ("w", "varchar", 1)]
    assert rows_by_duckdb(tmp_path / "lake", f"SELECT sum(record_count) FROM ducklake_data_file {live}") == [(3,)]
    assert rows_by_duckdb(tmp_path / "lake", f"SELECT sum(delete_count) FROM ducklake_delete_file {live}") == [(1,)]
    assert opened.sql("SELECT * FROM t ORDER BY k").to_arrow().to_pylist() == [{"k": 1, "w": "a"}, {"k": 3, "w": "c"}]


def test_a_table_that_another_engine_has_changed_is_refused(opened: Session, tmp_path: Path) -> None:
    opened.sql("CREATE TABLE t (k INT)")
    opened.sql("CREATE TABLE other (k INT)")
    [(table, last)] = rows_by_duckdb(
        tmp_path / "lake",
        "SELECT t.table_id, max(s.snapshot_id) FROM ducklake_table t, ducklake_snapshot s WHERE t.table_name = 't'",
    )
    query = f"INSERT INTO ducklake_snapshot_changes VALUES ({last + 1}, 'inlined_insert:{table}', NULL, NULL, NULL)"
    rows_by_duckdb(tmp_path / "lake", query)
    with refused("NOT_SUPPORTED", "Another engine has changed table 'lake.default.t'"):
        opened.sql("SELECT * FROM t").to_arrow()
    assert opened.sql("SELECT * FROM other").to_arrow().to_pylist() == []
