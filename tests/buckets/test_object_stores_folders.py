"""Folders of Parquet files that others write to a bucket: Trinity reads them, and appends to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.bucket_lake import BucketLake, bucket_lake, objects
from tests.support.google_server import GoogleServer
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from tests.support.turns import without_turns
from trinity import Session, Table
from trinity.spi import SinkId
from trinity.storage import Location, ObjectStore
from trinity.storage.s3 import LONGEST_COPY

pytestmark = pytest.mark.inner

KEYED = {"primary-key": "k", "watermark-key": "ts"}
FIRST = pa.table({"k": [1, 2, 3], "ts": [1, 1, 1], "v": ["a", "b", "c"], "p": ["x y", "x y", "z%"]})
SECOND = pa.table({"k": [2, 3], "ts": [2, 0], "v": ["b2", "late"], "p": ["x y", "z%"]})


@pytest.fixture
def cloud(object_server: ObjectServer, bucket: str) -> BucketLake:
    return bucket_lake("parquet", object_server, bucket, {})


def write(server: ObjectServer, folder: str, rows: pa.Table, name: str) -> None:
    """Write files without Trinity."""
    target = folder.removeprefix("s3://")
    pq.write_to_dataset(rows, target, ["p"], filesystem=server.files, basename_template=f"{name}-{{i}}.parquet")


@pytest.fixture
def address(cloud: BucketLake, object_server: ObjectServer) -> str:
    found = f"{cloud.place}/theirs"
    write(object_server, found, FIRST, "one")
    return found


@pytest.fixture
def theirs(s3: Session, address: str) -> Table:
    return s3.register("theirs", "parquet", address, KEYED)


def merged(table: Table) -> list[tuple[int, str]]:
    """Return key and value of each merged row, folded without Spark from the files in their order."""
    found: dict[int, dict[str, Any]] = {}
    for path in (Location.of(file.path) for file in table.splits().files):
        for row in pq.read_table(
            path.for_arrow, filesystem=ObjectStore(path).filesystem, partitioning=None
        ).to_pylist():
            if row["k"] not in found or row["ts"] >= found[row["k"]]["ts"]:
                found[row["k"]] = row
    return sorted((key, row["v"]) for key, row in found.items())


def seen_by_another(server: ObjectServer, folder: str) -> list[tuple[Any, ...]]:
    """Return the rows that another engine reads from the folder."""
    kind = ds.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    found = ds.dataset(folder.removeprefix("s3://"), filesystem=server.files, format="parquet", partitioning=kind)
    return sorted((row["k"], row["ts"], row["v"], row["p"]) for row in found.to_table().to_pylist())


def rows_of(*tables: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["k"], row["ts"], row["v"], row["p"]) for table in tables for row in table.to_pylist())


def data_files(server: ObjectServer, folder: str) -> list[str]:
    """Return the names of all Parquet files below a folder, staged ones too."""
    return [name for name in objects(server, folder) if name.endswith(".parquet")]


# -- reads ------------------------------------------------------------------------------------------------


def test_files_are_found_with_partitions_and_statistics(
    theirs: Table, object_server: ObjectServer, cloud: BucketLake, address: str
) -> None:
    before = theirs.splits()
    assert sorted((file.partition["p"], file.rows) for file in before.files) == [("x y", 2), ("z%", 1)]
    assert [(c.name, c.type) for c in theirs.definition.columns][-1] == ("p", "string")
    write(object_server, address, SECOND, "two")
    with cloud.connect() as other:
        after = other.table("theirs").splits()
    assert sum(file.rows for file in after.files) == sum(file.rows for file in theirs.splits().files) == 5
    assert theirs.splits().version > before.version or len(theirs.splits().files) == 4


def test_a_file_that_takes_the_place_of_one_of_the_same_second_and_size_is_read(
    theirs: Table, object_server: ObjectServer, address: str
) -> None:
    for value in "abcd":
        write(object_server, address, FIRST.slice(0, 1).set_column(2, "v", pa.array([value])), "one")
        assert merged(theirs)[0] == (1, value)
        [changed] = [file for file in theirs.splits().files if file.partition["p"] == "x y"]
        assert changed.stats["v"].max == value, "by which reads with a predicate pass over files"


def test_what_is_no_such_folder_is_said(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    assert "is no folder" in refusal("INVALID_ARGUMENTS", lambda: s3.register("t", "parquet", f"{cloud.place}/none"))
    with object_server.files.open_output_stream(f"{cloud.place[5:]}/log/_delta_log/{0:020d}.json") as stream:
        stream.write(b"{}")
    assert "delta" in refusal("INVALID_ARGUMENTS", lambda: s3.register("t", "parquet", f"{cloud.place}/log"))
    with object_server.files.open_output_stream(f"{cloud.place[5:]}/damaged/x.parquet") as stream:
        stream.write(b"PAR1")
    assert "x.parquet" in refusal("BAD_DATA", lambda: s3.register("t", "parquet", f"{cloud.place}/damaged", KEYED))


# -- writes -----------------------------------------------------------------------------------------------


def test_rows_come_into_the_folder(theirs: Table, cloud: BucketLake, object_server: ObjectServer, address: str) -> None:
    version = theirs.splits().version
    first = theirs.upsert(SECOND)
    assert (first.rows, first.files) == (2, 2)
    assert first.version > version
    fourth = pa.table({"k": [4], "ts": [0], "v": ["d"], "p": ["new/one"]})
    assert theirs.upsert(fourth).version > first.version
    assert merged(theirs) == [(1, "a"), (2, "b2"), (3, "c"), (4, "d")]
    with cloud.connect() as other:
        assert merged(other.table("theirs")) == merged(theirs)
    assert seen_by_another(object_server, address) == rows_of(FIRST, SECOND, fourth)
    names = data_files(object_server, address)
    assert len(names) == 5, "nothing is staged any more"
    assert [name.split("/p=")[1].split("/trinity-")[0] for name in names if "trinity-" in name] == [
        "new%2Fone",
        "x%20y",
        "z%25",
    ]


def test_what_is_refused_leaves_the_folder_as_it_was(
    theirs: Table, s3: Session, object_server: ObjectServer, address: str
) -> None:
    there = objects(object_server, address)
    refusal("NOT_SUPPORTED", lambda: theirs.vacuum("0 seconds"))
    refusal("NOT_SUPPORTED", lambda: theirs.upsert(SECOND, txn=("load", 1)))
    refusal("NOT_SUPPORTED", lambda: theirs.connector.metadata.truncate(theirs.handle))
    refusal("CONSTRAINT_VIOLATION", lambda: theirs.upsert(SECOND.set_column(0, "k", pa.nulls(2, pa.int64()))))
    with LONGEST_COPY.set_to(100):
        assert "at most 100" in refusal("NOT_SUPPORTED", lambda: theirs.upsert(SECOND))
    s3.drop_table("theirs")
    assert objects(object_server, address) == there


def test_the_commit_of_one_whose_staged_files_are_gone_is_refused(
    theirs: Table, object_server: ObjectServer, address: str
) -> None:
    metadata, sinks = theirs.connector.metadata, theirs.connector.sinks
    insert = metadata.begin_insert(theirs.handle)
    sink = sinks.create_page_sink(insert.target, SinkId())
    sink.append_page(SECOND.to_batches()[0].cast(insert.target.storage))
    fragments = sink.finish()
    object_server.files.delete_file(next(n for n in objects(object_server, address) if ".trinity-staging" in n))
    assert "removed meanwhile" in refusal("TRANSACTION_CONFLICT", lambda: metadata.finish_insert(insert, fragments))
    assert len(data_files(object_server, address)) == 2
    assert merged(theirs) == [(1, "a"), (2, "b"), (3, "c")]


def test_sessions_that_write_at_once_lose_nothing(
    theirs: Table, cloud: BucketLake, object_server: ObjectServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions share no lock but the claim, as processes do."""
    without_turns(monkeypatch)

    def append(number: int) -> int:
        rows = pa.table({"k": [number, number + 100], "ts": [1, 1], "v": ["x", "x"], "p": ["x y", "z%"]})
        with cloud.connect() as session:
            return session.table("theirs").upsert(rows).version

    with ThreadPoolExecutor(8) as writers:
        versions = list(writers.map(append, range(10, 18)))
    assert len(set(versions)) == 8
    keys = [1, 2, 3, *range(10, 18), *range(110, 118)]
    assert [k for k, _ in merged(theirs)] == keys
    assert [row[0] for row in seen_by_another(object_server, address)] == keys


