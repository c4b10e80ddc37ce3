"""Delta tables of others in an S3 bucket: Trinity writes them, beside delta-rs and Spark's Delta."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import BucketLake, objects, stored
from tests.support.bucket_moments import watched
from tests.support.delta_rs import append_by_delta_rs, by_delta_rs
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table

pytestmark = pytest.mark.parametrize("cloud", ["delta"], indirect=True)
KEYED = {"primary-key": "k", "watermark-key": "ts"}
FIRST = pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"]})
SECOND = pa.table({"k": [2, 4], "ts": [2, 2], "v": ["b2", "d"]})


@pytest.fixture
def place(cloud: BucketLake) -> str:
    found = f"{cloud.place}/others"
    append_by_delta_rs(cloud, found, 0, rows=FIRST)
    return found


@pytest.fixture
def theirs(s3: Session, place: str) -> Table:
    return s3.register("theirs", "delta", place, KEYED)


def logged(server: ObjectServer, place: str, version: int) -> list[dict[str, Any]]:
    name = f"{place}/_delta_log/{version:020d}.json".removeprefix("s3://")
    return [json.loads(line) for line in server.files.open_input_stream(name).read().splitlines()]


def change_first(server: ObjectServer, place: str, kind: str, **fields: Any) -> None:
    """Change fields of an action of the first commit, as an engine that has the feature would write them."""
    actions = logged(server, place, 0)
    for action in actions:
        if kind in action:
            action[kind] |= fields
    with server.files.open_output_stream(f"{place}/_delta_log/{0:020d}.json".removeprefix("s3://")) as stream:
        stream.write("\n".join(map(json.dumps, actions)).encode())


@pytest.mark.usefixtures("spark")  # Spark reads the external table
def test_rows_are_upserted_and_appended(
    theirs: Table, s3: Session, cloud: BucketLake, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert theirs.upsert(SECOND, txn=("load", 1)).version == 1
        assert theirs.upsert(SECOND, txn=("load", 1)).skipped
        s3.register("plain", "delta", theirs.location).append(pa.table({"k": [5], "ts": [1], "v": ["e"]}))
    [messages] = [record.message for record in caplog.records if "no such writer" in record.message]
    assert theirs.location in messages
    append_by_delta_rs(cloud, theirs.location, 0, rows=pa.table({"k": [1], "ts": [3], "v": ["a3"]}))
    assert theirs.splits().version == 3
    found = by_delta_rs(theirs, cloud)
    assert found.version() == 3
    assert found.transaction_version("load") == 1
    assert found.to_pyarrow_table().num_rows == 7
    merged = theirs.to_arrow().sort_by("k").to_pydict()
    assert merged == {"k": [1, 2, 3, 4, 5], "ts": [3, 2, 1, 2, 1], "v": ["a3", "b2", "c", "d", "e"]}
    assert [entry.version for entry in theirs.connector.metadata.history(theirs.handle)] == [0, 1, 2, 3]


def test_writers_at_once_lose_nothing(theirs: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    """Sessions of Trinity and delta-rs write at once; both commit by conditional puts."""

    def by_trinity(worker: int) -> None:
        with cloud.connect() as session:
            for turn in range(4):
                rows = pa.table({"k": [worker * 10 + turn], "ts": [1], "v": ["x"]})
                session.table("theirs").upsert(rows, txn=(f"w{worker}", turn))

    def by_others(worker: int) -> None:
        for turn in range(4):
            rows = pa.table({"k": [worker * 10 + turn], "ts": [1], "v": ["y"]})
            append_by_delta_rs(cloud, theirs.location, 0, rows=rows)

    with ThreadPoolExecutor(6) as workers:
        jobs = [workers.submit(by_trinity if n % 2 else by_others, n) for n in range(1, 7)]
    for job in jobs:
        job.result()
    wanted = sorted([1, 2, 3, *(worker * 10 + turn for worker in range(1, 7) for turn in range(4))])
    assert sorted(row["k"] for row in stored(object_server, theirs)) == wanted
    assert by_delta_rs(theirs, cloud).to_pyarrow_table().num_rows == len(wanted)
    assert theirs.splits().version == 24


def test_checkpoints_say_what_the_commits_said(theirs: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    """Trinity writes a checkpoint every ten versions, Delta's default; it deletes no versions and writes no
    checksums.
    """
    for number in range(11):
        theirs.upsert(pa.table({"k": [number], "ts": [2], "v": ["x"]}))
    names = {name.rpartition("/")[2] for name in objects(object_server, f"{theirs.location}/_delta_log")}
    assert f"{10:020d}.checkpoint.parquet" in names
    assert not any(name.endswith(".crc") for name in names)
    before = by_delta_rs(theirs, cloud).to_pyarrow_table().sort_by([("k", "ascending"), ("ts", "ascending")])
    for number in range(9):
        object_server.files.delete_file(f"{theirs.location}/_delta_log/{number:020d}.json".removeprefix("s3://"))
    after = by_delta_rs(theirs, cloud).to_pyarrow_table().sort_by([("k", "ascending"), ("ts", "ascending")])
    assert after == before
    assert after.num_rows == 14
    with cloud.connect() as fresh:
        assert len(fresh.table("theirs").splits().files) == 12


@pytest.mark.usefixtures("spark")  # Spark evaluates the constraint
def test_partitions_and_constraints_are_kept_to(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    place = f"{cloud.place}/parts"
    append_by_delta_rs(cloud, place, 0, rows=FIRST, partition_by=["v"])
    change_first(object_server, place, "metaData", configuration={"delta.constraints.early": "ts < 9"})
    theirs = s3.register("parts", "delta", place, KEYED)
    theirs.upsert(pa.table({"k": [7, 8], "ts": [2, 2], "v": ["x y", "z%"]}))
    values = {a["add"]["partitionValues"]["v"] for a in logged(object_server, place, 1) if "add" in a}
    assert values == {"x y", "z%"}
    found = by_delta_rs(theirs, cloud).to_pyarrow_table().sort_by("k").to_pydict()
    assert (found["k"], found["v"]) == ([1, 2, 3, 7, 8], ["a", "b", "c", "x y", "z%"])
    there = objects(object_server, place)
    refusal("CONSTRAINT_VIOLATION", lambda: theirs.upsert(pa.table({"k": [9], "ts": [9], "v": ["x"]})))
    assert objects(object_server, place) == there


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"minWriterVersion": 7, "writerFeatures": ["catalogManaged", "domainMetadata"]}, "catalogManaged"),
        ({"minWriterVersion": 7, "writerFeatures": ["someday"]}, "someday"),
        ({"minWriterVersion": 8}, "'minWriterVersion' 8"),
    ],
)  # fmt: skip
def test_what_a_commit_could_not_honour_is_refused(
    s3: Session, place: str, object_server: ObjectServer, fields: dict[str, Any], words: str
) -> None:
    change_first(object_server, place, "protocol", **fields)
    theirs = s3.register("theirs", "delta", place, KEYED)
    there = objects(object_server, place)
    assert words in refusal("NOT_SUPPORTED", lambda: theirs.upsert(SECOND))
    refusal("NOT_SUPPORTED", lambda: theirs.vacuum("0 seconds"))
    assert objects(object_server, place) == there
    assert len(stored(object_server, theirs)) == 3


def test_a_commit_whose_answer_is_lost_is_made_once(theirs: Table, object_server: ObjectServer) -> None:
    with object_server.proxy.losing(lambda request: request.method == "PUT" and request.path.endswith(".json")) as lost:
        assert theirs.upsert(SECOND).version == 1
    assert lost
    assert theirs.upsert(SECOND).version == 2
    assert len(stored(object_server, theirs)) == 7


def test_an_append_that_is_killed_at_any_request(theirs: Table, cloud: BucketLake, object_server: ObjectServer) -> None:
    with cloud.connect(region="eu-west-1") as session, watched(cloud) as moments:
        session.table("theirs").upsert(SECOND, txn=("crash", 1))
    seen = []
    for moment in moments.found:
        moments.put_back(moment)
        with cloud.connect() as session:
            table = session.table("theirs")
            seen.append(len(stored(object_server, table)))
            assert table.upsert(SECOND, txn=("crash", 1)).skipped == (seen[-1] == 5), moment.where
            assert len(stored(object_server, table)) == by_delta_rs(table, cloud).to_pyarrow_table().num_rows == 5
    assert sorted(seen) == seen
    assert {seen[0], seen[-1]} == {3, 5}


def test_a_commit_that_was_put_over_is_told(
    theirs: Table, cloud: BucketLake, object_server: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A writer that puts without a condition, as Spark's Delta does, has overwritten a commit. A warning says so."""
    theirs.upsert(SECOND)
    other = "\n".join(map(json.dumps, logged(object_server, theirs.location, 0)[:1]))
    with object_server.files.open_output_stream(f"{theirs.location}/_delta_log/{1:020d}.json"[5:]) as stream:
        stream.write(other.encode())
    with caplog.at_level(logging.WARNING):
        assert len(stored(object_server, theirs)) == 3
    [messages] = [record.message for record in caplog.records if "another writer's" in record.message]
    assert "Version 1 of table" in messages


