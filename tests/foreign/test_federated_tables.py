"""Tables that other engines made in catalogs of their own, read and written as Trinity's own (U7)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

import trinity
from tests.support.foreign import AFTER_FIRST, FIRST, KEYED, LIVE, SECOND, delta_rs, hadoop_catalog, rows_of
from tests.support.refusals import refusal
from trinity import Session


def test_tables_of_an_iceberg_catalog_that_others_made(warehouse: Path, tmp_path: Path, spark: SparkSession) -> None:
    address = f"sqlite:///{tmp_path}/others.db"
    theirs = SqlCatalog("others", uri=address, warehouse=f"file://{tmp_path}/lake")
    theirs.create_namespace("ns")
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "ts", LongType()),
        NestedField(3, "v", StringType()),
        identifier_field_ids=[1],
    )
    first = theirs.create_table("ns.first", schema, properties={"trinity.watermark-key": "ts"})
    rows = pa.table({"id": [1, 1, 2], "ts": [2, 1, 1], "v": ["a", "late", "b"]}, schema=schema.as_arrow())
    first.append(rows)
    second = theirs.create_table("ns.second", pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("v", pa.string())]))
    pq.write_table(rows, tmp_path / "without-ids.parquet")
    second.add_files([f"file://{tmp_path}/without-ids.parquet"])
    options = {"connector": "iceberg", "uri": address, "warehouse": str(tmp_path / "lake"), "catalog-name": "others"}
    with trinity.connect(warehouse, catalogs={"lake": options}, catalog="lake", schema="ns") as session:
        assert rows_of(session.table("first")) == {(1, "a"), (2, "b")}
        session.table("first").upsert(pa.table({"id": [2, 3], "ts": [2, 1], "v": ["b2", "c"]}))
        session.sql("MERGE INTO first t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'c2'")
        assert rows_of(session.table("first")) == {(1, "a"), (2, "b2"), (3, "c2")}
        assert session.table("second").to_df().count() == 3
        session.register("second", "iceberg", properties={"primary-key": "id", "watermark-key": "ts"})
        refusal("NOT_SUPPORTED", lambda: session.drop_table("first"), "DROP TABLE")
        refusal("TABLE_NOT_FOUND", lambda: session.register("third", "iceberg", properties={}), "third")
        refusal("NOT_SUPPORTED", lambda: session.table("first").set_properties({"comment": "x"}), "register it")
    assert theirs.load_table("ns.first").scan().to_arrow().num_rows == 6
    with trinity.connect(warehouse, catalogs={"lake": options}) as later:
        assert rows_of(later.table("lake.ns.second")) == {(1, "a"), (2, "b")}
        later.drop_table("lake.ns.second")
        assert later.table("lake.ns.second").to_df().count() == 3
        folder = theirs.load_table("ns.first").location()
        by_location = later.register("parquet.default.first", "iceberg", folder)
        assert by_location.to_df().count() == 3
        refusal("NOT_SUPPORTED", lambda: by_location.upsert(rows), "belongs to a catalog")
        refusal(
            "INVALID_TABLE_PROPERTY",
            lambda: later.register("x", "iceberg", folder, {"primary-key": "v"}),
            "primary-key",
        )


def test_delta_tables_that_others_put_into_the_catalog(session: Session, warehouse: Path) -> None:
    delta_rs(warehouse / "delta" / "default" / "theirs", FIRST)
    table = session.table("delta.default.theirs")
    assert (table.definition.primary_key, table.to_df().count()) == ((), 4)
    session.register("delta.default.theirs", "delta", properties=KEYED)
    assert rows_of(session.table("delta.default.theirs")) == AFTER_FIRST
    delta_rs(warehouse / "delta" / "default" / "theirs", SECOND)
    assert rows_of(session.table("delta.default.theirs")) == LIVE
    refusal(
        "TABLE_ALREADY_EXISTS", lambda: session.register("delta.default.theirs", "delta", properties=KEYED), "theirs"
    )


def test_an_iceberg_table_of_version_3_is_read_only(session: Session, tmp_path: Path) -> None:
    spark = hadoop_catalog(tmp_path)
    spark.sql(
        "CREATE TABLE files.ns.three (id BIGINT, v STRING) USING iceberg TBLPROPERTIES ('format-version' = '3', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql("INSERT INTO files.ns.three SELECT id, 'a' FROM range(0, 9, 1, 1)")
    spark.sql("DELETE FROM files.ns.three WHERE id = 4")
    spark.sql("INSERT INTO files.ns.three VALUES (5, 'b')")
    table = session.register("three", "iceberg", tmp_path / "ns" / "three", {"primary-key": "id"})
    assert rows_of(table) == {(n, "b" if n == 5 else "a") for n in range(9) if n != 4}
    refusal("NOT_SUPPORTED", lambda: table.upsert(pa.table({"id": [1], "v": ["x"]})), "version 3")
