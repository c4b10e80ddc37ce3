"""Collations: no table has any, so a column that would lose its collation is refused by name, at every depth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructField, StructType

import trinity
from tests.support.delta_by_hand import Log, schema_string, struct_field
from tests.support.refusals import refused
from trinity import Column, Session
from trinity.applying import create_changes_target

TYPES: Final = {
    "c": "STRING COLLATE UTF8_LCASE",
    "c.x": "STRUCT<x: STRING COLLATE UTF8_LCASE>",
    "c.element": "ARRAY<STRING COLLATE UTF8_LCASE>",
    "c.key": "MAP<STRING COLLATE UTF8_LCASE, INT>",
    "c.value.y.element": "MAP<INT, STRUCT<x: STRING, y: ARRAY<STRING COLLATE UTF8_LCASE>>>",
}
"""Path of a collated text -> the type of column ``c``."""
TEXT: Final = StringType("UTF8_LCASE")
WITHIN: Final = StructType([StructField("x", StringType()), StructField("y", ArrayType(TEXT))])
SCHEMAS: Final = {"c": TEXT, "c.key": MapType(TEXT, IntegerType()), "c.value.y.element": MapType(StringType(), WITHIN)}

OF_T: Final = {"__COLLATIONS": {"t": "spark.UTF8_LCASE"}}


def test_statements_that_define_a_column(tmp_path: Path, fmt: str) -> None:
    with trinity.connect(tmp_path) as session:
        table = session.create_table(f"{fmt}.default.t", [Column("id", "int"), Column("c", "string")])
        for path, kind in TYPES.items():
            for statement in (
                f"CREATE TABLE {fmt}.default.made (id INT, c {kind})",
                f"CREATE EXTERNAL TABLE {fmt}.default.made (c {kind}) LOCATION '{tmp_path}/theirs'",
                f"ALTER TABLE {table.name} ADD COLUMN c {kind}",
                f"ALTER TABLE {table.name} ALTER COLUMN c TYPE {kind}",
            ):
                with refused("NOT_SUPPORTED", f"'{path}'", "COLLATE UTF8_LCASE"):
                    session.sql(statement)
        assert [c.type for c in table.definition.visible] == ["int", "string"]
        assert session.list_tables(fmt, "default") == ["t"]


def test_schemas_of_spark(tmp_path: Path, fmt: str) -> None:
    with trinity.connect(tmp_path) as session:
        for path, kind in SCHEMAS.items():
            schema = StructType([StructField("id", IntegerType()), StructField("c", kind)])
            with refused("NOT_SUPPORTED", f"'{path}'", "COLLATE UTF8_LCASE"):
                session.create_table(f"{fmt}.default.t", schema)
            with refused("NOT_SUPPORTED", f"'{path}'", "COLLATE UTF8_LCASE"):
                create_changes_target(session, f"{fmt}.default.t", schema, keys=["id"], sequence_by="id")
        assert not session.list_tables(fmt, "default")
        assert session.create_table("t", StructType([StructField("c", StringType("UTF8_BINARY"))])).definition.columns


def test_a_field_of_a_struct_has_no_default(tmp_path: Path) -> None:
    with trinity.connect(tmp_path) as session, refused("NOT_SUPPORTED", "'c.x'", "DEFAULT 3"):
        session.sql("CREATE TABLE t (c STRUCT<x: INT DEFAULT 3>)")


def test_data_that_brings_columns(session: Session, tiered_fmt: str) -> None:
    name, spark = f"{tiered_fmt}.default.t", session.spark
    table = session.create_table(name, [Column("id", "int"), Column("t", "string")], primary_key=["id"])
    collated = spark.sql("SELECT 1 AS id, 'a' COLLATE UTF8_LCASE AS t")
    query = "SELECT 2 AS id, array(named_struct('x', 'a' COLLATE UTF8_LCASE)) AS c"
    with refused("NOT_SUPPORTED", "'c.element.x'", "COLLATE UTF8_LCASE"):
        session.sql(f"CREATE TABLE {tiered_fmt}.default.made AS {query}")
    with refused("NOT_SUPPORTED", "'c.element.x'", "COLLATE UTF8_LCASE"):
        create_changes_target(session, f"{tiered_fmt}.default.made", spark.sql(query), keys=["id"], sequence_by="id")
    with refused("NOT_SUPPORTED", "'c.element.x'", "COLLATE UTF8_LCASE"):
        table.upsert(spark.sql(query), evolve=True)
    stream = spark.readStream.format("rate").load().selectExpr("1 AS id", "'a' COLLATE UTF8_LCASE AS c")
    with refused("NOT_SUPPORTED", "'c'", "COLLATE UTF8_LCASE"):
        table.stream_writer(stream, checkpoint="nowhere", evolve=True)
    assert not session.list_tables(tiered_fmt, "default")[1:]
    table.upsert(collated, evolve=True)  # the column exists, and compares by its collation
    assert table.to_arrow().to_pylist() == [{"id": 1, "t": "a"}]


def test_delta_tables_with_collations_of_others(tmp_path: Path) -> None:
    """Spark would compare the column by its collation, Trinity keys and bounds of files by code points."""
    text = struct_field("x", "string", {"__COLLATIONS": {"x": "spark.UTF8_LCASE"}})
    fields = [struct_field("id", "long"), struct_field("c", {"type": "struct", "fields": [text]})]
    Log.of(tmp_path / "theirs", fields)
    with trinity.connect(tmp_path / "own") as session:
        with refused("NOT_SUPPORTED", "'c'", "collation"):
            session.register("delta.default.theirs", "delta", tmp_path / "theirs", {"primary-key": "id"})
        own = session.create_table("delta.default.own", [Column("id", "bigint"), Column("t", "string")])
        own.append(pa.table({"id": [1], "t": ["a"]}))
        log = Path(own.location, "_delta_log")
        actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
        [changed] = [action["metaData"] for action in actions if "metaData" in action]
        changed["schemaString"] = schema_string([struct_field("id", "long"), struct_field("t", "string", OF_T)])
        actions = [action for action in actions if "commitInfo" in action or "metaData" in action]
        (log / f"{2:020d}.json").write_text("\n".join(map(json.dumps, actions)))
        for read in (own.to_arrow, lambda: own.append(pa.table({"id": [1], "t": ["a"]}))):
            with refused("NOT_SUPPORTED", "'t'", "collation"):
                read()
