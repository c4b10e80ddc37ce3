"""The Parquet adapter, driven through the SPI alone: manifests, checkpoints, commits, vacuum."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.alter import set_properties
from tests.support.counting import counted
from tests.support.refusals import refusal
from trinity.spi import (
    Bucket,
    Column,
    Connector,
    ConnectorContext,
    InsertTableHandle,
    ReadScope,
    SinkId,
    TableDefinition,
    TableHandle,
    Tier,
)
from trinity.storage import ObjectStore
from trinity_parquet import ParquetFormat

KEYED = TableDefinition(
    "default",
    "t",
    (Column("id", "bigint", nullable=False), Column("ts", "bigint", default="0", comment="freshness")),
    ("id",),
    properties={"watermark-key": "ts"},
)


def open_catalog(warehouse: Path, **options: Any) -> Connector:
    def no_spark() -> Any:
        raise AssertionError("the adapter needs no Spark")

    return ParquetFormat().create("lake", {"warehouse": str(warehouse), **options}, ConnectorContext(no_spark))


@pytest.fixture
def lake(tmp_path: Path) -> Connector:
    return open_catalog(tmp_path)


@pytest.fixture
def handle(lake: Connector) -> TableHandle:
    return lake.metadata.create_table(KEYED)


def append(lake: Connector, handle: TableHandle, *ids: int, txn: tuple[str, int] | None = None) -> Any:
    insert = lake.metadata.begin_insert(handle)
    return lake.metadata.finish_insert(insert, written(lake, insert, *ids), txn)


def written(lake: Connector, insert: InsertTableHandle, *ids: int) -> list[bytes]:
    sink = lake.sinks.create_page_sink(insert.target, SinkId())
    sink.append_page(pa.record_batch([pa.array(ids, pa.int64())] * 2, schema=insert.target.storage))
    return sink.finish()


def ids(lake: Connector, handle: TableHandle, version: int | None = None) -> list[int]:
    splits = lake.metadata.get_splits(dataclasses.replace(handle, version=version))
    return sorted(i for f in splits.files for i in pq.read_table(f.path)["id"].to_pylist())


def test_a_definition_survives_reopening(lake: Connector, handle: TableHandle, tmp_path: Path) -> None:
    again = open_catalog(tmp_path)
    found = again.metadata.get_table("default", "t")
    assert found == dataclasses.replace(handle, id=None)
    assert again.metadata.get_splits(handle).definition == KEYED.numbered()
    assert again.metadata.list_tables("default") == ["t"]


def test_versions_commit_numbers_and_statistics(lake: Connector, handle: TableHandle) -> None:
    assert lake.metadata.get_splits(handle).version == 0
    assert append(lake, handle, 1, 2).version == 1
    assert append(lake, handle, 3).version == 2
    files = lake.metadata.get_splits(handle).files
    assert [(f.commit, f.rows, f.tier) for f in files] == [(1, 2, Tier.LOG), (2, 1, Tier.LOG)]
    assert (files[0].stats["id"].min, files[0].stats["id"].max, files[0].stats["ts"].nulls) == (1, 2, 0)
    assert ids(lake, handle, 1) == [1, 2]


@pytest.mark.parametrize("interval", [2, 5])
def test_checkpoints_stand_for_the_manifests_before_them(tmp_path: Path, interval: int) -> None:
    lake = open_catalog(tmp_path, **{"checkpoint-interval": interval})
    table = lake.metadata.create_table(KEYED)
    for n in range(11):
        append(lake, table, n, txn=("app", n))
    log = Path(table.location, "_trinity/log")
    newest = 11 // interval * interval
    assert (log / f"{newest:020d}.checkpoint.json").exists()
    for version in range(1, newest):  # a new reader does not open commits that the checkpoint covers
        (log / f"{version:020d}.json").write_text("not json")
    again = open_catalog(tmp_path)
    assert ids(again, table) == list(range(11))
    assert again.metadata.recorded_txn(table, "app") == 10


def test_commits_cost_the_same_whatever_the_table_holds(tmp_path: Path) -> None:
    """Commits read nothing back, and checkpoints, which repeat all files, become rarer as files add up."""
    lake = open_catalog(tmp_path, **{"checkpoint-interval": 2})
    table = lake.metadata.create_table(KEYED)
    append(lake, table, -1)
    with counted(ObjectStore, "get") as read:
        for n in range(300):
            append(lake, table, n)
    assert read == {}
    written_again = sum(
        len(json.loads(checkpoint.read_bytes())["files"])
        for checkpoint in Path(table.location, "_trinity/log").glob("*.checkpoint.json")
    )
    assert written_again < 300 * 40  # of a checkpoint every two versions: 22,500
    with counted(ObjectStore, "get", by=lambda store, name: "checkpoint" in name) as read:
        assert ids(open_catalog(tmp_path, **{"checkpoint-interval": 2}), table) == list(range(-1, 300))
    assert read[False] <= 300 / 20 + 1  # and where to begin


def test_a_commit_stands_when_it_cannot_be_remembered(
    lake: Connector, handle: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails right after the manifest was put. Reported as a failure, it would make a retry double rows."""
    put, stat, failing = ObjectStore.put_if_absent, ObjectStore.stat, [False]

    def put_then_fail(store: ObjectStore, name: str, data: bytes, **rest: Any) -> None:
        put(store, name, data, **rest)
        failing[0] = "checkpoint" not in name

    def fail_once(store: ObjectStore, name: str) -> Any:
        if failing[0]:
            failing[0] = False
            raise OSError("the disk fails")
        return stat(store, name)

    monkeypatch.setattr(ObjectStore, "put_if_absent", put_then_fail)
    monkeypatch.setattr(ObjectStore, "stat", fail_once)
    assert append(lake, handle, 1).version == 1
    monkeypatch.undo()
    assert ids(lake, handle) == [1]