def test_a_look_costs_the_same_after_any_number_of_commits(
    theirs: Table, cloud: BucketLake, object_server: ObjectServer
) -> None:
    def requests_of(look: Callable[[], object]) -> int:
        with object_server.proxy.counting() as requests:
            look()
        return len(requests)

    def fresh() -> None:
        with cloud.connect() as other:
            other.table("theirs").splits()

    looks, appends, first = [], [], []
    for _ in range(3):
        for _ in range(3):
            theirs.upsert(SECOND)
            theirs.splits()
        appends.append(requests_of(lambda: theirs.upsert(SECOND)))
        theirs.splits()
        looks.append(requests_of(theirs.splits))
        first.append(requests_of(fresh) - 2 * len(theirs.splits().files))  # the footer of each file is read
    assert looks == [2, 2, 2], "the files, and the claims"
    assert appends == [20, 20, 20], "of two files"
    assert len(set(first)) == 1


# -- the order of arrival ---------------------------------------------------------------------------------


class Dated:
    """A table of one key in a folder of a bucket. Tests set the times of its objects.

    Args:
        server: the object store.
    """

    def __init__(self, server: GoogleServer) -> None:
        self.bucket, self.stored = server.new_bucket(), server.stored
        self.objects = self.stored.buckets[self.bucket]
        self.lake = bucket_lake("parquet", server, self.bucket, {})
        self.folder = f"{self.lake.place}/theirs"
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.sessions = contextlib.ExitStack()

    def put(self, name: str, value: str, seconds: int) -> None:
        """Put a file without Trinity, dated some seconds from now."""
        data = pa.BufferOutputStream()
        pq.write_table(pa.table({"k": [1], "ts": [1], "v": [value]}), data)
        key = Location.of(f"{self.folder}/{name}").key
        self.stored.put(self.bucket, key, data.getvalue().to_pybytes(), None)
        self.date(name, seconds)

    def date(self, name: str, seconds: int) -> None:
        """Set the time of an object to some seconds from now."""
        key = Location.of(f"{self.folder}/{name}").key
        self.objects[key] = replace(self.objects[key], when=self.now + timedelta(seconds=seconds))

    @property
    def table(self) -> Table:
        """The table in a new session."""
        session = self.sessions.enter_context(self.lake.connect())
        if session.list_tables("lake", "default"):
            return session.table("theirs")
        return session.register("theirs", "parquet", self.folder, KEYED)


