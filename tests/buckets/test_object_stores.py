"""Tables in an S3 bucket of a real server: their rows, races of writers, and refusals."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.bucket_lake import COLUMNS, FIRST, ROWS, BucketLake, objects, race, stored
from tests.support.object_store import ObjectServer
from tests.support.refusals import refusal
from trinity import Session, Table
from trinity.errors import TrinityError
from trinity.spi import SinkId
from trinity.storage import ObjectStore

# -- tables -----------------------------------------------------------------------------------------------


def test_a_table_lives_in_a_bucket(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    s3.connector("lake").metadata.create_schema("sales_~x")
    table = s3.create_table('lake."sales_~x".orders', COLUMNS, partition_by=["v"])
    table.append(ROWS, txn=("load", 1))
    table.append(pa.table({"k": [3], "v": ["a/b c"]}))
    assert table.append(ROWS, txn=("load", 1)).skipped
    assert [row["k"] for row in stored(object_server, table)] == [1, 2, 3]
    assert [row["k"] for row in stored(object_server, table, version=FIRST[cloud.fmt] + 1)] == [1, 2]
    history = s3.connector("lake").metadata.history(table.handle)
    assert [entry.operation for entry in history] == ["create", "append", "append"]
    table.set_properties({"comment": "in a bucket"})
    with cloud.connect() as other:
        seen = other.table('"sales_~x".orders')
        assert seen.properties["comment"] == "in a bucket"
        assert stored(object_server, seen) == stored(object_server, table)
        assert other.list_tables("lake", "sales_~x") == ["orders"]
        other.drop_table('"sales_~x".orders')
    refusal("TABLE_NOT_FOUND", lambda: table.append(ROWS))
    assert objects(object_server, table.location) == []
    s3.connector("lake").metadata.drop_schema("sales_~x")
    assert s3.connector("lake").metadata.list_schemas() == ["default"]


def test_a_keyed_table_takes_row_versions(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    table = s3.create_table("t", COLUMNS, primary_key=["k"])
    for text in "xy":
        table.upsert(pa.table({"k": [1], "v": [text]}))
    assert [row["v"] for row in sorted(stored(object_server, table), key=lambda row: str(row["v"]))] == ["x", "y"]
    assert [f.commit for f in table.splits().files] == [FIRST[cloud.fmt] + 1, FIRST[cloud.fmt] + 2]
    assert "s3a://" in table.merge_view_sql("spark") or "s3://" in table.merge_view_sql("spark")


def test_events_become_versions_in_a_bucket(s3: Session) -> None:
    """A late event changes a row in the base and a tombstone in the sidecar."""
    words: dict[str, Any] = {"keys": ["k"], "sequence_by": "n", "apply_as_deletes": "v = 'gone'"}
    words |= {"except_columns": ["n"], "stored_as_scd_type": 2}
    first = pa.table({"k": [1, 1, 2], "n": [10, 30, 40], "v": ["a", "c", "gone"]})
    trinity.apply_changes(first, "t", session=s3, **words)
    table = s3.table("t")
    table.compact(full=True)
    trinity.apply_changes(pa.table({"k": [2, 1], "n": [20, 20], "v": ["x", "b"]}), table, **words)
    found = table.to_arrow().sort_by([("k", "ascending"), ("__START_AT", "ascending")])
    expected = [(1, "a", 10, 20), (1, "b", 20, 30), (1, "c", 30, None), (2, "x", 20, 40)]
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_a_table_that_is_made_anew_has_nothing_of_the_one_before(s3: Session, object_server: ObjectServer) -> None:
    old = s3.create_table("t", COLUMNS)
    old.append(ROWS)
    s3.drop_table("t")
    new = s3.create_table("t", COLUMNS)
    assert new.location != old.location
    refusal("TABLE_NOT_FOUND", lambda: old.append(ROWS))
    assert new.splits().files == ()
    refusal("TABLE_ALREADY_EXISTS", lambda: s3.create_table("t", COLUMNS))
    refusal("SCHEMA_NOT_FOUND", lambda: s3.create_table("nowhere.t", COLUMNS))


def test_iceberg_renames_a_table_and_the_others_say_what_to_do(s3: Session, cloud: BucketLake) -> None:
    table = s3.create_table("t", COLUMNS)
    table.append(ROWS)
    if cloud.fmt == "iceberg":
        assert table.rename("other").count() == 2
        refusal("TABLE_NOT_FOUND", lambda: table.append(ROWS))
        assert s3.create_table("t", COLUMNS).location != table.location
    else:
        refusal("NOT_SUPPORTED", lambda: table.rename("other"))
    assert s3.table("lake.default.other" if cloud.fmt == "iceberg" else "t").count() == 2


def test_a_statement_that_outlives_its_table_writes_to_no_other(s3: Session, object_server: ObjectServer) -> None:
    old = s3.create_table("t", COLUMNS)
    metadata, sinks = old.connector.metadata, old.connector.sinks
    insert = metadata.begin_insert(old.handle)
    sink = sinks.create_page_sink(insert.target, SinkId())
    sink.append_page(pa.RecordBatch.from_pydict({"k": [7], "v": ["x"]}, schema=insert.target.storage))
    s3.drop_table("t")
    new = s3.create_table("t", COLUMNS)
    with pytest.raises(TrinityError) as caught:
        metadata.finish_insert(insert, sink.finish())
    assert caught.value.code in ("TABLE_NOT_FOUND", "TRANSACTION_CONFLICT")
    assert stored(object_server, new) == []


def test_vacuum_forgets_versions_and_orphans(
    s3: Session, cloud: BucketLake, plain: Table, object_server: ObjectServer
) -> None:
    version = plain.append(ROWS).version
    folder = plain.splits().files[0].path.rpartition("/")[0]
    orphan = f"{folder}/{'0' * 32}-000000-00000000.parquet"
    pq.write_table(ROWS, orphan.removeprefix("s3://"), filesystem=object_server.files)
    s3.connector("lake").metadata.truncate(plain.handle)
    plain.append(ROWS)
    assert plain.vacuum("0 seconds").files == 2
    assert len(stored(object_server, plain)) == 2
    refusal("INVALID_ARGUMENTS", lambda: plain.splits(version))
    assert [name for name in objects(object_server, plain.location) if name.endswith(".parquet")] == [
        f.path.removeprefix("s3://") for f in plain.splits().files
    ]


@pytest.mark.full
def test_others_commits_and_checkpoints_are_read(plain: Table, cloud: BucketLake) -> None:
    start = FIRST[cloud.fmt]
    with cloud.connect() as other:
        seen = other.table("plain")
        for number in range(12):
            plain.append(pa.table({"k": [number], "v": ["x"]}))
        assert seen.splits().version == start + 12
    with cloud.connect() as late:
        assert len(late.table("plain").splits().files) == 12
        assert len(late.table("plain").splits(start + 7).files) == 7


@pytest.mark.full
def test_a_table_may_be_registered_by_its_location(
    plain: Table, s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    plain.append(ROWS)
    found = s3.register("again", cloud.fmt, plain.location)
    assert stored(object_server, found) == stored(object_server, plain)
    words = {"parquet": "is no folder", "delta": "no Delta table", "iceberg": "no Iceberg table"}[cloud.fmt]
    assert words in refusal("INVALID_ARGUMENTS", lambda: s3.register("f", cloud.fmt, f"{plain.location}/x"))
    s3.drop_table("again")
    assert len(stored(object_server, plain)) == 2


# -- one winner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
def test_of_writers_of_one_name_one_wins(s3: Session, cloud: BucketLake) -> None:
    store = ObjectStore(f"{cloud.place}/race")
    won = race(store, 16)
    assert won.count(True) == 1
    assert store.get("name") == b"%d" % won.index(True)


@pytest.mark.full
def test_of_makers_of_one_table_one_wins(s3: Session, cloud: BucketLake, object_server: ObjectServer) -> None:
    def makes(_: int) -> Table | TrinityError:
        try:
            return s3.create_table("t", COLUMNS)
        except TrinityError as error:
            return error

    with ThreadPoolExecutor(4) as makers:
        found = list(makers.map(makes, range(4)))
    assert [e.code for e in found if isinstance(e, TrinityError)] == ["TABLE_ALREADY_EXISTS"] * 3
    [made] = [table for table in found if isinstance(table, Table)]
    made.append(ROWS)
    assert len(stored(object_server, s3.table("t"))) == 2
    assert objects(object_server, f"{cloud.place}/default") == objects(object_server, made.location)


@pytest.mark.full
def test_sessions_that_append_at_once_lose_nothing(
    plain: Table, object_server: ObjectServer, cloud: BucketLake
) -> None:
    def append(number: int) -> None:
        with cloud.connect() as session:
            session.table("plain").append(pa.table({"k": [number], "v": ["x"]}))

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(append, range(16)))
    assert sorted(row["k"] for row in stored(object_server, plain)) == list(range(16))
    assert plain.splits().version == FIRST[cloud.fmt] + 16


# -- requests ---------------------------------------------------------------------------------------------


def test_requests_are_few_and_do_not_grow(plain: Table, object_server: ObjectServer, cloud: BucketLake) -> None:
    for number in range(30):
        plain.append(pa.table({"k": [number], "v": ["x"]}))
    counting = object_server.proxy.counting
    with counting() as append:
        plain.append(ROWS)
    with counting() as look:
        plain.splits()
    with cloud.connect() as fresh:
        with counting() as find:
            table = fresh.table("plain")
        with counting() as first:
            table.splits()
    assert (len(append), len(look), len(find)) == {
        "parquet": (6, 1, 3),
        "delta": (7, 1, 3),
        "iceberg": (7, 0, 1),
    }[cloud.fmt]
    assert len(first) <= 2 + 10  # the listing of the log, a checkpoint, and the commits after it
    assert [r for r in first if re.search(r"(?<!checkpoint)\.parquet$", r.path)] == []


@pytest.mark.parametrize("cloud", ["parquet"], indirect=True)
def test_a_manifest_names_what_lies_below_it(plain: Table, object_server: ObjectServer) -> None:
    plain.append(ROWS)
    manifest = f"{plain.location}/_trinity/log/{1:020d}.json".removeprefix("s3://")
    found = json.loads(object_server.files.open_input_stream(manifest).read())
    assert "/" not in found["add"][0]["path"]