def test_what_a_crash_leaves_is_ignored(lake: Connector, handle: TableHandle, tmp_path: Path) -> None:
    append(lake, handle, 1)
    log = Path(handle.location, "_trinity/log")
    (log / f".{2:020d}.json.abc").write_text("{")  # torn: it never got its name
    again = open_catalog(tmp_path)
    assert ids(again, handle) == [1]
    assert append(again, handle, 2).version == 2


def test_a_corrupt_checkpoint_is_passed_over_and_a_lost_manifest_named(tmp_path: Path) -> None:
    lake = open_catalog(tmp_path, **{"checkpoint-interval": 2})
    table = lake.metadata.create_table(KEYED)
    for n in range(3):
        append(lake, table, n)
    log = Path(table.location, "_trinity/log")
    checkpoint = log / f"{2:020d}.checkpoint.json"
    checkpoint.write_text("{")
    assert ids(open_catalog(tmp_path), table) == [0, 1, 2]  # manifests say the same
    (log / f"{1:020d}.json").unlink()
    assert f"{1:020d}.json" in refusal("BAD_DATA", lambda: ids(open_catalog(tmp_path), table))


def test_txn_without_rows_is_recorded(lake: Connector, handle: TableHandle) -> None:
    insert = lake.metadata.begin_insert(handle)
    assert not lake.metadata.finish_insert(insert, [], ("app", 1)).skipped
    assert lake.metadata.finish_insert(insert, [], ("app", 1)).skipped
    assert lake.metadata.finish_insert(insert, []).version == 1


def test_a_statement_that_read_conflicts_with_new_rows_only(lake: Connector, handle: TableHandle) -> None:
    append(lake, handle, 1)
    first = lake.metadata.begin_merge(handle, {})
    set_properties(lake, handle, {"comment": "no rows"})
    rewrite(lake, handle)()
    assert lake.metadata.finish_merge(first, written(lake, first.insert, 3)).version == 4
    second = lake.metadata.begin_merge(handle, {})
    append(lake, handle, 2)
    fragments = written(lake, second.insert, 4)
    refusal("TRANSACTION_CONFLICT", lambda: lake.metadata.finish_merge(second, fragments))
    elsewhere = dataclasses.replace(second, scope=ReadScope(bounds={"id": (4, 9)}))
    assert lake.metadata.finish_merge(elsewhere, fragments).version == 6