@pytest.fixture
def dated(google_server: GoogleServer) -> Iterator[Dated]:
    found = Dated(google_server)
    with found.sessions:
        yield found
    found.stored.slow = timedelta()


def upsert(table: Table, value: str) -> int:
    return table.upsert(pa.table({"k": [1], "ts": [1], "v": [value]})).version


def test_ties_are_decided_by_when_files_came(dated: Dated) -> None:
    """Files of others are ordered by the store's time. Trinity's follow all that existed when they were added."""
    dated.put("zzz.parquet", "theirs", 0)
    table = dated.table
    assert merged(table) == [(1, "theirs")]
    upsert(table, "ours")
    assert merged(table) == [(1, "ours")], "also in the same second"
    dated.put("aaa.parquet", "older", -5)
    assert merged(table) == [(1, "ours")]
    dated.put("aab.parquet", "newer", 60)
    assert merged(table) == [(1, "newer")]
    version = upsert(table, "ours again")
    assert version > (dated.now.timestamp() + 60) * 1000
    assert merged(table) == merged(dated.table) == [(1, "ours again")]


def test_the_time_of_a_commit_is_that_of_the_store(dated: Dated) -> None:
    """By another clock, a file of Trinity would be ordered before files that others add later."""
    dated.stored.slow = timedelta(hours=1)
    dated.put("zzz.parquet", "theirs", -3660)
    table = dated.table
    upsert(table, "ours")
    assert merged(table) == [(1, "ours")]
    dated.put("aaa.parquet", "newer", -3540)
    assert merged(table) == [(1, "newer")]


def compact(table: Table, *names: str) -> None:
    """Rewrite the last of these files in place of all of them, by the adapter's part of ``table.compact`` alone."""
    metadata = table.connector.metadata
    files = [file for file in metadata.get_splits(table.handle).files if file.name in names]
    rewrite = metadata.begin_rewrite(table.handle, files)
    sink = table.connector.sinks.create_page_sink(rewrite.target, SinkId())
    place = Location.of(files[-1].path)
    found = pq.read_table(place.for_arrow, filesystem=ObjectStore(place).filesystem)
    sink.append_page(found.to_batches()[0].cast(rewrite.target.storage))
    metadata.finish_rewrite(rewrite, sink.finish(), replace_sidecar=False)


def test_a_compaction_takes_the_place_of_what_it_replaces(dated: Dated) -> None:
    dated.put("a.parquet", "older", -1000)
    dated.put("b.parquet", "old", -900)
    dated.put("c.parquet", "theirs", -500)
    table = dated.table
    compact(table, "a.parquet", "b.parquet")
    assert [file.name[:9] for file in table.splits().files] == ["trinity-0", "c.parquet"]
    assert merged(table) == merged(dated.table) == [(1, "theirs")]
    dated.put("d.parquet", "late", -950)
    assert [file.name[:9] for file in table.splits().files] == ["d.parquet", "trinity-0", "c.parquet"]
    for ending in ("json", "replaces"):
        dated.date(f".trinity-commits/{1:020d}.{ending}", -3600)
    upsert(table, "ours")
    assert merged(table) == [(1, "ours")]
    kept = [name.rpartition("/")[2] for name in dated.objects if ".trinity-commits/" in name]
    assert kept == [f"{2:020d}.json"], "nothing can bring the replaced ones back any more"


