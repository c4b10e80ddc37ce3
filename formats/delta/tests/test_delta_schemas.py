"""Schemas and tables of the Delta adapter, driven through the SPI alone: definitions, types, columns added."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED, VALUES, append, code_of, ids, stored
from tests.support.alter import add_column, set_properties
from tests.support.delta_lake import open_catalog
from trinity.spi import Column, TableDefinition, TableHandle
from trinity.storage import CommitRaced
from trinity_delta import DeltaConnector
from trinity_delta.actions import new_metadata
from trinity_delta.jvm import DeltaJvm

TYPES = {**VALUES, "time": 86_399_999_999}


def test_names(lake: DeltaConnector, handle: TableHandle, tmp_path: Path) -> None:
    lake.metadata.create_schema("sales")
    made = lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales"))
    assert lake.metadata.list_schemas() == ["default", "sales"]
    assert lake.metadata.list_tables("sales") == ["t"]
    assert made.location == str(tmp_path / "w" / "sales" / "t")
    assert code_of(lambda: lake.metadata.create_table(KEYED))[0] == "TABLE_ALREADY_EXISTS"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="x")))[0] == "SCHEMA_NOT_FOUND"
    (tmp_path / "w" / "default" / "half" / "_delta_log").mkdir(parents=True)  # a crash before the first commit
    assert lake.metadata.list_tables("default") == ["t"]
    assert lake.metadata.get_table("default", "half") is None


def test_two_processes_make_one_table(lake: DeltaConnector, tmp_path: Path, spark: SparkSession) -> None:
    location = str(tmp_path / "w" / "default" / "t")
    slow = DeltaJvm(spark).start("t", location)
    table = lake.metadata.create_table(KEYED)
    with pytest.raises(CommitRaced):  # the loop looks again and says TABLE_ALREADY_EXISTS
        slow.create(new_metadata(KEYED, {}))
    append(lake, table, (1, "a"))
    assert ids(lake, table) == [1]


def test_definition_survives(lake: DeltaConnector, tmp_path: Path) -> None:
    columns = tuple(Column(f"C{i}", kind, default="NULL", comment="x") for i, kind in enumerate(TYPES))
    definition = TableDefinition(
        "default",
        "wide",
        (Column("Id", "tinyint", nullable=False), Column("need", "char(3)", nullable=False, default="'abc'"), *columns),
        ("Id",),
        ("Id",),
        {"tombstone-key": "C0", "delta.logRetentionDuration": "interval 60 days"},
    )
    lake.metadata.create_table(definition)
    table = open_catalog(tmp_path / "w", None).metadata.get_table("default", "wide")
    assert table
    assert open_catalog(tmp_path / "w", None).metadata.get_splits(table).definition == definition.numbered()
    refused = definition.with_properties({"delta.columnMapping.mode": "name"})
    code, message = code_of(lambda: lake.metadata.create_table(dataclasses.replace(refused, name="r")))
    assert code == "INVALID_TABLE_PROPERTY"
    assert "delta.columnMapping.mode" in message
    unknown = definition.with_properties({"delta.noSuchThing": "1"})
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(unknown, name="u")))[0] == (
        "INVALID_TABLE_PROPERTY"
    )
    assert lake.metadata.list_tables("default") == ["wide"]


def test_every_type_reads_back_everywhere(lake: DeltaConnector, spark: SparkSession) -> None:
    columns = (Column("id", "int", nullable=False), *(Column(f"c{i}", kind) for i, kind in enumerate(TYPES)))
    table = lake.metadata.create_table(TableDefinition("default", "types", columns, ("id",)))
    append(lake, table, (1, *TYPES.values()), (2, *[None] * len(TYPES)))
    splits = lake.metadata.get_splits(table)
    assert [f.name for f in splits.storage] == [c.name for c in columns]
    assert [tuple(r.values()) for r in stored(lake, table)] == [(1, *TYPES.values()), (2, *[None] * len(TYPES))]
    rows = spark.read.format("delta").load(table.location).orderBy("id").toArrow().to_pylist()
    types = list(TYPES)
    for i, (kind, value) in enumerate(TYPES.items()):
        found = rows[0][f"c{i}"]
        assert (dict(found) if kind.startswith("map") else found) == (dict(value) if kind.startswith("map") else value)
        assert rows[1][f"c{i}"] is None
    schema = spark.read.format("delta").load(table.location).schema
    wanted = {"tinyint": "tinyint", "smallint": "smallint", "timestamp_ntz": "timestamp_ntz", "char(4)": "string"}
    for kind, spark_kind in wanted.items():
        assert schema[f"c{types.index(kind)}"].dataType.simpleString() == spark_kind
    by_rs = pa.table(QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT * FROM t").read_all())
    assert by_rs.num_rows == 2
    first = next(r for r in by_rs.to_pylist() if r["id"] == 1)
    assert first["c15"] == TYPES["timestamp_ntz"]
    assert first["c8"] == TYPES["decimal(38,10)"]


def test_add_column_and_properties(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"))
    add_column(lake, handle, Column("Extra", "varchar(5)", comment="new"))
    set_properties(lake, handle, {"comment": "hello", "delta.checkpointInterval": "50"})
    append(lake, handle, (2, "b", "e"))
    definition = lake.metadata.get_splits(handle).definition
    assert [c.name for c in definition.columns] == ["id", "v", "Extra", "_trinity_row_kind"]
    assert definition.properties["comment"] == "hello"
    assert definition.properties["watermark-key"] == "v"
    found = spark.read.format("delta").load(handle.location)
    assert found.columns == ["id", "v", "Extra", "_trinity_row_kind"]
    assert [tuple(r) for r in found.orderBy("id").collect()] == [(1, "a", None, None), (2, "b", "e", None)]
    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{handle.location}`").collect()
    assert ("delta.checkpointInterval", "50") in [(r[0], r[1]) for r in shown]
    code, message = code_of(lambda: set_properties(lake, handle, {"delta.isolationLevel": "WriteSerializable"}))
    assert code == "INVALID_TABLE_PROPERTY"
    assert "Serializable" in message
