"""Delta tables and other engines: Spark's reader and writer, delta-rs, Polars, and commits of strangers."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED, append, code_of, compact, ids, prepare, stored
from tests.support.delta_lake import commit_by_others, commit_file, last_action, open_catalog
from trinity.spi import Column, ColumnStats, TableDefinition, TableHandle, Tier, arrival_order
from trinity_delta import DeltaConnector
from trinity_delta.actions import loosened
from trinity_delta.deletes import to_z85
from trinity_delta.snapshot import MOST_REPLAYED

_BITMAP = bytes.fromhex("d1d339640100000000000000000000003a30000001000000000000001000000001000000")
SECOND_ROW = {"storageType": "i", "pathOrInlineDv": to_z85(_BITMAP), "sizeInBytes": 34, "cardinality": 1}
"""The deletion vector of one row, which is the second."""


@pytest.mark.full
def test_other_readers(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"), (2, "b"))
    append(lake, handle, (2, "c"), (3, None))
    compact(lake, handle, [{"id": 1, "v": "a"}, {"id": 2, "v": "c"}], [{"id": 3}])()
    wanted = [(1, "a"), (2, "c")]
    frame = spark.read.format("delta").load(handle.location).select("id", "v")
    assert sorted(map(tuple, frame.collect())) == wanted
    assert frame.where("id = 2").count() == 1
    assert frame.where("v > 'b'").count() == 1
    opened = DeltaTable(handle.location)
    by_query = pa.table(QueryBuilder().register("t", opened).execute("SELECT id, v FROM t ORDER BY id").read_all())
    assert [tuple(r.values()) for r in by_query.to_pylist()] == wanted
    by_arrow = opened.to_pyarrow_table(columns=["id", "v"]).to_pylist()
    assert sorted(tuple(r.values()) for r in by_arrow) == wanted
    assert sorted(pl.read_delta(handle.location).select("id", "v").rows()) == wanted
    old = DeltaTable(handle.location, version=1).to_pyarrow_table(columns=["id"])
    assert sorted(old["id"].to_pylist()) == [1, 2]
    assert spark.read.format("delta").option("versionAsOf", 2).load(handle.location).count() == 4


@pytest.mark.full
def test_pruning_by_other_readers_is_right(lake: DeltaConnector, spark: SparkSession) -> None:
    columns = (
        Column("id", "timestamp", nullable=False),
        Column("n", "timestamp_ntz", nullable=False),
        Column("d", "decimal(30,4)", nullable=False),
        Column("f", "double", nullable=False),
        Column("s", "string", nullable=False),
        Column("t", "time", nullable=False),
        Column("day", "date", nullable=False),
    )
    table = lake.metadata.create_table(TableDefinition("default", "p", columns, tuple(c.name for c in columns)))
    at = dt.datetime(2024, 2, 3, 4, 5, 6, 123456)
    big = Decimal("12345678901234567890123456.0001")
    row = (at.replace(tzinfo=dt.UTC), at, big, float("nan"), "x" * 40, 5, dt.date(2024, 2, 3))
    append(lake, table, row, (*row[:3], 1.0, *row[4:]))
    (file,) = lake.metadata.get_splits(table).files
    assert file.stats["d"].max == big
    assert file.stats["id"].min is not None
    assert file.stats["id"].min <= row[0] <= file.stats["id"].max
    assert file.stats["n"].min <= at <= file.stats["n"].max
    assert file.stats["day"] == ColumnStats(row[6], row[6], 0)
    assert file.stats["s"].max == "x" * 31 + "y"
    frame = spark.read.format("delta").load(table.location)
    conditions = (
        "id = TIMESTAMP '2024-02-03 04:05:06.123456 UTC'",
        "n >= TIMESTAMP_NTZ '2024-02-03 04:05:06.123456'",
        f"d = {big}",
        "d > 12345678901234567890123456.0000",
        "s >= repeat('x', 40)",
        "t = 5",
        "day = DATE '2024-02-03'",
        "f >= 1",
    )
    for condition in conditions:
        assert frame.where(condition).count() == 2, condition
    (added,) = [json.loads(line)["add"] for line in commit_file(table, 1).read_text().splitlines() if '"add"' in line]
    bounds = json.loads(added["stats"])
    assert not any("f" in known for known in bounds.values() if isinstance(known, dict))  # NaN is in no bounds


def test_commits_are_what_delta_calls_them(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    """After these operations Delta adds the commit to the known state, and writes the state's checksum beside it."""
    append(lake, handle, (1, "a"), (2, "b"))
    append(lake, handle, (3, "c"))
    compact(lake, handle, [{"id": i} for i in (1, 2, 3)], [])()
    lake.metadata.truncate(handle)
    operations = [row.operation for row in spark.sql(f"DESCRIBE HISTORY delta.`{handle.location}`").collect()]
    assert operations[::-1] == ["CREATE TABLE", "WRITE", "WRITE", "OPTIMIZE", "TRUNCATE"]
    assert [e.operation for e in lake.metadata.history(handle)][3:] == ["compact", "truncate"]
    for version in range(5):
        files = lake.metadata.get_splits(dataclasses.replace(handle, version=version)).files
        known = json.loads(commit_file(handle, version).with_suffix(".crc").read_text())
        assert (known["numFiles"], known["tableSizeBytes"]) == (len(files), sum(f.size for f in files))