def test_the_next_writer_clears_what_nobody_needs(dated: Dated) -> None:
    """By the store's clock: files staged a week ago, and claims so old that every reader knows them."""
    dated.put("a.parquet", "a", -1000)
    table, days = dated.table, 24 * 3600
    abandoned, staged = (f".trinity-staging/{digit * 32}/x.parquet" for digit in "01")
    dated.put(abandoned, "x", -8 * days)
    dated.put(staged, "x", -6 * days)
    for number in (1, 2, 3):
        upsert(table, str(number))
        dated.date(f".trinity-commits/{number:020d}.json", -3600 if number < 3 else 0)
    upsert(table, "4")
    below = len(Location.of(dated.folder).key) + 1
    hidden = sorted(name[below:] for name in dated.objects if name[below:].startswith("."))
    assert hidden == [*(f".trinity-commits/{number:020d}.json" for number in (3, 4)), staged]
    assert merged(table) == [(1, "4")]


# -- through Spark ----------------------------------------------------------------------------------------


@pytest.mark.full
def test_rows_are_merged(spark: SparkSession, theirs: Table, s3: Session, object_server: ObjectServer) -> None:
    def rows() -> list[tuple[object, ...]]:
        return [tuple(row) for row in s3.sql("SELECT k, v, p FROM theirs ORDER BY k").collect()]

    assert rows() == [(1, "a", "x y"), (2, "b", "x y"), (3, "c", "z%")]
    write(object_server, theirs.location, SECOND, "two")
    assert rows() == [(1, "a", "x y"), (2, "b2", "x y"), (3, "c", "z%")]
    assert theirs.log().count() == 5
    assert s3.sql("SELECT k FROM theirs WHERE p = 'z%'").first()["k"] == 3
    assert sorted((row["k"], row["v"]) for row in theirs.to_arrow().to_pylist()) == merged(theirs)
    refusal("NOT_SUPPORTED", lambda: s3.sql("DELETE FROM theirs WHERE k = 1"))  # no column for the mark (U6)
    copied = s3.sql("CREATE TABLE copied AS SELECT * FROM theirs")
    assert copied is not None
    assert s3.table("copied").to_df().count() == 3


@pytest.mark.full
def test_statements_and_compaction(
    spark: SparkSession, s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    def rows() -> list[tuple[object, ...]]:
        return [tuple(row) for row in s3.sql("SELECT id, v, p FROM theirs ORDER BY id").collect()]

    folder, alive = f"{cloud.place}/statements", [False] * 6
    ids, kinds = pa.array(range(6), pa.int64()), ["x y", "z%"] * 3
    many = pa.table({"id": ids, "ts": pa.array([1] * 6), "gone": alive, "v": [*"abcdef"], "p": kinds})
    write(object_server, folder, many, "one")
    options = {"primary-key": "id", "watermark-key": "ts", "tombstone-key": "gone"}
    table = s3.register("theirs", "parquet", folder, options)
    s3.sql("INSERT INTO theirs (id, ts, gone, v, p) SELECT id + 10, ts, gone, upper(v), p FROM theirs WHERE id < 4")
    s3.sql("DELETE FROM theirs WHERE id IN (1, 10)")
    s3.sql("UPDATE theirs SET v = 'changed' WHERE id = 11")
    s3.sql("""MERGE INTO theirs t USING (VALUES (2, 9, 'new'), (20, 9, 'first')) s (id, ts, v) ON t.id = s.id
              WHEN MATCHED AND s.v = 'new' THEN UPDATE SET v = s.v
              WHEN NOT MATCHED THEN INSERT (id, ts, gone, v, p) VALUES (s.id, s.ts, false, s.v, 'z%')""")
    kept = [(0, "a", "x y"), (2, "new", "x y"), (3, "d", "z%"), (4, "e", "x y"), (5, "f", "z%")]
    kept += [(11, "changed", "z%"), (12, "C", "x y"), (13, "D", "z%"), (20, "first", "z%")]
    assert rows() == kept
    assert table.compact().rows == len(kept) + 2, "those that are deleted, too"
    assert rows() == kept
    assert sum(file.rows for file in table.splits().files) == len(kept) + 2
    assert all("/trinity-" in name for name in data_files(object_server, folder))
    late = many.slice(1, 1).set_column(1, "ts", pa.array([0]))
    write(object_server, folder, late, "late")  # older than the tombstone of its key: still deleted
    assert rows() == kept
    table.upsert(pa.table({"id": [1], "ts": [5], "gone": [False], "v": ["again"], "p": ["z%"]}))
    with cloud.connect() as other:
        found = sorted((row["id"], row["v"], row["p"]) for row in other.table("theirs").to_arrow().to_pylist())
    assert found == sorted([*kept, (1, "again", "z%")])