@pytest.fixture
def rich(spark: SparkSession, s3: Session, cloud: BucketLake) -> Table:
    """Make a Delta table by Spark with deletion vectors, column mapping, partitions and in-commit timestamps."""
    place = f"{cloud.place}/rich".replace("s3://", "s3a://")
    settings = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableRowTracking": "true",
    }
    s3.sql("CREATE TABLE own (k INT)")
    _ = s3.spark.range(1).count()  # starts Spark with the bucket's settings
    rows = spark.range(100).selectExpr("id AS k", "1L AS ts", "'a' AS v", "id % 2 AS `p q`").coalesce(1)
    rows.write.format("delta").options(**settings).partitionBy("p q").save(place)
    spark.sql(f"ALTER TABLE delta.`{place}` RENAME COLUMN v TO text")
    spark.sql(f"DELETE FROM delta.`{place}` WHERE k < 10")
    return s3.register("rich", "delta", place.replace("s3a://", "s3://"), KEYED)


@pytest.mark.full
def test_deltas_own_reader_and_writer_go_on(spark: SparkSession, s3: Session, rich: Table, cloud: BucketLake) -> None:
    place = rich.location.replace("s3://", "s3a://")
    s3.sql("INSERT INTO rich VALUES (10, 2, 'b', 0), (200, 1, 'b', 1)")
    rich.upsert(pa.table({"k": [11, 201], "ts": [2, 2], "text": ["c", "c"], "p q": [1, 1]}))
    by_delta = spark.read.format("delta").load(place)
    assert by_delta.count() == 94
    assert by_delta.where("text <> 'a'").count() == 4
    assert rich.to_df().count() == 92
    spark.sql(f"DELETE FROM delta.`{place}` WHERE k = 201")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES (12, 3, 'd', 0)")
    rich.upsert(pa.table({"k": [202], "ts": [1], "text": ["e"], "p q": [0]}))
    changed = s3.sql("SELECT k, text FROM rich WHERE text <> 'a' ORDER BY k").collect()
    assert [tuple(row) for row in changed] == [(10, "b"), (11, "c"), (12, "d"), (200, "b"), (202, "e")]
    assert s3.sql("SELECT count(*) FROM rich WHERE `p q` = 1").first()[0] == 46
    numbered = spark.read.format("delta").load(place).select("_metadata.row_id").collect()
    assert len({row.row_id for row in numbered}) == len(numbered) == 95


@pytest.mark.full
def test_compaction_leaves_one_version_of_each_key(spark: SparkSession, s3: Session, rich: Table) -> None:
    rich.upsert(
        pa.table({"k": list(range(10, 20)), "ts": [2] * 10, "text": ["b"] * 10, "p q": [n % 2 for n in range(10)]})
    )
    before = sorted(tuple(row) for row in rich.to_df().collect())
    rich.compact()
    assert sorted(tuple(row) for row in rich.to_df().collect()) == before
    by_delta = spark.read.format("delta").load(rich.location.replace("s3://", "s3a://"))
    assert sorted(tuple(row) for row in by_delta.collect()) == before
    assert len(before) == 90
    refusal("NOT_SUPPORTED", lambda: s3.sql("TRUNCATE TABLE rich"))
