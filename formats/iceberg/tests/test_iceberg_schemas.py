"""Schemas and tables of the Iceberg adapter, driven through the SPI alone: definitions, types, field ids, changes."""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.adapter import KEYED, VALUES, append, code_of, stored
from tests.support.alter import add_column, set_properties
from tests.support.iceberg_lake import open_catalog, with_pyiceberg
from trinity.spi import Column, TableDefinition, TableHandle, type_text
from trinity_iceberg import IcebergConnector
from trinity_iceberg.swap import put_table as put_named


def test_schemas(lake: IcebergConnector) -> None:
    lake.metadata.create_schema("sales")
    assert lake.metadata.list_schemas() == ["default", "sales"]
    assert code_of(lambda: lake.metadata.create_schema("sales"))[0] == "SCHEMA_ALREADY_EXISTS"
    made = lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales"))
    assert lake.metadata.list_tables("sales") == ["t"]
    assert made.location == os.path.dirname(made.location) + "/t"
    assert code_of(lambda: lake.metadata.drop_schema("sales"))[0] == "SCHEMA_NOT_EMPTY"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales")))[0] == (
        "TABLE_ALREADY_EXISTS"
    )
    lake.metadata.drop_table(made)
    lake.metadata.drop_schema("sales")
    assert not os.path.exists(made.location)
    for call in (lambda: lake.metadata.drop_schema("sales"), lambda: lake.metadata.list_tables("sales")):
        assert code_of(call)[0] == "SCHEMA_NOT_FOUND"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="x")))[0] == "SCHEMA_NOT_FOUND"


def test_a_schema_without_a_folder_is_locked_while_a_table_is_made(
    lake: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropping another table of the name at that time would delete the folder with the new metadata."""
    lake.metadata.create_schema("sales")
    wanted, other = dataclasses.replace(KEYED, schema="sales"), open_catalog(tmp_path / "w")
    putting = itertools.count()
    dropping: list[threading.Thread] = []

    def put_table(*given: Any) -> Any:
        if next(putting) == 0:
            made = other.metadata.create_table(wanted)
            dropping.append(threading.Thread(target=lambda: other.metadata.drop_table(made)))
            dropping[0].start()
            dropping[0].join(1)
        return put_named(*given)

    monkeypatch.setattr("trinity_iceberg.metadata.put_table", put_table)
    assert code_of(lambda: lake.metadata.create_table(wanted))[0] == "TABLE_ALREADY_EXISTS"
    dropping[0].join()
    assert lake.metadata.list_tables("sales") == []


def test_definition_survives(lake: IcebergConnector, tmp_path: Path) -> None:
    columns = [Column("k", "varchar(9)", False), *(Column(f"c{i}", t) for i, t in enumerate(VALUES))]
    columns.append(Column("d", "int", default="1 + 1", comment="says so"))
    definition = TableDefinition(
        "default", "all_types", tuple(columns), ("k",), ("c1",), {"watermark-key": "c4", "write.target-x": "7"}
    )
    handle = lake.metadata.create_table(definition)
    reopened = open_catalog(tmp_path / "w")
    assert reopened.metadata.get_table("default", "all_types") == dataclasses.replace(handle, id=None)
    assert reopened.metadata.get_splits(handle).definition == definition.numbered()
    iceberg = with_pyiceberg(lake, handle)
    assert iceberg.metadata.format_version == 2
    assert iceberg.properties["write.target-x"] == "7"
    assert iceberg.schema().identifier_field_names() == {"k"}
    assert iceberg.schema().find_field("d").doc == "says so"


def test_float_keys_are_no_identifiers(lake: IcebergConnector) -> None:
    definition = dataclasses.replace(KEYED, columns=(Column("id", "double", False), Column("v", "string")))
    iceberg = with_pyiceberg(lake, lake.metadata.create_table(definition))
    assert iceberg.schema().identifier_field_ids == []
    assert iceberg.schema().find_field("id").required


def test_all_types_are_written_and_read(lake: IcebergConnector) -> None:
    columns = tuple(Column(f"c{i}", t) for i, t in enumerate(VALUES))
    handle = lake.metadata.create_table(TableDefinition("default", "all_types", columns))
    append(lake, handle, tuple(VALUES.values()), (None,) * len(VALUES))
    splits = lake.metadata.get_splits(handle)
    expected = {f"c{i}": v for i, v in enumerate(VALUES.values())}
    assert stored(lake, handle) == [expected, dict.fromkeys(expected)]
    for column, value in zip(columns, VALUES.values(), strict=True):
        if isinstance(value, list | dict | float):  # floats have none: bounds would leave NaN out
            assert column.name not in splits.files[0].stats
        else:
            found = splits.files[0].stats[column.name]
            assert (found.min, found.max, found.nulls) == (value, value, 1)
    assert with_pyiceberg(lake, handle).scan().to_arrow().to_pylist() == [expected, dict.fromkeys(expected)]
    assert "string" in {type_text(f.type) for f in splits.storage}
    assert not any(pa.types.is_large_string(f.type) or pa.types.is_large_list(f.type) for f in splits.storage)


def test_every_level_has_its_field_id(lake: IcebergConnector) -> None:
    handle = lake.metadata.create_table(
        TableDefinition("default", "n", (Column("m", "map<string,array<struct<a:int>>>"), Column("z", "int")))
    )
    append(lake, handle, ([("k", [{"a": 1}])], 2))
    splits = lake.metadata.get_splits(handle)
    in_file = pq.read_schema(splits.files[0].path)

    def ids(field: pa.Field) -> list[int]:
        kind = field.type
        is_map = pa.types.is_map(kind)
        inner = [kind.key_field, kind.item_field] if is_map else [kind.field(n) for n in range(kind.num_fields)]
        return [int(field.metadata[b"PARQUET:field_id"]), *(i for f in inner for i in ids(f))]

    for schema in (in_file, splits.storage):
        found = [i for f in schema for i in ids(f)]
        assert sorted(found) == list(range(1, 7))
    assert set(splits.files[0].column_sizes) >= {"m.key_value.key", "z"}


def test_long_bounds_are_cut_and_stay_bounds(lake: IcebergConnector, handle: TableHandle) -> None:
    low, high = "a" * 500, "z" * 500
    append(lake, handle, (1, low), (2, high))
    found = lake.metadata.get_splits(handle).files[0].stats["v"]
    assert len(found.min) < 100
    assert found.min <= low
    assert found.max >= high


def test_properties_are_added(lake: IcebergConnector, handle: TableHandle) -> None:
    set_properties(lake, handle, {"bucket": "8", "write.x": "y"})
    assert lake.metadata.get_splits(handle).definition.properties == {
        "watermark-key": "v",
        "bucket": "8",
        "write.x": "y",
    }
    assert with_pyiceberg(lake, handle).properties["write.x"] == "y"


def test_concurrent_alters_lose_nothing(lake: IcebergConnector, handle: TableHandle, tmp_path: Path) -> None:
    others = [open_catalog(tmp_path / "w") for _ in range(4)]
    threads = []
    for n, other in enumerate(others):
        threads.append(threading.Thread(target=set_properties, args=(other, handle, {f"p{n}": str(n)})))
        threads.append(threading.Thread(target=add_column, args=(other, handle, Column(f"n{n}", "int"))))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    definition = lake.metadata.get_splits(handle).definition
    assert {f"p{n}" for n in range(4)} <= set(definition.properties)
    assert {f"n{n}" for n in range(4)} <= {c.name for c in definition.visible}
    assert definition.columns[-1].hidden
