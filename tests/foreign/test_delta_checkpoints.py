"""Checkpoints beside other writers: the next one is written, however a log begins and whoever commits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.adapter import KEYED, append, ids
from tests.support.bucket_lake import BucketLake, objects
from tests.support.delta_by_hand import CHECKPOINT, Log, write_actions
from tests.support.delta_lake import open_catalog
from tests.support.delta_rs import append_by_delta_rs, by_delta_rs
from tests.support.delta_shapes import CLEANED, PLAIN, batch, cleaned
from tests.support.object_store import ObjectServer
from trinity import Session, Table
from trinity.storage import ObjectStore
from trinity_delta.checkpoint_files import read_checkpoint

in_a_bucket = pytest.mark.parametrize("cloud", ["delta"], indirect=True)


def checkpoints(server: ObjectServer, place: str) -> list[int]:
    """Return the versions that have a classic checkpoint."""
    names = [name.rpartition("/")[2] for name in objects(server, f"{place}/_delta_log")]
    return sorted(int(name[:20]) for name in names if name.endswith(".checkpoint.parquet"))


def added(server: ObjectServer, place: str, version: int) -> list[dict[str, Any]]:
    """Return the files that a checkpoint adds."""
    with server.files.open_input_file(f"{place}/_delta_log/{version:020d}.checkpoint.parquet"[5:]) as file:
        found = pq.read_table(file).column("add").to_pylist()
    return sorted((add for add in found if add), key=lambda add: str(add["path"]))


def copy_to_bucket(server: ObjectServer, folder: Path, place: str) -> None:
    """Copy a folder into the bucket."""
    pf.copy_files(str(folder), place.removeprefix("s3://"), pf.LocalFileSystem(), server.files)


def ids_of(table: Table, cloud: BucketLake) -> list[int]:
    """Return the ids in the files that delta-rs lists with its own access to the bucket."""
    others = by_delta_rs(table, cloud)
    paths = [f"{table.location}/{unquote(path)}" for path in pa.table(others.get_add_actions())["path"].to_pylist()]
    read = [pq.read_table(path.removeprefix("s3://"), filesystem=cloud.server.files) for path in paths]
    return sorted(pa.concat_tables(read)["id"].to_pylist())


@in_a_bucket
@pytest.mark.parametrize("kind", CLEANED)
def test_a_log_that_begins_with_a_checkpoint_of_any_kind(
    s3: Session, cloud: BucketLake, object_server: ObjectServer, tmp_path: Path, kind: str
) -> None:
    cleaned(tmp_path / "t", kind)
    place = f"{cloud.place}/others"
    copy_to_bucket(object_server, tmp_path / "t", place)
    table = s3.register("t", "delta", place, {"primary-key": "id"})
    assert len(table.splits().files) == 4
    assert s3.table("t").connector.metadata.recorded_txn(table.handle, "a") == 3
    for number in range(20, 30):
        table.upsert(batch(number))
    newest = checkpoints(object_server, place)[-1]
    assert newest == 10
    live = [1, 2, 3, 9, *range(20, 30)]
    assert ids_of(table, cloud) == live
    for name in objects(object_server, f"{place}/_delta_log"):  # as a clean-up does
        if name.rpartition("/")[2][:20] < f"{newest:020d}" or "_sidecars" in name:
            object_server.files.delete_file(name)
    assert ids_of(table, cloud) == live
    with cloud.connect() as other:
        assert len(other.table("t").splits().files) == len(live)
    if kind == "values":
        stats = [json.loads(add["stats"]) for add in added(object_server, place, newest) if len(add["path"]) < 10]
        bounds = [(1, {"id": n}, {"id": n}, {"id": 0}) for n in (1, 2, 3)]
        named = ("numRecords", "minValues", "maxValues", "nullCount")
        assert [tuple(found.get(name) for name in named) for found in stats][:3] == bounds


@in_a_bucket
def test_files_without_statistics_are_in_the_checkpoint(
    s3: Session, cloud: BucketLake, object_server: ObjectServer, tmp_path: Path
) -> None:
    log = Log.of(tmp_path / "t", PLAIN)
    for number, stats in enumerate((None, "{}", "{")):
        log.append(batch(number), f"{number}.parquet", stats=stats)
    place = f"{cloud.place}/others"
    copy_to_bucket(object_server, tmp_path / "t", place)
    table = s3.register("t", "delta", place, {"primary-key": "id"})
    for number in range(10, 20):
        table.upsert(batch(number))
    assert checkpoints(object_server, place) == [10]
    assert [add["stats"] for add in added(object_server, place, 10) if len(add["path"]) < 10] == [None, "{}", "{"]
    health = table.health()
    assert (health.log.rows, health.log.files, health.log_share) == (None, 13, float("inf"))
    assert health.since_checkpoint == table.splits().version - 10
    entries = [entry.details for entry in table.connector.metadata.history(table.handle)]
    assert ["added_rows" in details for details in entries] == [True, False, False, False, *[True] * 10]


@in_a_bucket
def test_other_writers_take_the_versions_that_were_to_have_one(
    s3: Session, cloud: BucketLake, object_server: ObjectServer
) -> None:
    """Trinity commits only the odd versions; delta-rs writes no checkpoint."""
    place = f"{cloud.place}/others"
    append_by_delta_rs(cloud, place, 0, rows=batch(0))
    table = s3.register("t", "delta", place, {"primary-key": "id"})
    for number in range(1, 60, 2):
        table.upsert(batch(number))
        append_by_delta_rs(cloud, place, 0, rows=batch(number + 1))
    found = checkpoints(object_server, place)
    assert found
    assert all(later - earlier <= 21 for earlier, later in zip([0, *found], [*found, 60], strict=True))
    assert ids_of(table, cloud) == list(range(61))


def test_a_log_of_many_commits_without_a_checkpoint_is_told(tmp_path: Path) -> None:
    log = Log.of(tmp_path / "t", PLAIN)
    for number in range(101):
        log.append(batch(number), f"{number}.parquet")
    with trinity.connect(tmp_path / "w") as session:
        table = session.register("delta.default.t", "delta", tmp_path / "t")
        health = table.health()
        assert (health.since_checkpoint, health.log.rows) == (102, 101)
        assert "102 commits since its newest checkpoint" in health.advice
        log.classic()
        assert table.health().since_checkpoint == 0
        assert "checkpoint" not in table.health().advice
        plain = session.create_table("parquet.default.p", [trinity.Column("id", "bigint")])
        assert plain.health().since_checkpoint is None


def test_a_commit_to_a_table_of_others_is_followed_by_a_checkpoint(session: Session, tmp_path: Path) -> None:
    """Other writers have written no checkpoint. With it, Delta's own reader needs no earlier commit."""
    log = Log.of(tmp_path / "t", PLAIN)
    for number in range(100):
        log.append(batch(number), f"{number}.parquet", stats=None)
    table = session.register("delta.default.t", "delta", tmp_path / "t")
    table.append(batch(200))
    assert [path.name[:20] for path in log.place.glob("*.checkpoint.parquet")] == [f"{101:020d}"]
    assert table.health().since_checkpoint == 0
    log.forget(101)
    assert session.spark.read.format("delta").load(table.location).count() == 101


