"""Delta tables in an S3 bucket: Trinity's own commits, checkpoints and protocol, and what other engines read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import SparkSession

import trinity
from tests.support.bucket_lake import COLUMNS, ROWS, BucketLake, objects, stored
from tests.support.delta_rs import append_by_delta_rs, by_delta_rs
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Column, Session, Table
from trinity_delta.protocol import CONDITIONAL_PUT

pytestmark = pytest.mark.parametrize("cloud", ["delta"], indirect=True)
ORDERS = [Column("k", "int"), Column("v", "string"), Column("at", "timestamp_ntz")]


def logged(server: ObjectServer, table: Table, version: int) -> list[dict[str, Any]]:
    """Return the actions of a commit file."""
    name = f"{table.location}/_delta_log/{version:020d}.json".removeprefix("s3://")
    return [json.loads(line) for line in server.files.open_input_stream(name).read().splitlines()]


def test_delta_rs_reads_what_it_may_not_write(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    plain.append(ROWS, txn=("load", 7))
    found = by_delta_rs(plain, cloud)
    assert found.to_pyarrow_table().sort_by("k").to_pydict() == ROWS.to_pydict()
    assert found.transaction_version("load") == 7
    with pytest.raises((DeltaError, CommitFailedError), match="trinityConditionalPut"):
        deltalake.write_deltalake(found, ROWS, mode="append")
    assert plain.splits().version == 1


def test_an_upsert_needs_no_spark(s3: Session, cloud: BucketLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "spark", property(lambda _: pytest.fail("Spark is asked for")))
    table = s3.create_table("t", COLUMNS, primary_key=["k"])
    table.upsert(ROWS)
    assert table.upsert(ROWS).version == 2
    table.set_properties({"comment": "of Arrow alone"})
    table.vacuum("0 seconds")
    s3.drop_table("t")


def test_checkpoints_say_what_the_commits_said(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    for number in range(25):
        plain.append(pa.table({"k": [number], "v": ["x"]}), txn=(f"app-{number % 3}", number))
    plain.set_properties({"comment": "at 26"})
    names = [name.rpartition("/")[2] for name in objects(object_server, plain.location)]
    assert [name for name in names if "checkpoint" in name] == [
        f"{10:020d}.checkpoint.parquet",
        f"{20:020d}.checkpoint.parquet",
        "_last_checkpoint",
    ]
    for version in (9, 10, 15, 20, 26):
        with cloud.connect() as fresh:  # has read nothing, so begins with a checkpoint
            seen = fresh.table("plain")
            assert seen.splits(version) == plain.splits(version)
    metadata = plain.connector.metadata
    assert [metadata.recorded_txn(plain.handle, f"app-{n}") for n in range(3)] == [24, 22, 23]
    # delta-rs begins with the newest checkpoint too
    store = object_server.files
    store.delete_file(f"{plain.location}/_delta_log/{3:020d}.json".removeprefix("s3://"))
    assert sorted(by_delta_rs(plain, cloud).to_pyarrow_table().column("k").to_pylist()) == list(range(25))
    assert by_delta_rs(plain, cloud, version=20).to_pyarrow_table().num_rows == 20


def test_changes_of_columns_number_them_as_delta_does(s3: Session, object_server: ObjectServer) -> None:
    table = s3.create_table("t", ORDERS, primary_key=["k"])
    table.upsert(pa.table({"k": [1], "v": ["a"], "at": pa.array([0], pa.timestamp("us"))}))
    table.rename_column("v", "text")
    table.add_column(Column("more", "struct<x: int, y: array<struct<z: int>>>"))
    table.add_column(Column("last", "int"))
    newest = table.splits().version
    [metadata] = [a["metaData"] for a in logged(object_server, table, newest) if "metaData" in a]
    fields = {f["name"]: f for f in json.loads(metadata["schemaString"])["fields"]}
    number = "delta.columnMapping.id"
    numbers = {name: field["metadata"][number] for name, field in fields.items()}
    inner = fields["more"]["type"]["fields"]
    assert fields["text"]["metadata"]["delta.columnMapping.physicalName"] == "v"
    assert [numbers[name] for name in ("k", "text", "at")] == [1, 2, 3]
    given = [numbers["more"], inner[0]["metadata"][number], inner[1]["metadata"][number]]
    given.append(inner[1]["type"]["elementType"]["fields"][0]["metadata"][number])
    assert given == list(range(given[0], given[0] + 4))
    assert numbers["last"] == given[0] + 4 == int(metadata["configuration"]["delta.columnMapping.maxColumnId"])
    protocols = [a["protocol"] for n in range(newest + 1) for a in logged(object_server, table, n) if "protocol" in a]
    assert [p["readerFeatures"] for p in protocols] == [["timestampNtz"], ["columnMapping", "timestampNtz"]]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("delta.autoOptimize.autoCompact", "true", "'delta.autoOptimize.autoCompact' is none that Trinity keeps to"),
        ("delta.checkpointinterval", "0", "'delta.checkpointInterval' is '0'; give a positive number"),
        ("delta.deletedFileRetentionDuration", "7", "such as 'interval 7 days'"),
        ("delta.appendOnly", "true", "cannot be 'true'"),
        ("delta.feature.clustering", "supported", "'delta.feature.clustering' is none"),
        ("delta.feature.deletionVectors", "on", "'delta.feature.deletionVectors' is none"),
    ],
)
def test_settings_that_are_not_kept_to_are_refused(s3: Session, key: str, value: str, words: str) -> None:
    message = refusal("INVALID_TABLE_PROPERTY", lambda: s3.create_table("t", COLUMNS, properties={key: value}))
    assert words in message
    assert s3.list_tables("lake", "default") == []


def test_rows_are_numbered_from_the_beginning_or_not_at_all(
    plain: Table, s3: Session, object_server: ObjectServer
) -> None:
    tracked = s3.create_table("tracked", COLUMNS, properties={"delta.enableRowTracking": "true"})
    tracked.append(ROWS)
    tracked.append(ROWS)
    found = [a["add"] for n in (1, 2) for a in logged(object_server, tracked, n) if "add" in a]
    assert [(file["baseRowId"], file["defaultRowCommitVersion"]) for file in found] == [(0, 1), (2, 2)]
    tracked.set_properties({"comment": "as before"})
    plain.append(ROWS)
    message = refusal("INVALID_TABLE_PROPERTY", lambda: plain.set_properties({"delta.enableRowTracking": "true"}))
    assert "when the table is made" in message
    assert plain.splits().version == 1


def test_a_damaged_commit_is_set_aside(
    plain: Table, s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    plain.append(ROWS)
    newest = f"{plain.location}/_delta_log/{2:020d}.json"
    with object_server.files.open_output_stream(newest.removeprefix("s3://")) as stream:
        stream.write(b"{")
    with cloud.connect() as fresh:
        assert newest in refusal("BAD_DATA", fresh.table("plain").splits)
        fresh.repair("plain")
        assert len(stored(object_server, fresh.table("plain"))) == 2
        assert fresh.table("plain").append(ROWS).version == 2


def test_a_damaged_checkpoint_is_passed_over(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    for number in range(21):
        plain.append(pa.table({"k": [number], "v": ["x"]}))
    for number in (10, 20):
        place = f"{plain.location}/_delta_log/{number:020d}.checkpoint.parquet".removeprefix("s3://")
        with object_server.files.open_output_stream(place) as stream:
            stream.write(b"PAR1")
        with cloud.connect() as fresh:
            assert fresh.table("plain").splits() == plain.splits()
            assert fresh.repair("plain").skipped  # no warning


def test_who_is_overtaken_by_a_drop_is_told(plain: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    commit = f"{plain.location}/_delta_log/{{:020d}}.json".removeprefix("s3://").format
    with object_server.files.open_input_stream(commit(1)) as stream:
        late = stream.read()
    with cloud.connect() as other:
        other.drop_table("plain")
    with object_server.files.open_output_stream(commit(2)) as stream:
        stream.write(late)  # a put that was under way
    refusal("TABLE_NOT_FOUND", lambda: plain.append(ROWS))
    refusal("TABLE_NOT_FOUND", plain.splits)


def test_a_commit_that_another_took_the_place_of_is_forgotten(
    plain: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    plain.append(ROWS, txn=("load", 1))
    newest = f"{plain.location}/_delta_log/{2:020d}.json".removeprefix("s3://")
    with object_server.files.open_output_stream(newest) as stream:
        stream.write(b"{")
    with cloud.connect() as other:
        other.repair("plain")
        assert len(plain.splits().files) == 1
        other.table("plain").append(pa.table({"k": [7], "v": ["y"]}))
    assert [row["k"] for row in stored(object_server, plain)] == [1, 2, 7]
    assert not plain.append(ROWS, txn=("load", 1)).skipped


def test_column_mapping_stays_once_it_is_needed(s3: Session) -> None:
    table = s3.create_table("t", COLUMNS, primary_key=["k"])
    table.rename_column("v", "text")
    message = refusal("INVALID_TABLE_PROPERTY", lambda: table.set_properties({"delta.columnMapping.mode": "none"}))
    assert "data files call otherwise" in message
    table.upsert(pa.table({"k": [1], "text": ["a"]}))


def test_a_table_that_was_copied_there_is_refused(
    plain: Table, s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    """Delta's own classes made the table on a disk, so it lacks the feature that keeps other writers away."""
    first = f"{plain.location}/_delta_log/{0:020d}.json".removeprefix("s3://")
    with object_server.files.open_input_stream(first) as stream:
        text = stream.read().replace(CONDITIONAL_PUT.encode(), b"invariants")
    with object_server.files.open_output_stream(f"{cloud.place[5:]}/copied/_delta_log/{0:020d}.json") as stream:
        stream.write(text)
    message = refusal("NOT_SUPPORTED", lambda: s3.register("t", "delta", f"{cloud.place}/copied"))
    assert "not made there by Trinity" in message


