"""Versions of Delta tables: time travel, history, restarts, and tables that were dropped or damaged."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED, append, code_of, compact, ids, prepare, prepare_merge, resolve
from tests.support.alter import add_column, set_properties
from tests.support.delta_lake import commit_by_others, commit_file, last_action, open_catalog
from trinity.spi import Column, TableHandle
from trinity.storage import ObjectStore
from trinity_delta import DeltaConnector, checkpoint, log, snapshot
from trinity_delta.jvm import DeltaJvm
from trinity_delta.log import read_commit


def test_time_travel_history_vacuum(lake: DeltaConnector, handle: TableHandle, tmp_path: Path) -> None:
    for i in range(1, 4):
        append(lake, handle, (i, "x"))
    compact(lake, handle, [{"id": i} for i in (1, 2, 3)], [{"id": 8}])()
    append(lake, handle, (4, "x"))
    add_column(lake, handle, Column("more", "int"))
    for version, wanted in enumerate([[], [1], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]):
        assert ids(lake, dataclasses.replace(handle, version=version)) == wanted
    history = lake.metadata.history(handle)
    assert [e.version for e in history] == list(range(7))
    assert [e.operation for e in history] == ["create", "append", "append", "append", "compact", "append", "alter"]
    times = [e.timestamp_ms for e in history]
    assert times == sorted(set(times))
    at = dataclasses.replace(handle, version=3)
    assert lake.metadata.get_splits(at).timestamp_ms == times[3]
    code, message = code_of(lambda: lake.metadata.get_splits(dataclasses.replace(handle, version=99)))
    assert code == "INVALID_ARGUMENTS"
    assert "the newest 6" in message

    orphan = Path(handle.location, "orphan.parquet")
    shutil.copy(lake.metadata.get_splits(handle).files[0].path, orphan)
    assert lake.metadata.vacuum(handle, 1).files == 0  # nothing is that old
    assert orphan.exists()
    for path in Path(handle.location).rglob("*.parquet"):
        os.utime(path, (1, 1))
    result = lake.metadata.vacuum(handle, times[5] - 1)  # version 4 was the newest one at that time
    assert (result.files, result.oldest_version) == (4, 4)
    assert not orphan.exists()
    assert [e.version for e in lake.metadata.history(handle)] == [4, 5, 6, 7]
    assert lake.metadata.history(handle)[-1].operation == "vacuum"
    for connector in (lake, open_catalog(tmp_path / "w", None)):
        code, message = code_of(lambda c=connector: c.metadata.get_splits(at))  # type: ignore[misc]
        assert code == "INVALID_ARGUMENTS"
        assert "the oldest readable one is 4" in message
        assert ids(connector, dataclasses.replace(handle, version=4)) == [1, 2, 3]
    assert len(lake.metadata.get_splits(handle).sidecar) == 1
    assert Path(lake.metadata.get_splits(handle).sidecar[0].path).exists()
    assert lake.metadata.vacuum(handle, times[5] - 1).files == 0


def test_no_commit_runs_a_spark_job(lake: DeltaConnector, handle: TableHandle, spark: SparkSession) -> None:
    def jobs(work: Callable[[], Any]) -> int:
        group = uuid.uuid4().hex
        spark.sparkContext.setJobGroup(group, "")
        work()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def commits() -> None:
        for i in range(12):  # past the tenth, where Delta by itself makes a checkpoint
            append(lake, handle, (i, "x"), txn=("app", i))
        add_column(lake, handle, Column("more", "int"))
        append(lake, handle, (12, "x"))
        compact(lake, handle, [{"id": i} for i in range(13)], [{"id": 99}])()
        set_properties(lake, handle, {"comment": "hello"})
        prepare_merge(lake, handle, 13)()
        lake.metadata.vacuum(handle, int(time.time() * 1000) + 60_000)
        lake.metadata.truncate(handle)

    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # where Delta checks each commit by a job
    try:
        assert jobs(commits) == 0
        assert jobs(lambda: spark.range(1).collect()) == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    described = spark.sql(f"DESCRIBE HISTORY delta.`{handle.location}`").collect()
    assert [r["operation"] for r in sorted(described, key=lambda r: r["version"])][12:] == [
        "WRITE", "UPDATE SCHEMA", "WRITE", "OPTIMIZE", "SET TBLPROPERTIES", "UPDATE", "VACUUM START", "TRUNCATE",
    ]  # fmt: skip


def test_restart_and_recreate(lake: DeltaConnector, handle: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"))
    other = open_catalog(tmp_path / "w", spark)
    assert other.metadata.get_splits(handle) == lake.metadata.get_splits(handle)
    other.metadata.drop_table(handle)
    assert not Path(handle.location).exists()
    made = other.metadata.create_table(dataclasses.replace(KEYED, columns=(*KEYED.columns, Column("w", "int"))))
    append(other, made, (5, "e"))
    assert code_of(lambda: ids(lake, handle))[0] == "TRANSACTION_CONFLICT"
    named = dataclasses.replace(handle, id=None)
    assert ids(lake, named) == [5]  # the connector that remembered the dropped table
    append(lake, named, (6, "f"))
    assert ids(other, made) == [5, 6]
    assert len(lake.metadata.get_splits(named).definition.columns) == 4


@pytest.mark.full
def test_a_table_is_opened_by_its_newest_checkpoint(
    lake: DeltaConnector, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[int]()

    def noted(store: ObjectStore, name: str, version: int) -> list[dict[str, Any]]:
        read.append(version)
        return read_commit(store, name, version)

    def opened(handle: TableHandle) -> list[int]:
        """Return the commits that a new connector reads."""
        read.clear()
        with monkeypatch.context() as watched:
            for module in (snapshot, checkpoint, log):
                watched.setattr(module, "read_commit", noted)
            other = open_catalog(tmp_path / "w", spark)
            assert other.metadata.get_splits(handle) == lake.metadata.get_splits(handle)
            assert other.metadata.recorded_txn(handle, "app") == lake.metadata.recorded_txn(handle, "app") == 7
        return sorted({*read})

    def made(name: str, **options: str) -> TableHandle:
        """Make a table with checkpoints of versions 4 and 8."""
        properties = {**KEYED.properties, "delta.checkpointInterval": "4", **options}
        table = lake.metadata.create_table(dataclasses.replace(KEYED, name=name, properties=properties))
        append(lake, table, (1, "a"), (2, "b"), txn=("app", 7))
        compact(lake, table, [{"id": 1}], [{"id": 2}])()
        for n in range(3, 6):
            append(lake, table, (n, "x"))
        return table

    table = made("t")
    assert opened(table) == [4, 5]
    commit_by_others(table, {"add": {**last_action(table, "add"), "path": "others.parquet", "tags": {}}})
    DeltaJvm(spark).forget(table.location)
    assert opened(table) == [4, 5, 6]
    for n in range(7, 10):
        append(lake, table, (n, "x"))
    assert opened(table)[0] == 4, "a checkpoint with what others wrote is not read here"
    assert opened(made("u", **{"delta.checkpoint.writeStatsAsJson": "false"})) == [4, 5]
    both = made("w", **{"delta.checkpoint.writeStatsAsStruct": "true"})
    resolve(open_catalog(tmp_path / "w", spark), both, [{"id": 1, "v": "y"}], [0])()
    assert opened(both) == [4, 5, 6]
    assert spark.read.format("delta").load(both.location).count() == 1


def test_dropped_meanwhile(lake: DeltaConnector, handle: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"))
    late = prepare(lake, handle, (2, "b"))
    rewrite = compact(lake, handle, [{"id": 1}], [])
    shutil.rmtree(handle.location)
    for call in (
        late,
        rewrite,
        lambda: lake.metadata.get_splits(handle),
        lambda: lake.metadata.history(handle),
        lambda: lake.metadata.drop_table(handle),
        lambda: lake.metadata.vacuum(handle, 0),
        lambda: set_properties(lake, handle, {"comment": "x"}),
    ):
        code, message = code_of(call)
        assert code == "TABLE_NOT_FOUND"
        assert "lake.default.t" in message
    assert lake.metadata.get_table("default", "t") is None
    assert not Path(handle.location, "_delta_log").exists()


def test_bad_data(lake: DeltaConnector, handle: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, handle, (1, "a"))
    append(lake, handle, (2, "b"))
    commit_file(handle, 1).write_text('{"add": {"path"')
    code, message = code_of(lambda: open_catalog(tmp_path / "w", spark).metadata.get_splits(handle))
    assert code == "BAD_DATA"
    assert str(commit_file(handle, 1)) in message
    commit_file(handle, 1).unlink()
    DeltaJvm(spark).forget(handle.location)
    code, message = code_of(lambda: open_catalog(tmp_path / "w", spark).metadata.get_splits(handle))
    assert code == "BAD_DATA"
    assert handle.location in message


def test_no_delta_in_spark(tmp_path: Path) -> None:
    class Thread:
        @staticmethod
        def currentThread() -> Any:  # noqa: N802
            raise RuntimeError("java.lang.ClassNotFoundException: org.apache.spark.sql.delta.DeltaLog$")

    class Spark:
        _jvm = SimpleNamespace(**{"java.lang.Thread": Thread})
        _jsparkSession = None  # noqa: N815

    lake = open_catalog(tmp_path / "w", Spark())  # type: ignore[arg-type]
    table = lake.metadata.create_table(KEYED)
    append(lake, table, (1, "a"))
    set_properties(lake, table, {"comment": "x"})  # by Trinity
    code, message = code_of(lambda: set_properties(lake, table, {"delta.randomPrefixLength": "3"}))
    assert code == "CONFIGURATION_INVALID"
    assert "delta-spark" in message