def test_a_table_of_trinitys_goes_on_from_a_checkpoint_of_several_parts(tmp_path: Path) -> None:
    """Spark writes such checkpoints where the size of a part is limited. No step needs a JVM."""
    lake = open_catalog(tmp_path / "w", None)
    table = lake.metadata.create_table(KEYED)
    for number in range(11):
        append(lake, table, (number, "a"))
    place = Path(table.location, "_delta_log")
    classic = place / f"{10:020d}.checkpoint.parquet"
    found = pq.read_table(classic)
    for part in range(2):
        half = found.take(list(range(part, found.num_rows, 2)))
        pq.write_table(half, place / f"{10:020d}.checkpoint.{part + 1:010d}.{2:010d}.parquet")
    classic.unlink()
    (place / "_last_checkpoint").unlink()
    for path in place.glob("*.json"):
        if int(path.name[:20]) < 10:
            path.unlink()
    other = open_catalog(tmp_path / "w", None)
    for number in range(20, 30):
        append(other, table, (number, "b"))
    assert (place / f"{20:020d}.checkpoint.parquet").exists()
    assert ids(open_catalog(tmp_path / "w", None), table) == [*range(11), *range(20, 30)]


def test_numbers_of_every_kind_are_kept_where_statistics_are_values(tmp_path: Path) -> None:
    """Bounds that a checkpoint has as values become the text that Delta's writer would have written."""
    values = {
        "d": pa.array([None, 12345678901234567890], pa.decimal128(38, 2)),
        "t": pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")),
        "n": pa.array([1_700_000_000_123_456], pa.timestamp("us")),
        "day": pa.array([19_000], pa.date32()),
        "s": pa.array([{"x": 1.5}]),
    }
    parsed = {"numRecords": 1, "minValues": {name: array[-1].as_py() for name, array in values.items()}}
    kind = pa.struct({name: array.type for name, array in values.items()})
    file = CHECKPOINT.field("add").type
    add = pa.struct([*file, pa.field("stats_parsed", pa.struct({"numRecords": pa.int64(), "minValues": kind}))])
    schema = pa.schema({"add": add})
    (tmp_path / "_delta_log").mkdir()
    action = {"add": {"path": "x", "size": 1, "dataChange": False, "stats_parsed": parsed}}
    write_actions(tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet", [action], schema)
    found = read_checkpoint(ObjectStore(str(tmp_path)), [f"{0:020d}.checkpoint.parquet"])
    assert found is not None
    text = found.actions[0]["add"]["stats"]
    assert re.search(r'"d":12345678901234567890\.00[,}]', text)
    assert json.loads(text)["minValues"] | {"d": 0} == {
        "d": 0,
        "t": "2023-11-14T22:13:20.123456Z",
        "n": "2023-11-14T22:13:20.123456",
        "day": "2022-01-08",
        "s": {"x": 1.5},
    }
