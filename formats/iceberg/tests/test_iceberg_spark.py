"""Iceberg tables and Spark's own Iceberg runtime: each reads the other's commits."""

from __future__ import annotations

import dataclasses
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.adapter import KEYED, VALUES, append, code_of, compact, stored, write
from tests.support.alter import add_column, set_properties
from tests.support.foreign import equality_delete
from tests.support.iceberg_lake import open_catalog
from trinity.spi import Column, SinkId, TableDefinition
from trinity_iceberg import IcebergConnector


@pytest.fixture
def in_spark(spark: Any, tmp_path: Path) -> IcebergConnector:
    """Open a catalog also in Spark, under a name of its own, as Spark never closes catalogs."""
    name = f"lake_{uuid.uuid4().hex[:8]}"
    lake = open_catalog(tmp_path / "w", name)
    for key, value in lake.spark_catalog_settings(name).items():
        spark.conf.set(key, value)
    return lake


def test_spark_reads_what_trinity_writes(spark: Any, in_spark: IcebergConnector) -> None:
    kinds = {t: v for t, v in VALUES.items() if t != "time"}  # Iceberg's Spark runtime has no TIME
    columns = tuple(Column(f"c{i}", t) for i, t in enumerate(kinds))
    handle = in_spark.metadata.create_table(TableDefinition("default", "all_types", columns, ("c4",)))
    append(in_spark, handle, tuple(kinds.values()))
    add_column(in_spark, handle, Column("more", "string"))
    append(in_spark, handle, (*(v if t == "bigint" else None for t, v in kinds.items()), "m"))
    name = f"{handle.catalog}.default.all_types"
    rows = spark.table(name).orderBy("more").toArrow().to_pylist()
    expected = {f"c{i}": dict(v) if t.startswith("map") else v for i, (t, v) in enumerate(kinds.items())}
    rows[0]["c17"] = dict(rows[0]["c17"])
    assert rows[0] == {**expected, "more": None}
    assert rows[1]["more"] == "m"
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE c4 = {2**62} AND c9 = 'grüße'").first()[0] == 1
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE c4 = 3").first()[0] == 0


def test_spark_sees_every_version_and_only_live_rows(spark: Any, in_spark: IcebergConnector) -> None:
    handle = in_spark.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    assert spark.table(name).count() == 0
    for n in range(40):  # enough for merged manifests
        append(in_spark, handle, (n, "x"))
    snapshot = in_spark.metadata.history(handle)[-1].details["snapshot_id"]
    folded = in_spark.metadata.get_splits(handle).version
    compact(in_spark, handle, [{"id": n, "v": "x"} for n in range(30)], [{"id": n} for n in range(30, 40)])()
    append(in_spark, handle, (100, "late"))
    assert sorted(r.id for r in spark.table(name).collect()) == [*range(30), 100]
    assert spark.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}").count() == 40
    live = spark.table(f"{name}.entries").where("status < 2").select("sequence_number", "data_file.record_count")
    assert sorted(map(tuple, live.collect())) == [(folded, 30), (folded + 2, 1)]
    operations = [r.operation for r in spark.sql(f"SELECT operation FROM {name}.snapshots").collect()]
    assert operations == ["append"] * 41 + ["replace", "append"]


def test_trinity_reads_what_spark_changes(spark: Any, in_spark: IcebergConnector) -> None:
    handle = in_spark.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    append(in_spark, handle, (1, "a"), (2, "b"), txn=("app", 3))
    spark.sql(f"INSERT INTO {name} VALUES (3, 'spark', NULL)")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'")
    assert sorted((r["id"], r["v"]) for r in stored(in_spark, handle)) == [(1, "a"), (2, "merged"), (3, "spark")]
    spark.sql(f"ALTER TABLE {name} ADD COLUMN added int")
    definition = in_spark.metadata.get_splits(handle).definition
    assert [c.name for c in definition.columns] == ["id", "v", "added", "_trinity_row_kind"]
    append(in_spark, handle, (4, "d", 5, None))
    assert append(in_spark, handle, (9, "again"), txn=("app", 3)).skipped
    compact(in_spark, handle, [{"id": 1, "v": "a"}], [])()  # replaces files of both writers
    assert [(r["id"], r["v"]) for r in stored(in_spark, handle)] == [(1, "a")]
    assert [tuple(r) for r in spark.sql(f"SELECT id, v FROM {name}").collect()] == [(1, "a")]
    system = f"CALL {handle.catalog}.system"
    spark.sql(f"{system}.rewrite_data_files(table => 'default.t', options => map('rewrite-all', 'true'))")
    spark.sql(f"{system}.rewrite_manifests('default.t')")
    assert [(r["id"], r["v"]) for r in stored(in_spark, handle)] == [(1, "a")]


def test_spark_and_trinity_commit_at_once(spark: Any, in_spark: IcebergConnector) -> None:
    patient = {"commit.retry.num-retries": "100", "commit.retry.max-wait-ms": "200"}  # Spark gives up after four
    definition = dataclasses.replace(KEYED, properties={**KEYED.properties, **patient})
    handle = in_spark.metadata.create_table(definition)
    name = f"{handle.catalog}.default.t"
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for n in range(15):
                append(in_spark, handle, (n, "trinity"))
                time.sleep(0.05)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for n in range(100, 105):
        spark.sql(f"INSERT INTO {name} VALUES ({n}, 'spark', NULL)")
    thread.join()
    assert not errors
    assert sorted(r["id"] for r in stored(in_spark, handle)) == [*range(15), *range(100, 105)]
    assert spark.table(name).count() == 20


def test_equality_deletes_are_refused_by_name(spark: Any, in_spark: IcebergConnector) -> None:
    handle = in_spark.metadata.create_table(KEYED)
    name = f"{handle.catalog}.default.t"
    append(in_spark, handle, (7, "older file"))
    append(in_spark, handle, (1, "a"), (2, "b"))
    before = dataclasses.replace(handle, version=in_spark.metadata.get_splits(handle).version)
    begun = in_spark.metadata.begin_insert(handle)
    fragments = write(in_spark, begun.target, [{"id": 9}], SinkId())
    equality_delete(spark, name, Path(handle.location), 1)
    assert sorted(r.id for r in spark.table(name).collect()) == [2, 7]
    metadata = in_spark.metadata
    for call in (
        lambda: metadata.get_splits(handle),
        lambda: metadata.begin_insert(handle),
        lambda: metadata.begin_merge(handle, {}),
        lambda: metadata.begin_rewrite(handle, ()),
        lambda: metadata.finish_insert(begun, fragments),
        lambda: metadata.truncate(handle),
        lambda: set_properties(in_spark, handle, {"bucket": "4"}),
    ):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert handle.full_name in message
        assert "rewrite_data_files" in message
    assert metadata.get_splits(before).version == before.version
    spark.sql(
        f"CALL {handle.catalog}.system.rewrite_data_files(table => 'default.t', "
        "options => map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true'))"
    )
    assert sorted(r["id"] for r in stored(in_spark, handle)) == [2, 7]
    append(in_spark, handle, (3, "c"))
    assert sorted(r["id"] for r in stored(in_spark, handle)) == [2, 3, 7]
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    assert len(stored(in_spark, handle)) == 3
    code, message = code_of(lambda: append(in_spark, handle, (4, "d")))
    assert code == "NOT_SUPPORTED"
    assert "format version 3" in message
