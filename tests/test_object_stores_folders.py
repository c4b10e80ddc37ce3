"""Folders of Parquet files that others write into a bucket: Trinity reads them there, and writes nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import BucketLake, bucket_lake, objects, refusal
from tests.support.object_store import ObjectServer
from trinity import Session
from trinity.table import Table

KEYED = {"primary-key": "k", "watermark-key": "ts"}
FIRST = pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"], "p": ["x y", "x y", "z%"]})
SECOND = pa.table({"k": [2, 3], "ts": [2, 0], "v": ["b2", "late"], "p": ["x y", "z%"]})


@pytest.fixture
def lake(object_server: ObjectServer, bucket: str) -> BucketLake:
    return bucket_lake("parquet", object_server, bucket, {})


def write(server: ObjectServer, folder: str, rows: pa.Table, name: str) -> None:
    """As another program does it."""
    target = folder.removeprefix("s3://")
    pq.write_to_dataset(rows, target, ["p"], filesystem=server.files, basename_template=f"{name}-{{i}}.parquet")


@pytest.fixture
def folder(lake: BucketLake, object_server: ObjectServer) -> str:
    found = f"{lake.place}/theirs"
    write(object_server, found, FIRST, "one")
    return found


@pytest.fixture
def theirs(s3: Session, folder: str) -> Table:
    return s3.register("theirs", "parquet", folder, KEYED)


def test_files_are_found_with_partitions_and_statistics(
    theirs: Table, object_server: ObjectServer, lake: BucketLake, folder: str
) -> None:
    before = theirs.splits()
    assert sorted((file.partition["p"], file.rows) for file in before.files) == [("x y", 2), ("z%", 1)]
    assert [(c.name, c.type) for c in theirs.definition.columns][-1] == ("p", "string")
    write(object_server, folder, SECOND, "two")
    with lake.connect() as other:
        after = other.table("theirs").splits()
    assert sum(file.rows for file in after.files) == sum(file.rows for file in theirs.splits().files) == 5
    assert theirs.splits().version > before.version or len(theirs.splits().files) == 4


def test_nothing_is_written_there(theirs: Table, s3: Session, object_server: ObjectServer, folder: str) -> None:
    there = objects(object_server, folder)
    for call in (lambda: theirs.upsert(FIRST), lambda: theirs.vacuum("0 seconds")):
        refusal("NOT_SUPPORTED", call)
    assert "only reads" in refusal("NOT_SUPPORTED", lambda: theirs.append(FIRST))
    s3.drop_table("theirs")
    assert objects(object_server, folder) == there


def test_what_is_no_such_folder_is_said(s3: Session, lake: BucketLake, object_server: ObjectServer) -> None:
    assert "is no folder" in refusal("INVALID_ARGUMENTS", lambda: s3.register("t", "parquet", f"{lake.place}/none"))
    with object_server.files.open_output_stream(f"{lake.place[5:]}/log/_delta_log/{0:020d}.json") as stream:
        stream.write(b"{}")
    assert "delta" in refusal("INVALID_ARGUMENTS", lambda: s3.register("t", "parquet", f"{lake.place}/log"))
    with object_server.files.open_output_stream(f"{lake.place[5:]}/damaged/x.parquet") as stream:
        stream.write(b"PAR1")
    assert "x.parquet" in refusal("BAD_DATA", lambda: s3.register("t", "parquet", f"{lake.place}/damaged", KEYED))


@pytest.mark.full
def test_rows_are_merged(spark: SparkSession, theirs: Table, s3: Session, object_server: ObjectServer) -> None:
    def rows() -> list[tuple[object, ...]]:
        return [tuple(row) for row in s3.sql("SELECT k, v, p FROM theirs ORDER BY k").collect()]

    assert rows() == [(1, "a", "x y"), (2, "b", "x y"), (3, "c", "z%")]
    write(object_server, theirs.location, SECOND, "two")
    assert rows() == [(1, "a", "x y"), (2, "b2", "x y"), (3, "c", "z%")]
    assert theirs.log().count() == 5
    assert s3.sql("SELECT k FROM theirs WHERE p = 'z%'").first()["k"] == 3  # type: ignore[index]
    refusal("NOT_SUPPORTED", lambda: s3.sql("UPDATE theirs SET v = 'x' WHERE k = 1"))
    copied = s3.sql("CREATE TABLE copied AS SELECT * FROM theirs")
    assert copied is not None
    assert s3.table("copied").to_df().count() == 3
