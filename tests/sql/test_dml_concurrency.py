"""Statements that read and write at the same time: no change is lost, and none conflicts without need (L7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trinity
from tests.support.foreign import FIRST, KEYED, SECOND, pyarrow_files, rows_of
from tests.support.iceberg import pyiceberg
from tests.support.threads import at_once, meanwhile
from trinity import Column, Session, TrinityError
from trinity.spi import CommitResult

FULL = pytest.mark.full
KINDS = {"plain": "", "keyed": ", PRIMARY KEY (id)"}


@pytest.fixture(params=KINDS)
def counter(session: Session, fmt: str, request: pytest.FixtureRequest) -> str:
    """Make a table of counters, and return its full name."""
    session.sql(f"CREATE TABLE {fmt}.default.counters (id INT, n INT{KINDS[request.param]})")
    session.sql(f"INSERT INTO {fmt}.default.counters VALUES (1, 0), (2, 0)")
    return f"{fmt}.default.counters"


@pytest.mark.tiered
@pytest.mark.parametrize(("threads", "times"), [(2, 2), pytest.param(8, 10, marks=FULL)])
def test_l7_no_increment_is_lost(session: Session, counter: str, threads: int, times: int) -> None:
    def work() -> None:
        for _ in range(times):
            found = session.sql(f"UPDATE {counter} SET n = n + 1 WHERE id = 1").collect()[0]
            assert found.num_updated_rows == 1

    assert at_once([work] * threads) == []
    rows = {r.id: r.n for r in session.sql(f"SELECT * FROM {counter}").collect()}
    assert rows == {1: threads * times, 2: 0}


@FULL
def test_l7_an_insert_of_the_tables_own_rows_sees_all_of_them(session: Session, counter: str) -> None:
    """Each statement doubles the rows of a plain table, or increments a keyed one's, whatever others add meanwhile."""
    text = f"INSERT INTO {counter} SELECT id, n + 1 FROM {counter} WHERE id = 1"
    assert at_once([lambda: session.sql(text)] * 3) == []
    rows = sorted(r.n for r in session.sql(f"SELECT n FROM {counter} WHERE id = 1").collect())
    assert rows == ([3] if session.table(counter).definition.keyed else [0, 1, 1, 1, 2, 2, 2, 3])


CHILD = """
import sys, trinity
warehouse, table, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {"spark.master": "local[1]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
with trinity.connect(warehouse, spark_settings=settings) as session:
    for _ in range(times):
        session.sql(f"UPDATE {table} SET n = n + 1 WHERE id = 1")
"""


@pytest.mark.full
def test_l7_processes_lose_no_increment(session: Session, warehouse: Path, counter: str) -> None:
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(warehouse), counter, "10"]) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    rows = {r.id: r.n for r in session.sql(f"SELECT * FROM {counter}").collect()}
    assert rows == {1: 30, 2: 0}


@pytest.mark.tiered
def test_l7_a_merge_and_inserts_have_a_serial_order(session: Session, warehouse: Path, counter: str) -> None:
    """Two sessions insert the same key unless it exists; one of them finds the other's row."""
    other = trinity.connect(warehouse)
    text = f"""MERGE INTO {counter} t USING (SELECT 7 AS id) s ON t.id = s.id
               WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)"""
    with other:
        assert at_once([lambda: session.sql(text), lambda: other.sql(text)]) == []
    assert [r.n for r in session.sql(f"SELECT n FROM {counter} WHERE id = 7").collect()] == [2]


@pytest.mark.tiered
def test_statements_on_disjoint_rows_all_succeed(session: Session, counter: str) -> None:
    works = [lambda i=i: session.sql(f"UPDATE {counter} SET n = n + {i} WHERE id = {i}") for i in (1, 2)]
    works += [lambda i=i: session.sql(f"INSERT INTO {counter} VALUES ({i}, {i})") for i in (3, 4)]
    assert at_once(works) == []
    rows = {r.id: r.n for r in session.sql(f"SELECT * FROM {counter}").collect()}
    assert rows == {1: 1, 2: 2, 3: 3, 4: 4}


@pytest.mark.tiered
def test_a_statement_that_selects_nothing_makes_no_commit(session: Session, counter: str) -> None:
    before = session.table(counter).history().count()
    found = session.sql(f"UPDATE {counter} SET n = 5 WHERE id = 99").collect()[0]
    assert found.asDict() == {
        "num_affected_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0, "num_inserted_rows": 0
    }  # fmt: skip
    session.sql(f"DELETE FROM {counter} WHERE n IS NULL")
    session.sql(f"MERGE INTO {counter} t USING (SELECT 9 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert session.table(counter).history().count() == before


@pytest.mark.parametrize("fmt", [pytest.param("delta", marks=FULL), "iceberg"])
def test_l7_what_another_engine_deleted_stays_deleted(
    session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = session.create_table(
        f"{fmt}.default.counters", [Column("id", "int"), Column("n", "int")], primary_key=["id"]
    )
    table.upsert(pa.table({"id": pa.array([1], pa.int32()), "n": pa.array([0], pa.int32())}))

    def delete() -> None:
        if fmt == "delta":
            session.spark.sql(f"DELETE FROM delta.`{table.location}` WHERE id = 1")
        else:
            pyiceberg(table).delete("id == 1")

    meanwhile(monkeypatch, table, "begin_merge", delete)
    session.sql(f"UPDATE {table.name} SET n = n + 1 WHERE id = 1")
    assert table.to_df().collect() == []


@pytest.mark.full
def test_l7_files_that_left_a_folder_are_not_written_anew(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "files"
    for rows in (FIRST, SECOND):
        pyarrow_files(folder, rows.drop_columns(["p"]).filter(pc.is_valid(rows["id"])))
    table = session.register("parquet.default.files", "parquet", str(folder), KEYED)
    finish = table.connector.metadata.finish_merge

    def after_removal(*arguments: Any) -> CommitResult:
        monkeypatch.setattr(table.connector.metadata, "finish_merge", finish)
        (folder / "1.parquet").unlink()
        return finish(*arguments)

    monkeypatch.setattr(table.connector.metadata, "finish_merge", after_removal)
    table.update("id = 2", {"v": "concat(v, '!')"})
    assert rows_of(table) == {(1, "a"), (2, "b!"), (3, "c")}


@pytest.mark.tiered
def test_retries_are_bounded(session: Session, fmt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.busy (id INT) TBLPROPERTIES ('commit.retry.timeout' = '0 seconds')")
    table = session.table(f"{fmt}.default.busy")
    session.sql(f"INSERT INTO {table.name} VALUES (1)")
    metadata = table.connector.metadata
    finish = metadata.finish_merge

    def raced(*args: object) -> object:
        session.sql(f"INSERT INTO {table.name} VALUES (1)")  # another commit is always first
        return finish(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(metadata, "finish_merge", raced)
    with pytest.raises(TrinityError) as caught:
        session.sql(f"UPDATE {table.name} SET id = 2 WHERE id = 1")
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert {r.id for r in table.to_df().collect()} == {1}