def rewrite(lake: Connector, handle: TableHandle) -> Any:
    splits = lake.metadata.get_splits(handle)
    rewriting = lake.metadata.begin_rewrite(handle, splits.files)
    rows = [i for f in splits.files for i in pq.read_table(f.path)["id"].to_pylist()]
    highest = max(f.commit or 0 for f in splits.files)
    sink = lake.sinks.create_page_sink(rewriting.target, SinkId(0, Tier.BASE, Bucket(0, 1), highest))
    sink.append_page(pa.record_batch([pa.array(rows, pa.int64())] * 2, schema=rewriting.target.storage))
    fragments = sink.finish()
    return lambda: lake.metadata.finish_rewrite(rewriting, fragments, replace_sidecar=True)


def test_k6_a_rewrite_keeps_the_highest_commit_that_it_folded(lake: Connector, handle: TableHandle) -> None:
    append(lake, handle, 1)
    append(lake, handle, 2)
    finish = rewrite(lake, handle)
    append(lake, handle, 3)
    assert finish().version == 4
    files = lake.metadata.get_splits(handle).files
    assert sorted((f.tier.value, f.commit) for f in files) == [("base", 2), ("log", 3)]
    refusal("TRANSACTION_CONFLICT", finish)


def test_vacuum_keeps_what_the_oldest_readable_version_needs(lake: Connector, handle: TableHandle) -> None:
    for n in range(3):
        append(lake, handle, n)
    rewrite(lake, handle)()
    append(lake, handle, 9)
    history = lake.metadata.history(handle)
    replaced_at = next(e.timestamp_ms for e in history if e.version == 4)
    result = lake.metadata.vacuum(handle, replaced_at - 1)  # version 3 was still the newest just before
    assert (result.oldest_version, result.files) == (3, 0)
    assert ids(lake, handle, 3) == [0, 1, 2]
    assert "3" in refusal("INVALID_ARGUMENTS", lambda: ids(lake, handle, 2))
    result = lake.metadata.vacuum(handle, lake.metadata.history(handle)[-1].timestamp_ms + 1000)
    assert result.files == 3
    assert ids(lake, handle) == [0, 1, 2, 9]
    assert len(lake.metadata.history(handle)) == 2  # the newest readable one, and the vacuum itself


def _append_in_a_process(warehouse: Path, first: int) -> None:
    lake = open_catalog(warehouse)
    table = lake.metadata.get_table("default", "t")
    assert table
    for n in range(5):
        append(lake, table, first + n)


def test_three_processes_and_eight_threads_lose_nothing(lake: Connector, handle: TableHandle, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers: list[Any] = [spawn.Process(target=_append_in_a_process, args=(tmp_path, 100 * p)) for p in range(1, 4)]
    workers += [threading.Thread(target=_append_in_a_process, args=(tmp_path, 1000 * t)) for t in range(1, 9)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expected = [100 * p + n for p in range(1, 4) for n in range(5)] + [
        1000 * t + n for t in range(1, 9) for n in range(5)
    ]
    assert ids(lake, handle) == sorted(expected)
    assert lake.metadata.get_splits(handle).version == len(expected)
    times = [e.timestamp_ms for e in lake.metadata.history(handle)]
    assert times == sorted(set(times))


def test_manifests_are_plain_json(lake: Connector, handle: TableHandle) -> None:
    append(lake, handle, 1, txn=("app", 4))
    manifest = json.loads(Path(handle.location, f"_trinity/log/{1:020d}.json").read_text())
    assert manifest["operation"] == "append"
    assert manifest["txns"] == {"app": 4}
    assert [set(f) for f in manifest["add"]] == [{"path", "size", "rows", "tier", "commit", "stats", "column_sizes"}]
    assert Path(handle.location, manifest["add"][0]["path"]).is_file()  # relative: the folder can be moved
