"""The log of a Delta table in an S3 bucket: checksums of its versions, and the clean-up of old files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import COLUMNS, ROWS, BucketLake, objects, stored
from tests.support.changes import feed
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from tests.support.spark import clear_delta_cache
from trinity import Session, Table
from trinity.clock import clock_ahead
from trinity.storage import Location

pytestmark = [pytest.mark.inner, pytest.mark.parametrize("cloud", ["delta"], indirect=True)]


def by_delta_rs(table: Table, cloud: BucketLake, version: int | None = None) -> deltalake.DeltaTable:
    """Return a table as delta-rs opens it, with its own access to the bucket."""
    known = {f"aws_{name}": str(value) for name, value in cloud.server.options.items()}
    return deltalake.DeltaTable(table.location, version=version, storage_options=known)


def log_file(server: ObjectServer, table: Table, name: str) -> list[dict[str, Any]]:
    """Return the JSON lines of an object of the log."""
    path = f"{table.location}/_delta_log/{name}".removeprefix("s3://")
    return [json.loads(line) for line in server.files.open_input_stream(path).read().splitlines()]


def log_names(server: ObjectServer, table: Table) -> set[str]:
    return {name.rpartition("/")[2] for name in objects(server, f"{table.location}/_delta_log")}


# -- checksums --------------------------------------------------------------------------------------------


def test_each_version_has_a_checksum(s3: Session, object_server: ObjectServer, cloud: BucketLake) -> None:
    table = s3.create_table("t", COLUMNS)
    table.append(ROWS)
    table.append(ROWS, txn=("load", 1))
    table.rename_column("v", "text")
    table.vacuum("0 seconds")
    newest: dict[str, Any] = {}
    sizes: list[int] = []
    for version in range(table.splits().version + 1):
        commit = log_file(object_server, table, f"{version:020d}.json")
        newest |= {kind: body for action in commit for kind, body in action.items()}
        sizes += [action["add"]["size"] for action in commit if "add" in action]
        [checksum] = log_file(object_server, table, f"{version:020d}.crc")
        assert checksum == {
            "txnId": newest["commitInfo"]["txnId"],
            "inCommitTimestampOpt": newest["commitInfo"]["inCommitTimestamp"],
            "tableSizeBytes": sum(sizes),
            "numFiles": len(sizes),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": newest["metaData"],
            "protocol": newest["protocol"],
        }
    assert len(sizes) == 2
    assert "columnMapping" in checksum["protocol"]["readerFeatures"]
    assert by_delta_rs(table, cloud).metadata().id == checksum["metadata"]["id"]


def delta_log(s3: Session, table: Table) -> Any:
    """Return a table's log as Delta's classes read it, with an empty cache."""
    clear_delta_cache(s3.spark)
    jvm: Any = s3.spark._jvm
    place = Location.of(table.location).for_spark
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(s3.spark._jsparkSession, place)


def validate(s3: Session, table: Table, version: int) -> bool:
    """Let Delta validate the checksum of a version."""
    jvm: Any = s3.spark._jvm
    none = jvm.scala.Option.empty()
    snapshot = delta_log(s3, table).getSnapshotAt(version, none, none, False)
    assert snapshot.checksumOpt().isDefined(), version
    nothing = getattr(snapshot, "validateChecksum$default$1")()
    return bool(snapshot.validateChecksum(nothing))


@pytest.mark.full
def test_delta_finds_that_checksums_add_up(
    spark: SparkSession, s3: Session, object_server: ObjectServer, cloud: BucketLake
) -> None:
    s3.sql("CREATE TABLE t (k INT, ts BIGINT, v STRING, PRIMARY KEY (k)) TBLPROPERTIES ('watermark-key' = 'ts')")
    table = s3.table("t")
    table.upsert(pa.table({"k": list(range(20)), "ts": [1] * 20, "v": ["a"] * 20}))
    table.compact(full=True)
    table.upsert(pa.table({"k": list(range(5)), "ts": [2] * 5, "v": ["b"] * 5}), txn=("load", 1))
    table.compact("resolve")
    s3.sql("MERGE INTO t USING (SELECT 7 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE")
    s3.sql("ALTER TABLE t RENAME COLUMN v TO text")
    for _ in range(5):  # past a checkpoint
        s3.table("t").upsert(pa.table({"k": [1], "ts": [3], "text": ["c"]}))
    newest = s3.table("t").splits().version
    assert newest > 10
    assert all(validate(s3, table, version) for version in range(newest + 1))
    [checksum] = log_file(object_server, table, f"{newest:020d}.crc")
    assert checksum["numDeletionVectorsOpt"] > 0
    wrong = json.dumps({**checksum, "numFiles": checksum["numFiles"] + 1}).encode()
    with object_server.files.open_output_stream(f"{table.location[5:]}/_delta_log/{newest:020d}.crc") as stream:
        stream.write(wrong)
    with pytest.raises(Exception, match=r"(?i)integrity"):
        validate(s3, table, newest)


# -- clean-up ---------------------------------------------------------------------------------------------


def fill(table: Table, first: int, last: int) -> None:
    """Commit one row a version, from number ``first`` to number ``last``."""
    for number in range(first, last + 1):
        table.append(pa.table({"k": pa.array([number], pa.int32()), "v": ["x"]}), txn=("fill", number))


@pytest.fixture
def frequent(s3: Session) -> Table:
    """Make a table with a checkpoint every four versions."""
    return s3.create_table("t", COLUMNS, properties={"delta.checkpointInterval": "4"})


@pytest.fixture
def cleaned(frequent: Table) -> Iterator[Table]:
    """Make a table of ten versions. When the eighth was committed, all earlier ones had expired."""
    fill(frequent, 1, 7)
    with clock_ahead(timedelta(days=32)):
        fill(frequent, 8, 10)
        yield frequent


def test_a_log_is_cleaned_up_to_a_checkpoint(cleaned: Table, object_server: ObjectServer, cloud: BucketLake) -> None:
    assert log_names(object_server, cleaned) == {
        "_last_checkpoint",
        *(f"{number:020d}.checkpoint.parquet" for number in (4, 8)),
        *(f"{number:020d}.{kind}" for number in range(4, 11) for kind in ("json", "crc")),
    }
    with cloud.connect() as fresh:
        table = fresh.table("t")
        assert table.splits() == cleaned.splits()
        for version in (4, 5, 8, 9):
            assert table.splits(version) == cleaned.splits(version)
            assert by_delta_rs(table, cloud, version).to_pyarrow_table().num_rows == version
        metadata = table.connector.metadata
        assert [entry.version for entry in metadata.history(table.handle)] == list(range(4, 11))
        assert metadata.recorded_txn(table.handle, "fill") == 10
        assert "oldest readable one is 4" in refusal("INVALID_ARGUMENTS", lambda: table.splits(3))
        fill(table, 11, 12)
        table.vacuum("0 seconds")
        assert len(stored(object_server, table)) == 12
        fresh.drop_table("t")
        assert objects(object_server, cleaned.location) == []
    refusal("TABLE_NOT_FOUND", cleaned.splits)


def test_a_session_that_knew_the_log_before_finds_it_cleaned_up(
    frequent: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    fill(frequent, 1, 7)
    with cloud.connect() as first, cloud.connect() as second:
        assert first.table("t").splits() == second.table("t").splits()
        with clock_ahead(timedelta(days=32)):
            fill(frequent, 8, 10)
        table = first.table("t")
        assert "oldest readable one is 4" in refusal("INVALID_ARGUMENTS", lambda: table.splits(2))
        assert table.splits(5) == frequent.splits(5)
        assert table.splits() == frequent.splits()
        assert second.table("t").vacuum("7 days").files == 0
    assert len(stored(object_server, frequent)) == 10


def test_a_deletion_that_is_cut_off_is_taken_up(
    frequent: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    fill(frequent, 1, 7)
    for number in range(3):  # the lowest first
        object_server.files.delete_file(f"{frequent.location[5:]}/_delta_log/{number:020d}.json")
    with cloud.connect() as fresh:
        table = fresh.table("t")
        assert table.splits() == frequent.splits()
        assert "oldest readable one is 4" in refusal("INVALID_ARGUMENTS", lambda: table.splits(3))
        assert table.connector.metadata.history(table.handle)[0].version == 4
        with clock_ahead(timedelta(days=32)):
            fill(table, 8, 8)
    assert min(log_names(object_server, frequent)) == f"{4:020d}.checkpoint.parquet"


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        pytest.param({}, 29, marks=pytest.mark.full),
        ({"delta.enableExpiredLogCleanup": "false"}, 64),
        pytest.param({"delta.logRetentionDuration": "interval 9 weeks"}, 62, marks=pytest.mark.full),
    ],
)
def test_what_is_not_to_go_stays(s3: Session, object_server: ObjectServer, settings: dict[str, str], days: int) -> None:
    table = s3.create_table("t", COLUMNS, properties={**settings, "delta.checkpointInterval": "2"})
    fill(table, 1, 3)
    with clock_ahead(timedelta(days=days)):
        fill(table, 4, 4)
    names = log_names(object_server, table)
    assert {f"{number:020d}.json" for number in range(5)} < names
    with clock_ahead(timedelta(days=66)):
        fill(table, 5, 6)
    assert (log_names(object_server, table) >= names) == ("delta.enableExpiredLogCleanup" in settings)


def test_a_damaged_commit_after_a_clean_up(cleaned: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    newest = f"{cleaned.location}/_delta_log/{10:020d}.json"
    with object_server.files.open_output_stream(newest[5:]) as stream:
        stream.write(b"{")
    with cloud.connect() as fresh:
        assert newest in refusal("BAD_DATA", fresh.table("t").splits)
        fresh.repair("t")
        assert fresh.table("t").splits().version == 9
        assert fresh.table("t").append(ROWS).version == 10
    [checksum] = log_file(object_server, cleaned, f"{10:020d}.crc")
    assert checksum["numFiles"] == 10
    with object_server.files.open_output_stream(newest[5:]) as stream:
        stream.write(b"{")
    with cloud.connect() as fresh:  # the older commits identify the table
        fresh.drop_table("t")


@pytest.mark.full
def test_deltas_own_reader_finds_a_log_that_was_cleaned_up(spark: SparkSession, cleaned: Table, s3: Session) -> None:
    reader = s3.spark.read.format("delta")
    place = Location.of(cleaned.location).for_spark
    assert reader.load(place).count() == 10
    assert reader.option("versionAsOf", 5).load(place).count() == 5
    assert validate(s3, cleaned, 10)
    with pytest.raises(Exception, match=r"\[4"):
        reader.option("versionAsOf", 3).load(place).count()
    assert len(feed(cleaned, 6)) == 4
    refusal("INVALID_ARGUMENTS", lambda: feed(cleaned, 2))
