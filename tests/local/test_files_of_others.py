"""Iceberg tables of Trinity that PyIceberg writes, too: read, changed and compacted without Spark (L3)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import trinity
from tests.support.files_of_others import ENGINES, append, batch, iceberg_table, make, play, shown
from trinity import Session, Table
from trinity.spi import Origin, SplitSource, TableHandle
from trinity_iceberg.carried import ADDED
from trinity_iceberg.expire import EXPIRED_AT_ONCE
from trinity_iceberg.metadata import IcebergMetadata


@pytest.mark.parametrize("engine", ["tombstone", "sequence_group", "plain"])
def test_rows_of_others_are_row_versions(local: Session, warehouse: Path, engine: str) -> None:
    assert play(local, warehouse, engine, 4)


@pytest.mark.parametrize("engine", ["tombstone", "sequence_group", "plain"])
def test_columns_of_others_stay(local: Session, warehouse: Path, engine: str) -> None:
    assert play(local, warehouse, engine, 0, further=["other column"] * 3)
    assert "extra" in local.table(f"iceberg.default.{engine}").columns


@pytest.mark.parametrize("fault", ["undone deletes", "dropped columns"])
def test_planted_faults_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """One fault takes rewritten rows for new ones, which undoes deletes of them; the other drops a column of others."""
    read = IcebergMetadata.get_splits

    def faulty(metadata: IcebergMetadata, table: TableHandle) -> SplitSource:
        splits = read(metadata, table)
        if fault == "undone deletes":
            return replace(splits, files=tuple(replace(file, origin=Origin.ADDED) for file in splits.files))
        known = tuple(c for c in splits.definition.columns if c.name != "extra")
        return replace(splits, definition=replace(splits.definition, columns=known))

    monkeypatch.setattr(IcebergMetadata, "get_splits", faulty)

    def play_some() -> None:
        for seed in range(6):
            folder = tmp_path / str(seed)
            with trinity.connect(folder, engine="local") as session:
                play(session, folder, "arrival", seed, further=["other column"])

    with pytest.raises(AssertionError, match="arrival, seed"):
        play_some()


def test_changes_of_others_are_read_and_written(local: Session, warehouse: Path) -> None:
    table = make(local, "iceberg", "tombstone")
    table.upsert(batch([1, 2, 3], 1))
    append(iceberg_table(warehouse, table), batch([3, 4], 2))
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


def shown_anew(warehouse: Path, table: Table) -> list[str]:
    """Return the merged rows as another session reads them, which has nothing in memory."""
    with trinity.connect(warehouse, engine="local") as other:
        return shown(other.table(str(table.name)))


@pytest.mark.parametrize("by", ["vacuum", "writer"])
def test_l3_rows_of_others_keep_their_place_when_their_version_expires(
    local: Session, warehouse: Path, by: str
) -> None:
    table = make(local, "iceberg", "hidden_row_kind")
    table.upsert(batch([1], 1))
    table.delete("k = 1")
    append(iceberg_table(warehouse, table), batch([2, 3], 2))
    table.delete("k = 2")
    if by == "vacuum":
        table.vacuum("0 seconds")
    else:
        table.set_properties({"history.expire.max-snapshot-age-ms": "1"})
        with EXPIRED_AT_ONCE.set_to(1):
            table.upsert(batch([1], 0))  # late
            table.upsert(batch([1], 0))
    assert table.history().count() < 4
    assert shown_anew(warehouse, table) == shown(table)
    assert [row["k"] for row in table.to_arrow().to_pylist()] == [3]
    table.compact(full=True)
    table.vacuum("0 seconds")
    assert json.loads(iceberg_table(warehouse, table).properties[ADDED]) == []  # none of their files is left
    assert shown_anew(warehouse, table) == shown(table)


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_many_histories_with_rows_of_others(tmp_path: Path, engine: str) -> None:
    whole, seed = 0, 0
    while seed < 12 or (whole < 4 and seed < 40):  # refusals end most histories of some engines early
        folder = tmp_path / str(seed)

        def check(table: Table, folder: Path = folder) -> None:
            assert shown_anew(folder, table) == shown(table)

        with trinity.connect(folder, engine="local") as session:
            further = ["other column"] * (seed % 3) + ["vacuum"] * (seed % 2)
            whole += play(session, folder, engine, seed, check, further)
        seed += 1
    assert whole >= 4
