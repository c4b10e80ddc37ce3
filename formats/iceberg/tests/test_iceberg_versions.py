"""Versions of Iceberg tables: time travel, history, and tables that were dropped or damaged."""

from __future__ import annotations

import dataclasses
import itertools
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.adapter import KEYED, append, code_of, compact, stored, write
from tests.support.alter import add_column, set_properties
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from trinity.clock import clock_ahead
from trinity.spi import Column, ConnectorContext, SinkId, TableHandle
from trinity_iceberg import IcebergConnector, IcebergFormat
from trinity_iceberg.state import State, Tables


def test_history_has_strictly_increasing_times(lake: IcebergConnector, handle: TableHandle) -> None:
    append(lake, handle, (1, "a"))
    before = lake.metadata.history(handle)[-1].timestamp_ms
    with clock_ahead(timedelta(days=-1)):  # went back
        append(lake, handle, (2, "b"))
    set_properties(lake, handle, {"bucket": "4"})
    history = lake.metadata.history(handle)
    assert [(h.version, h.operation) for h in history] == [(1, "create"), (2, "append"), (3, "append"), (4, "alter")]
    assert history[2].timestamp_ms == before + 1
    assert all(a.timestamp_ms < b.timestamp_ms for a, b in itertools.pairwise(history))


def test_time_travel_shows_the_columns_of_the_time(lake: IcebergConnector, handle: TableHandle) -> None:
    old = append(lake, handle, (1, "a")).version
    add_column(lake, handle, Column("extra", "array<tinyint>", comment="more"))
    new = append(lake, handle, (2, "b", [7], None)).version
    before = lake.metadata.get_splits(dataclasses.replace(handle, version=old))
    now = lake.metadata.get_splits(handle)
    assert [c.name for c in before.definition.columns] == ["id", "v", "_trinity_row_kind"]
    assert [c.name for c in now.definition.columns] == ["id", "v", "extra", "_trinity_row_kind"]
    assert now.definition.column("extra") == Column("extra", "array<tinyint>", comment="more", field_id=4)
    assert (before.version, now.version) == (old, new)
    assert before.storage.names == [c.name for c in before.definition.columns]
    assert [f.commit for f in before.files] == [old]
    assert [r["extra"] for r in stored(lake, handle)] == [None, [7]]
    assert [r["v"] for r in with_pyiceberg(lake, handle).scan().to_arrow().sort_by("id").to_pylist()] == ["a", "b"]
    assert code_of(lambda: add_column(lake, handle, Column("EXTRA", "int")))[0] == "COLUMN_ALREADY_EXISTS"
    assert lake.metadata.get_splits(dataclasses.replace(handle, version=1)).files == ()


@pytest.mark.usefixtures("handle")
def test_a_table_without_any_snapshot_is_version_0(lake: IcebergConnector) -> None:
    lake._iceberg.create_table(("default", "foreign"), pa.schema([("a", pa.int64()), ("b", pa.string())]))
    handle = lake.metadata.get_table("default", "foreign")
    assert handle is not None
    splits = lake.metadata.get_splits(handle)
    assert (splits.version, splits.files, splits.definition.primary_key) == (0, (), ())
    assert [c.type for c in splits.definition.columns] == ["bigint", "string"]
    assert [h.version for h in lake.metadata.history(handle)] == [0]
    append(lake, handle, (1, "x"))
    assert stored(lake, handle) == [{"a": 1, "b": "x"}]


def test_dropped_tables_are_not_found(lake: IcebergConnector, handle: TableHandle) -> None:
    insert = lake.metadata.begin_insert(handle)
    fragments = write(lake, insert.target, [{"id": 1}], SinkId())
    lake.metadata.drop_table(handle)
    assert not os.path.exists(handle.location)
    assert lake.metadata.get_table("default", "t") is None
    calls = [
        lambda: lake.metadata.get_splits(handle),
        lambda: lake.metadata.drop_table(handle),
        lambda: lake.metadata.history(handle),
        lambda: lake.metadata.begin_insert(handle),
        lambda: lake.metadata.finish_insert(insert, fragments),
    ]
    assert [code_of(c)[0] for c in calls] == ["TABLE_NOT_FOUND"] * 5
    made = lake.metadata.create_table(KEYED)
    assert code_of(lambda: lake.metadata.finish_insert(insert, fragments))[0] == "TRANSACTION_CONFLICT"
    assert stored(lake, made) == []


@pytest.mark.parametrize("damage", ["delete", "garbage", "truncate"])
@pytest.mark.parametrize("pattern", ["metadata/m-*.avro", "metadata/snap-*.avro", "metadata/*.json", "_trinity/*.json"])
def test_damaged_metadata_is_named(
    lake: IcebergConnector, handle: TableHandle, tmp_path: Path, damage: str, pattern: str
) -> None:
    append(lake, handle, (1, "a"))
    compact(lake, handle, [{"id": 1}], [{"id": 2}])()
    paths = list(Path(handle.location).glob(pattern))
    for path in paths:
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(b"\x00not this" if damage == "garbage" else path.read_bytes()[:-20])
    code, message = code_of(lambda: open_catalog(tmp_path / "w").metadata.get_splits(handle))
    assert code == "BAD_DATA"
    assert any(str(p) in message for p in paths)


def test_configuration(tmp_path: Path) -> None:
    def create(**options: Any) -> IcebergConnector:
        return IcebergFormat().create("lake", options, ConnectorContext(lambda: None))  # type: ignore[arg-type, return-value]

    assert "warehouse" in code_of(create)[1]
    code, message = code_of(lambda: create(warehouse=str(tmp_path), type="nonsense"))
    assert code == "CONFIGURATION_INVALID"
    assert "nonsense" in message
    (tmp_path / "file").write_text("")
    assert code_of(lambda: create(warehouse=str(tmp_path / "file")))[0] == "FILESYSTEM_ERROR"
    named = create(warehouse=f"file://{tmp_path}/a b", **{"catalog-name": "other"})
    settings = named.spark_catalog_settings("other")
    assert settings["spark.sql.catalog.other.uri"] == f"jdbc:sqlite:{tmp_path}/a b/catalog.db"
    assert code_of(lambda: named.spark_catalog_settings("lake"))[0] == "INVALID_ARGUMENTS"
    append(named, named.metadata.create_table(KEYED), (1, "x"))
    named.close()


@pytest.mark.parametrize(("again", "code"), [(False, "TABLE_NOT_FOUND"), (True, "TRANSACTION_CONFLICT")])
@pytest.mark.parametrize("call", ["get_splits", "begin_insert"])
def test_a_table_that_is_dropped_while_it_is_read_is_not_damaged(
    lake: IcebergConnector, handle: TableHandle, monkeypatch: pytest.MonkeyPatch, call: str, again: bool, code: str
) -> None:
    append(lake, handle, (1, "a"))
    fresh = open_catalog(Path(handle.location).parents[1])  # it has read none of the manifests

    load = Tables.load

    def load_and_drop(*arguments: Any) -> State:
        loaded = load(*arguments)
        monkeypatch.setattr(Tables, "load", load)
        lake.metadata.drop_table(handle)
        if again:
            lake.metadata.create_table(KEYED)
        return loaded

    monkeypatch.setattr(Tables, "load", load_and_drop)
    assert code_of(lambda: getattr(fresh.metadata, call)(handle))[0] == code