def test_another_engine_writes(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"))
    columns = "id bigint, v string, _trinity_row_kind int"
    spark.createDataFrame([(7, "spark", None)], columns).coalesce(1).write.format("delta").mode("append").save(
        handle.location
    )
    append(lake, handle, (2, "b"))
    found = [(f.tier, f.commit, f.rows) for f in lake.metadata.get_splits(handle).files]
    assert sorted(found, key=lambda f: f[1] or 0) == [(Tier.LOG, 1, 1), (Tier.LOG, 2, 1), (Tier.LOG, 3, 1)]
    assert ids(lake, handle) == [1, 2, 7]
    spark.sql(f"OPTIMIZE delta.`{handle.location}`")
    assert ids(lake, handle) == [1, 2, 7]
    assert lake.metadata.history(handle)[-1].operation == "optimize"
    spark.sql(f"DELETE FROM delta.`{handle.location}` WHERE id = 7")
    assert ids(lake, handle) == [1, 2]
    append(lake, handle, (8, "z"))
    assert ids(lake, handle) == [1, 2, 8]


def test_a_feature_that_trinity_does_not_read(lake: DeltaConnector, handle: TableHandle) -> None:
    protocol = last_action(handle, "protocol")
    features = {kind: [*protocol.get(kind, ()), "notKnownYet"] for kind in ("readerFeatures", "writerFeatures")}
    commit_by_others(handle, {"protocol": {**protocol, "minReaderVersion": 3, **features}})
    for call in (lambda: lake.metadata.get_splits(handle), lambda: lake.metadata.begin_insert(handle)):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert "notKnownYet" in message
    assert lake.metadata.get_splits(dataclasses.replace(handle, version=0)).version == 0


def with_fields(handle: TableHandle, *fields: dict[str, Any], without: str | None = None) -> dict[str, Any]:
    """Return the ``metaData`` action with other fields before the present ones, and without one of them."""
    metadata = last_action(handle, "metaData")
    present = [f for f in json.loads(metadata["schemaString"])["fields"] if f["name"] != without]
    return {"metaData": {**metadata, "schemaString": json.dumps({"type": "struct", "fields": [*fields, *present]})}}


def test_a_column_of_others_is_the_tables(lake: DeltaConnector, handle: TableHandle) -> None:
    old = append(lake, handle, (1, "a")).version
    for name in ("extra", "first"):  # each column is put first, so that the younger one precedes the older
        added = {"name": name, "type": "integer", "nullable": True, "metadata": {"comment": "theirs"}}
        commit_by_others(handle, with_fields(handle, added))
        append(lake, handle, *([(7, 2, "b")] if name == "extra" else [(8, 9, 3, "c")]))
    definition = lake.metadata.get_splits(handle).definition
    assert [(c.name, c.field_id) for c in definition.visible] == [("first", 4), ("extra", 3), ("id", 1), ("v", 2)]
    assert definition.column("extra").comment == "theirs"
    rows = [{k: v for k, v in row.items() if k[0] != "_"} for row in stored(lake, handle)]
    assert rows == [
        {"first": None, "extra": None, "id": 1, "v": "a"},
        {"first": None, "extra": 7, "id": 2, "v": "b"},
        {"first": 8, "extra": 9, "id": 3, "v": "c"},
    ]
    compact(lake, handle, rows, [])()
    assert [r["extra"] for r in stored(lake, handle)] == [None, 7, 9]
    assert DeltaTable(handle.location).to_pyarrow_table()["first"].to_pylist() == [None, None, 8]
    assert (
        lake.metadata.get_splits(dataclasses.replace(handle, version=old)).definition.visible == definition.visible[2:]
    )


def test_deletion_vectors_of_others_are_honoured(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession, tmp_path: Path
) -> None:
    first = append(lake, handle, (1, "a"), (2, "b")).version
    begun, folding = prepare(lake, handle, (3, "c")), compact(lake, handle, [{"id": 1}, {"id": 2}], [])
    added = last_action(handle, "add")
    features = {"readerFeatures": ["deletionVectors"], "minReaderVersion": 3}
    protocol = last_action(handle, "protocol")
    written = {"writerFeatures": [*protocol["writerFeatures"], "deletionVectors"]}
    commit_by_others(handle, {"protocol": {**protocol, **features, **written}})
    gone = {"remove": {"path": added["path"], "dataChange": True, "deletionTimestamp": 1}}
    stats = loosened(added["stats"])
    commit_by_others(handle, gone, {"add": {**added, "stats": stats, "deletionVector": SECOND_ROW}}, operation="DELETE")
    with MOST_REPLAYED.set_to(0):
        for known in (lake, open_catalog(tmp_path / "w", spark)):  # both load the version from a checkpoint
            [file] = known.metadata.get_splits(handle).files
            assert (file.tier, file.commit, file.rows, file.live_rows) == (Tier.LOG, first, 2, 1)
            assert file.deletes is not None
            assert file.deletes.positions().to_pylist() == [1]
        assert code_of(folding)[0] == "TRANSACTION_CONFLICT"  # or the row would come back
        begun()
        assert spark.read.format("delta").load(handle.location).count() == 2
        compact(lake, handle, [{"id": 1}, {"id": 3}], [])()
        assert not any(f.deletes for f in lake.metadata.get_splits(handle).files)
        assert spark.read.format("delta").load(handle.location).count() == 2


@pytest.mark.full
def test_changes_of_rows_that_are_folded_from_others_are_refused(
    lake: DeltaConnector, spark: SparkSession, tmp_path: Path
) -> None:
    columns = (*KEYED.columns, Column("_trinity_carried", "string"))
    properties = {"merge-engine": "partial-update", "sequence.field": "v"}
    table = lake.metadata.create_table(dataclasses.replace(KEYED, columns=columns, properties=properties))
    append(lake, table, (1, "a"), (2, "b"))
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    compact(lake, table, rows, rows)()
    base = last_action(table, "add")
    kept = append(lake, table, (3, "c")).version
    added = last_action(table, "add")
    gone = {k: v for k, v in added.items() if k in ("path", "partitionValues", "size", "tags")}
    commit_by_others(table, {"remove": {**gone, "dataChange": True, "deletionTimestamp": 1}})  # was not compacted
    assert len(lake.metadata.get_splits(table).files) == 1
    gone |= {"path": base["path"], "tags": base["tags"]}
    commit_by_others(table, {"remove": {**gone, "dataChange": True, "deletionTimestamp": 1}})
    with MOST_REPLAYED.set_to(0):
        for known in (lake, open_catalog(tmp_path / "w", spark)):  # both load the version from a checkpoint
            for call in (
                lambda lake=known: lake.metadata.get_splits(table),
                lambda lake=known: lake.metadata.begin_insert(table),
                lambda lake=known: lake.metadata.begin_merge(table, {}),
                lambda lake=known: lake.metadata.begin_rewrite(table, ()),
            ):
                code, message = code_of(call)
                assert code == "NOT_SUPPORTED"
                assert "RESTORE TABLE" in message
        assert len(lake.metadata.get_splits(dataclasses.replace(table, version=kept)).files) == 2
        restored = ({"add": {**a, "dataChange": True}} for a in (base, added))
        commit_by_others(table, *restored, operation="RESTORE")
        files = sorted(lake.metadata.get_splits(table).files, key=arrival_order)
        assert [(f.tier, f.commit) for f in files] == [(Tier.BASE, 1), (Tier.LOG, 3)]
        append(lake, table, (4, "d"))
        assert ids(lake, table) == [1, 2, 3, 4]


def test_a_column_that_others_dropped_and_rows_need(lake: DeltaConnector, handle: TableHandle) -> None:
    old = append(lake, handle, (1, "a")).version
    append(lake, handle, (1, "b"))
    before = {"metaData": last_action(handle, "metaData")}
    for column, role in (("v", "the watermark"), ("_trinity_row_kind", "Trinity's own")):
        commit_by_others(handle, with_fields(handle, without=column))
        for call in (lambda: lake.metadata.get_splits(handle), lambda: lake.metadata.begin_insert(handle)):
            code, message = code_of(call)
            assert code == "NOT_SUPPORTED"
            assert f"'{column}', which is {role}" in message
        assert lake.metadata.get_splits(dataclasses.replace(handle, version=old)).version == old
        commit_by_others(handle, before)
