"""Names of tables and schemas that another session, or another engine, changes between two steps of a call."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.refusals import refused
from trinity import Session

ROWS = pa.table({"k": pa.array([1], pa.int32())})
OTHER = pa.table({"b": ["x"]})


@pytest.fixture
def two_sessions(tmp_path: Path) -> Iterator[tuple[Session, Session]]:
    """Yield two sessions on one warehouse."""
    with trinity.connect(tmp_path / "w") as one, trinity.connect(tmp_path / "w") as other:
        yield one, other


@pytest.fixture
def before_lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Callable[[], object]], None]:
    """Return a function that has another one run once, just before a folder is locked."""

    def install(folder: Path, act: Callable[[], object]) -> None:
        opens, left = os.open, [act]

        def opening(path: Any, *rest: Any, **named: Any) -> int:
            if left and os.fspath(path) == str(folder):
                left.pop()()
            return opens(path, *rest, **named)

        monkeypatch.setattr(os, "open", opening)

    return install


@pytest.mark.parametrize("catalog", ["parquet", "delta"])
def test_a_table_moves_into_a_schema_that_is_dropped(
    two_sessions: tuple[Session, Session],
    tmp_path: Path,
    catalog: str,
    before_lock: Callable[[Path, Callable[[], object]], None],
) -> None:
    """Iceberg's catalog checks this by itself, in the transaction that changes the name."""
    one, other = two_sessions
    one.create_schema(f"{catalog}.s")
    one.create_table(f"{catalog}.default.t", ROWS)
    folder = Path(one.create_table(f"{catalog}.s.first", ROWS).location).parent
    one.drop_table(f"{catalog}.s.first")
    before_lock(folder, lambda: other.drop_schema(f"{catalog}.s"))
    with refused("SCHEMA_NOT_FOUND", "s"):
        one.rename_table(f"{catalog}.default.t", "s.t")
    assert "s" not in other.schemas(catalog)
    assert other.table(f"{catalog}.default.t").count() == 1


def test_tables_of_iceberg_never_share_a_folder(
    two_sessions: tuple[Session, Session], before_lock: Callable[[Path, Callable[[], object]], None]
) -> None:
    """A table is made in the folder, and renamed, after another one of the first name has chosen the folder."""
    one, other = two_sessions
    folder = Path(one.create_table("iceberg.default.first", ROWS).location).parent

    def made_and_renamed() -> None:
        other.create_table("iceberg.default.t", OTHER)
        other.rename_table("iceberg.default.t", "theirs")

    before_lock(folder, made_and_renamed)
    mine, theirs = one.create_table("iceberg.default.t", ROWS), other.table("iceberg.default.theirs")
    assert mine.location != theirs.location
    mine.vacuum(retain="0 seconds")
    one.drop_table("iceberg.default.t")
    assert theirs.to_arrow()["b"].to_pylist() == ["x"]


@pytest.mark.parametrize("clause", ["IF NOT EXISTS ", ""])
def test_a_table_that_takes_the_name_of_files_stays(
    two_sessions: tuple[Session, Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clause: str
) -> None:
    """The statement declares other columns than that table has, and so it would be refused."""
    one, other = two_sessions
    (tmp_path / "theirs").mkdir()
    pq.write_table(ROWS, tmp_path / "theirs" / "1.parquet")
    register = one.external.register

    def registering(*given: Any) -> Any:
        other.create_table("parquet.default.t", OTHER)
        return register(*given)

    monkeypatch.setattr(one.external, "register", registering)
    text = f"CREATE TABLE {clause}parquet.default.t (k INT) USING parquet LOCATION '{tmp_path / 'theirs'}'"
    if clause:
        one.sql(text)
    else:
        with refused("TABLE_ALREADY_EXISTS", "t"):
            one.sql(text)
    assert other.table("parquet.default.t").to_arrow()["b"].to_pylist() == ["x"]


def test_declared_columns_that_the_files_lack_leave_the_name_free(
    two_sessions: tuple[Session, Session], tmp_path: Path
) -> None:
    one, other = two_sessions
    (tmp_path / "theirs").mkdir()
    pq.write_table(ROWS, tmp_path / "theirs" / "1.parquet")
    with refused("INVALID_ARGUMENTS", "(other int)", "(k int)"):
        one.sql(f"CREATE TABLE parquet.default.t (other INT) USING parquet LOCATION '{tmp_path / 'theirs'}'")
    assert other.tables(schema="parquet.default") == []


def test_a_registered_table_that_another_engine_drops(two_sessions: tuple[Session, Session]) -> None:
    """Its name is no table's any more; DROP TABLE frees it."""
    one, other = two_sessions
    made = one.create_table("iceberg.default.first", [{"id": 1, "n": 2}])
    loaded = pyiceberg(made)
    theirs = loaded.catalog.create_table(("default", "theirs"), loaded.schema())
    theirs.append(loaded.scan().to_arrow())
    one.register("iceberg.default.theirs", "iceberg", properties={"primary-key": "id"})
    loaded.catalog.drop_table(("default", "theirs"))
    assert not other.table_exists("iceberg.default.theirs")
    with refused("TABLE_NOT_FOUND", "theirs", "DROP TABLE"):
        other.table("iceberg.default.theirs").count()
    for text in (
        "CREATE TABLE iceberg.default.theirs (a INT)",
        "CREATE TABLE IF NOT EXISTS iceberg.default.theirs (a INT)",
        "CREATE OR REPLACE TABLE iceberg.default.theirs (a INT)",
        "ALTER TABLE iceberg.default.first RENAME TO theirs",
    ):
        with refused("TABLE_NOT_FOUND", "has it no longer", "DROP TABLE"):
            other.sql(text)
    other.sql("DROP TABLE iceberg.default.theirs")
    other.sql("ALTER TABLE iceberg.default.first RENAME TO theirs")
    assert other.table("iceberg.default.theirs").count() == 1


def test_a_locked_file_of_the_catalog_is_no_table(tmp_path: Path) -> None:
    """Another program keeps a transaction open in SQLite's file."""
    file = tmp_path / "catalog.db"
    lake = {"connector": "iceberg", "warehouse": str(tmp_path / "w"), "uri": f"sqlite:///{file}?timeout=0.01"}
    with trinity.connect(catalogs={"lake": lake}) as session:
        session.create_table("lake.default.t", ROWS)
        with closing(sqlite3.connect(file, isolation_level=None)) as locking:
            locking.execute("BEGIN IMMEDIATE")
            for options in ("", "IF NOT EXISTS "):
                with refused("FILESYSTEM_ERROR", "lake", "locked"):
                    session.sql(f"CREATE TABLE {options}lake.default.u (a INT)")
            locking.execute("ROLLBACK")
        session.sql("CREATE TABLE lake.default.u (a INT)")
