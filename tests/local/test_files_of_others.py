"""Iceberg tables of Trinity's into which PyIceberg writes, read, changed and compacted without Spark (L3)."""

from __future__ import annotations

from pathlib import Path

import pytest

import trinity
from tests.support.files_of_others import ENGINES, append, iceberg_table, make, play, rows, shown
from trinity import Session


@pytest.mark.parametrize("engine", ["tombstone", "sequence_group", "plain"])
def test_rows_of_others_are_row_versions(local: Session, warehouse: Path, engine: str) -> None:
    assert play(local, warehouse, engine, 4)


def test_changes_of_others_are_read_and_written(local: Session, warehouse: Path) -> None:
    table = make(local, "iceberg", "tombstone")
    table.upsert(rows([1, 2, 3], 1))
    append(iceberg_table(warehouse, table), rows([3, 4], 2))
    iceberg_table(warehouse, table).delete("k = 1")  # PyIceberg rewrites the file that has the row
    assert [row.split(",")[1] for row in shown(table)] == [" 'w': 1", " 'w': 2", " 'w': 2"]
    changed = [(r["_commit_version"], r.k, r["_change_type"]) for r in table.changes(2).collect()]
    assert sorted(changed) == [
        (3, 3, "update_postimage"),
        (3, 3, "update_preimage"),
        (3, 4, "insert"),
        (4, 1, "delete"),
    ]
    assert local.sql("SELECT count(*) AS n FROM iceberg.default.tombstone WHERE w = 2").first().n == 2
    local.sql("UPDATE iceberg.default.tombstone SET v = 'new' WHERE k = 4")
    local.sql(
        "MERGE INTO iceberg.default.tombstone t USING (VALUES (2, 5)) s(k, w) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET w = s.w"
    )
    expected = shown(table)
    assert table.explain().endswith("executor: this process")
    table.compact(full=True)
    assert shown(table) == expected
    assert [row.v for row in local.sql("SELECT v FROM iceberg.default.tombstone ORDER BY k").collect()] == [
        "2.1",
        "3.2",
        "new",
    ]


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_many_histories_with_rows_of_others(tmp_path: Path, engine: str) -> None:
    whole = 0
    for seed in range(12):
        folder = tmp_path / str(seed)
        with trinity.connect(folder, engine="local") as session:
            whole += play(session, folder, engine, seed)
    assert whole >= 4