def test_tables_of_others_are_read(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    place = f"{cloud.place}/others"
    for number in range(12):
        append_by_delta_rs(cloud, place, number, partition_by=["v"])
    table = s3.register("t", "delta", place, {"primary-key": "k"})
    assert table.splits().version == 11
    assert len(stored(object_server, table)) == 24
    by_delta_rs(table, cloud).create_checkpoint()
    append_by_delta_rs(cloud, place, 20, partition_by=["v"])
    with cloud.connect() as other:
        found = other.table("t")
        assert commits_of(found) == commits_of(table)
        assert commits_of(found, 3) == commits_of(table, 3)
    for name in objects(object_server, f"{place}/_delta_log"):  # as a clean-up does
        if name.rpartition("/")[2] < f"{10:020d}":
            object_server.files.delete_file(name)
    with cloud.connect() as other:
        found = other.table("t")
        assert commits_of(found).keys() == commits_of(table).keys()
        refusal("INVALID_ARGUMENTS", lambda: found.splits(3))


def commits_of(table: Table, version: int | None = None) -> dict[str, int | None]:
    """Return file -> the number of its commit."""
    return {file.path: file.commit for file in table.splits(version).files}


@pytest.mark.full
def test_rows_of_others_are_read_as_deltas_own_reader_does(spark: SparkSession, s3: Session, cloud: BucketLake) -> None:
    place = f"{cloud.place}/others".replace("s3://", "s3a://")
    vectors = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    s3.sql("CREATE TABLE own (k INT)")
    _ = s3.spark.range(1).count()  # starts Spark with the bucket's settings
    made = spark.range(100).selectExpr("id AS k", "'a' AS v", "id % 2 AS `p q`").coalesce(1)
    made.write.format("delta").options(**vectors).partitionBy("p q").save(place)
    spark.sql(f"DELETE FROM delta.`{place}` WHERE k < 10")
    spark.range(50, 52).selectExpr("id AS k", "'b' AS v", "id % 2 AS `p q`").write.format("delta").mode("append").save(
        place
    )
    table = s3.register("t", "delta", place, {"primary-key": "k"})
    found = s3.sql("SELECT v, count(*), min(k) FROM t GROUP BY v ORDER BY v").collect()
    assert [tuple(row) for row in found] == [("a", 88, 10), ("b", 2, 50)]
    assert table.to_df(version=0).count() == 100
    assert s3.sql("SELECT count(*) FROM t WHERE `p q` = 1").collect()[0][0] == 45


def described(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what commit files say of a table, without the ids, times and settings in which any two tables differ."""
    found = []
    for action in actions:
        if (metadata := action.get("metaData")) is not None:
            own = ("trinity.definition", "trinity.table", "delta.autoOptimize.autoCompact")
            settings = {key: text for key, text in metadata["configuration"].items() if key not in own}
            kept = {key: value for key, value in metadata.items() if key not in ("id", "createdTime")}
            found.append({**kept, "schemaString": json.loads(metadata["schemaString"]), "configuration": settings})
        if (protocol := action.get("protocol")) is not None:
            features = set(protocol["writerFeatures"]) - {CONDITIONAL_PUT}
            found.append(
                {**protocol, "writerFeatures": features, "readerFeatures": {*protocol.get("readerFeatures", ())}}
            )
        if (info := action.get("commitInfo")) is not None:
            found.append({"operation": info["operation"]})
    return sorted(found, key=lambda lines: sorted(lines))


CHANGES = (
    "ALTER TABLE t ADD CONSTRAINT positive CHECK (k > 0)",
    "ALTER TABLE t ADD COLUMN more STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>",
    "ALTER TABLE t ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE t RENAME COLUMN v TO text",
    "ALTER TABLE t ADD COLUMN others MAP<STRING, STRUCT<q: TIMESTAMP_NTZ>>",
    "ALTER TABLE t DROP COLUMN n",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.dataskippingnumindexedcols' = '3')",
)


@pytest.mark.full
def test_a_log_says_what_deltas_own_says(
    spark: SparkSession, s3: Session, object_server: ObjectServer, tmp_path: Path
) -> None:
    """Delta's classes on a disk and Trinity in a bucket make the same changes."""
    by_classes = ", 'delta.autoOptimize.autoCompact' = 'false'"
    with trinity.connect(tmp_path, catalog="delta") as disk:
        for session in (disk, s3):
            session.sql(
                "CREATE TABLE t (k INT NOT NULL, v STRING COMMENT 'words', n INT, d DATE) PARTITIONED BY (d) "
                f"TBLPROPERTIES ('delta.checkpointInterval' = '5'{by_classes if session is disk else ''})"
            )
            for change in CHANGES:
                session.sql(change)
        by_delta, own = disk.table("t"), s3.table("t")
        assert by_delta.splits().version == own.splits().version > len(CHANGES)
        for version in range(own.splits().version + 1):
            text = Path(f"{by_delta.location}/_delta_log/{version:020d}.json").read_text()
            actions = [json.loads(line) for line in text.splitlines()]
            assert described(logged(object_server, own, version)) == described(actions), version


@pytest.mark.full
def test_deltas_own_reader_sees_merged_rows_and_its_writer_is_refused(
    spark: SparkSession, s3: Session, cloud: BucketLake
) -> None:
    s3.sql("CREATE TABLE t (k INT, ts BIGINT, v STRING, PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'ts')")
    table = s3.table("t")
    table.upsert(pa.table({"k": list(range(20)), "ts": [1] * 20, "v": ["a"] * 20}))
    table.compact(full=True)
    s3.sql("ALTER TABLE t RENAME COLUMN v TO text")
    table = s3.table("t")
    for number in range(12):  # past a checkpoint
        table.upsert(pa.table({"k": [number], "ts": [2], "text": ["b"]}))
    table.compact("resolve")
    place = table.location.replace("s3://", "s3a://")
    found = s3.spark.read.format("delta").load(place)
    assert sorted((row["k"], row["text"]) for row in found.collect()) == [
        (k, "b" if k < 12 else "a") for k in range(20)
    ]
    with pytest.raises(Exception, match="trinityConditionalPut"):
        found.write.format("delta").mode("append").save(place)
    assert by_spark(s3) == by_spark(s3, version=table.splits().version)


def by_spark(s3: Session, version: int | None = None) -> list[Any]:
    return sorted(map(tuple, s3.table("t").to_df(version=version).collect()))
