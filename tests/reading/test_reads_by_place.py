"""Merged reads that are scans: their hidden rows are searched once, and remembered (K3, K4, L9, L10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

from trinity import Session, Table, TrinityError
from trinity.engine.reading import hidden_rows
from trinity.engine.reading.hidden_rows import LEAST_ROWS, MOST_LOOKED_AT
from trinity.engine.reading.search import Search
from trinity.engine.reading.spark import executor
from trinity.merge.kernels.keys import Keys

pytestmark = pytest.mark.inner

Rows = list[tuple[int, int, str]]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Search]]:
    """Record the searches of a test, also those in small tables."""
    found: list[Search] = []

    def noted(*given: Any) -> Search:
        found.append(Search(*given))
        return found[-1]

    monkeypatch.setattr(hidden_rows, "Search", noted)
    with LEAST_ROWS.set_to(1):
        yield found


def with_base(session: Session, fmt: str) -> Table:
    session.sql(
        f"CREATE TABLE {fmt}.default.t (id BIGINT, ts INT, gone BOOLEAN, v STRING, PRIMARY KEY (id)) "
        "TBLPROPERTIES ('watermark-key' = 'ts', 'tombstone-key' = 'gone', 'bucket' = '2')"
    )
    table = session.table(f"{fmt}.default.t")
    put_or_delete(table, *((key, 10, "base") for key in range(50)))
    table.compact(full=True)
    return table


def put_or_delete(table: Table, *rows: tuple[int, int, str | None]) -> None:
    """Upsert (id, ts, v); v None deletes the row."""
    ids, stamps, values = zip(*rows, strict=True)
    gone = [v is None for v in values]
    table.upsert(
        pa.table({"id": ids, "ts": pa.array(stamps, pa.int32()), "gone": gone, "v": pa.array(values, pa.string())})
    )


def read(table: Table, **options: Any) -> Rows:
    return sorted((r.id, r.ts, r.v) for r in table.to_df(**options).collect())


def joins(table: Table, **options: Any) -> bool:
    plan: str = table.to_df(**options)._jdf.queryExecution().executedPlan().toString()
    return "Join" in plan or "Window" in plan


def test_a_version_is_searched_once_and_the_next_one_goes_on(
    session: Session, tiered_fmt: str, searches: list[Search]
) -> None:
    table = with_base(session, tiered_fmt)
    put_or_delete(table, (1, 20, "new"), (2, 5, "late"), (3, 20, None), (60, 10, "first"), (61, 10, None))
    put_or_delete(table, (1, 15, "late"), (4, 20, "new"), (60, 10, "tie"))
    rows = {key: (key, 10, "base") for key in range(50)}
    rows |= {1: (1, 20, "new"), 4: (4, 20, "new"), 60: (60, 10, "tie")}
    del rows[3]
    assert read(table) == sorted(rows.values())
    assert not joins(table)
    assert read(table, where="id IN (1, 2, 3, 60)") == [rows[1], rows[2], rows[60]]
    assert len(searches) == 1
    before = table.splits().version
    put_or_delete(table, (3, 15, "late"), (5, 30, "newer"), (60, 10, None))
    rows[5] = (5, 30, "newer")
    del rows[60]
    assert read(table) == sorted(rows.values())
    assert [len(search.later) for search in searches] == [2, 1]  # commits whose keys were searched
    assert (60, 10, "tie") in read(table, version=before)
    put_or_delete(table, (6, 30, "newer"))
    table.compact("resolve") if tiered_fmt != "delta" else table.compact(full=True)
    put_or_delete(table, (6, 20, "late"), (7, 20, None), (3, 12, "late"))
    rows[6] = (6, 30, "newer")
    del rows[7]
    assert read(table) == sorted(rows.values())
    assert not joins(table)


def test_who_asks_for_keys_looks_for_these_alone(session: Session, searches: list[Search]) -> None:
    table = with_base(session, "parquet")
    put_or_delete(table, (1, 20, "new"), (2, 5, "late"))
    assert read(table, where="id = 1") == [(1, 20, "new")]
    assert [r.v for r in session.sql(f"SELECT v FROM {table.name} WHERE id = 2").collect()] == ["base"]
    searched = [search.only for search in searches if isinstance(search.only, Keys)]
    assert [keys.columns[0].distinct.tolist() for keys in searched] == [[1], [2]]
    assert not joins(table, where="id = 1")
    searches.clear()
    assert (2, 10, "base") in read(table)
    assert [search.only for search in searches] == [None]  # a search for some keys does not help one of all keys


def test_who_asks_for_other_rows_or_from_afar_starts_no_search(
    session: Session, searches: list[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_base(session, "parquet")
    put_or_delete(table, (1, 20, "new"), (2, 5, "late"))
    assert read(table, where="id < 2") == [(0, 10, "base"), (1, 20, "new")]
    assert joins(table, where="id < 2")
    with MOST_LOOKED_AT.set_to(3):
        assert read(table, where="id = 1") == [(1, 20, "new")]
        assert joins(table, where="id = 1")
    with monkeypatch.context() as far:
        far.setattr(hidden_rows, "Location", SimpleNamespace(of=lambda _: SimpleNamespace(on_disk=False)))
        assert joins(table, where="id = 1")
    monkeypatch.setattr(session.spark.sparkContext, "master", "spark://there:7077")
    assert read(table, where="id = 1") == [(1, 20, "new")]
    assert joins(table, where="id = 1")
    assert searches == []


@pytest.mark.parametrize("by_a_job", [False, True])
def test_new_options_are_a_new_search(
    session: Session, searches: list[Search], by_a_job: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_a_job:  # as on a cluster
        monkeypatch.setattr(session.spark.sparkContext, "master", "spark://there:7077")
    table = with_base(session, "parquet")
    put_or_delete(table, (1, 20, "new"), (1, 5, "late"))
    assert read(table)[1] == (1, 20, "new")
    session.sql(f"ALTER TABLE {table.name} RENAME COLUMN v TO w")
    session.sql(f"ALTER TABLE {table.name} ADD COLUMN v STRING")
    assert session.table(str(table.name)).to_df().where("id = 1").collect()[0].asDict() == {
        "id": 1, "ts": 20, "gone": False, "w": "new", "v": None,
    }  # fmt: skip


def test_a_file_that_is_gone_is_told_as_ever(session: Session, searches: list[Search]) -> None:
    table = with_base(session, "parquet")
    put_or_delete(table, (1, 20, "new"))
    lost = Path(next(f for f in table.to_df().inputFiles() if "/_trinity" not in f).removeprefix("file://"))
    put_or_delete(table, (1, 30, "newer"))
    lost.unlink()
    with pytest.raises(TrinityError, match=lost.name) as error:
        read(table)
    assert error.value.code == "BAD_DATA"


@LEAST_ROWS.set_to(1)
def test_what_python_workers_cannot_do_is_done_by_a_join(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_python(search: Any, numbers: Any) -> list[bytes]:
        raise PythonException("No module named 'trinity'")

    monkeypatch.setattr(executor, "run_on_spark", without_python)
    monkeypatch.setattr(session.spark.sparkContext, "master", "spark://there:7077")
    table = with_base(session, "parquet")
    put_or_delete(table, (1, 20, "new"))
    assert read(table)[1] == (1, 20, "new")
    assert joins(table)
