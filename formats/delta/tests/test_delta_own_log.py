"""Commits that Trinity makes without Delta's classes on a disk: without a JVM, mixed with Delta's, in checkpoints."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.adapter import KEYED, append, code_of, compact, ids, prepare_merge, resolve
from tests.support.alter import set_properties
from tests.support.delta_lake import actions_of, commit_by_others, commit_file, file_key, last_action, open_catalog
from trinity.definition.evolve import Change, added, dropped, rename_column, with_type
from trinity.spi import Check, Column, SplitSource, TableHandle
from trinity_delta import DeltaConnector
from trinity_delta.jvm import DeltaJvm

Actions = list[dict[str, Any]]


def removed(handle: TableHandle, versions: range) -> set[tuple[str, str | None]]:
    """Return the files that commits have removed and that are not live, each with its deletion vector."""
    gone, back = set(), set()
    for version in versions:
        written = actions_of(handle, version)
        gone |= {file_key(action["remove"]) for action in written if "remove" in action}
        back |= {file_key(action["add"]) for action in written if "add" in action}
        gone -= {file_key(action["add"]) for action in written if "add" in action}
    assert back
    return gone


def checkpoint(handle: TableHandle, version: int) -> Actions:
    name = f"{version:020d}.checkpoint.parquet"
    return pq.read_table(Path(handle.location, "_delta_log", name)).to_pylist()  # type: ignore[no-any-return]


def history(lake: DeltaConnector, handle: TableHandle) -> None:
    """Commit sixteen versions: appends, row changes, compactions, resolves, and a change of columns."""
    for turn in range(2):
        append(lake, handle, (turn * 10 + 1, "a"), (turn * 10 + 2, "b"), txn=("app", turn))
        compact(lake, handle, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}], [{"id": 4}])()
        append(lake, handle, (turn * 10 + 3, "c"))
        prepare_merge(lake, handle, turn * 10 + 4)()
        resolve(lake, handle, [{"id": turn + 20}], [0])()
        append(lake, handle, (turn * 10 + 5, "d"))
        resolve(lake, handle, [{"id": turn + 30}], [1])()
    set_properties(lake, handle, {"comment": "x"})
    append(lake, handle, (99, "z"))


def splits(lake: DeltaConnector, handle: TableHandle) -> SplitSource:
    """Return the version with its files sorted by name, as their order has no meaning."""
    found = lake.metadata.get_splits(handle)
    return dataclasses.replace(found, files=tuple(sorted(found.files, key=lambda file: file.path)))


@pytest.fixture
def often(lake: DeltaConnector) -> TableHandle:
    """Make a table with a checkpoint every three versions."""
    return lake.metadata.create_table(KEYED.with_properties({**KEYED.properties, "delta.checkpointInterval": "3"}))


def by_hadoop(spark: SparkSession, path: str) -> str:
    """Return the text of a file as Delta's classes read it: Hadoop verifies it by the checksum file beside it."""
    java: Any = spark._jvm
    place = java.org.apache.hadoop.fs.Path(path)
    stream = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).open(place)
    return str(java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))


def test_rows_are_committed_without_a_jvm(tmp_path: Path) -> None:
    lake = open_catalog(tmp_path / "w", None)
    table = lake.metadata.create_table(KEYED)
    append(lake, table, (1, "a"), txn=("app", 1))
    compact(lake, table, [{"id": 1, "v": "a"}], [])()
    append(lake, table, (2, "b"))
    resolve(lake, table, [{"id": 2, "v": "b"}], [0])()
    prepare_merge(lake, table, 3)()
    lake.metadata.truncate(table)
    append(lake, table, (4, "d"))
    assert ids(open_catalog(tmp_path / "w", None), table) == [4]
    assert lake.metadata.vacuum(table, 2**45).files > 0
    lake.metadata.drop_table(table)


def test_a_version_is_the_same_by_its_commits_and_by_any_checkpoint(
    lake: DeltaConnector, often: TableHandle, tmp_path: Path, spark: SparkSession
) -> None:
    history(lake, often)
    newest = lake.metadata.get_splits(often).version
    found = Path(often.location, "_delta_log")
    assert len(list(found.glob("*.checkpoint.parquet"))) == 5
    by_checkpoints = open_catalog(tmp_path / "w", spark)
    for version in range(1, newest + 1):
        pinned = dataclasses.replace(often, version=version)
        assert splits(by_checkpoints, pinned) == splits(lake, pinned), version
    for path in (*found.glob("*.checkpoint.parquet"), found / "_last_checkpoint"):
        path.unlink()
    by_commits = open_catalog(tmp_path / "w", spark)
    for version in range(newest, 0, -1):
        pinned = dataclasses.replace(often, version=version)
        assert splits(by_commits, pinned) == splits(lake, pinned), version
    assert by_commits.metadata.recorded_txn(often, "app") == 1


@pytest.mark.full
def test_delta_reads_each_version_and_finds_it_whole(
    lake: DeltaConnector, often: TableHandle, spark: SparkSession
) -> None:
    history(lake, often)
    newest = lake.metadata.get_splits(often).version
    jvm = DeltaJvm(spark)
    jvm.forget(often.location)
    for version in range(1, newest + 1):
        pinned = dataclasses.replace(often, version=version)
        files = lake.metadata.get_splits(pinned).files
        live = sum(file.rows - (file.deletes.rows if file.deletes else 0) for file in files)
        rows = spark.read.format("delta").option("versionAsOf", version).load(often.location)
        assert rows.count() == live, version
        snapshot = jvm.log(often.location).getSnapshotAt(version, jvm.none, jvm.none, False)
        assert snapshot.validateChecksum(jvm.mapping({})), version


@pytest.mark.full
def test_a_checkpoint_has_what_vacuum_needs_of_removed_files(lake: DeltaConnector, often: TableHandle) -> None:
    history(lake, often)
    newest = lake.metadata.get_splits(often).version
    versions = range(3, newest + 1, 3)
    for version in versions:
        listed = [row["remove"] for row in checkpoint(often, version) if row["remove"]]
        found = [file_key(file) for file in listed]
        assert sorted(found, key=str) == sorted(removed(often, range(1, version + 1)), key=str)
        assert not any(file["dataChange"] for file in listed)
    assert len(found) > 5


def test_removed_files_go_from_checkpoints_when_they_may(lake: DeltaConnector) -> None:
    settings = {"delta.checkpointInterval": "2", "delta.deletedFileRetentionDuration": "interval 0 seconds"}
    table = lake.metadata.create_table(KEYED.with_properties({**KEYED.properties, **settings}))
    append(lake, table, (1, "a"))
    compact(lake, table, [{"id": 1}], [])()
    compact(lake, table, [{"id": 1}], [])()
    append(lake, table, (2, "a"))
    assert not any(row["remove"] for row in checkpoint(table, 4))


def test_a_checkpoint_of_deltas_own_is_gone_on_from(
    lake: DeltaConnector, often: TableHandle, tmp_path: Path, spark: SparkSession
) -> None:
    append(lake, often, (1, "a"))
    compact(lake, often, [{"id": 1}], [{"id": 9}])()
    spark.sql(f"ALTER TABLE delta.`{often.location}` SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    assert "stats_parsed" in str(pq.read_schema(Path(often.location, "_delta_log", f"{3:020d}.checkpoint.parquet")))
    append(lake, often, (2, "b"))
    compact(lake, often, [{"id": 1}, {"id": 2}], [{"id": 9}])()
    append(lake, often, (3, "c"))
    listed = [file_key(row["remove"]) for row in checkpoint(often, 6) if row["remove"]]
    assert sorted(listed) == sorted(removed(often, range(1, 7)))
    assert len(listed) == 3
    assert splits(open_catalog(tmp_path / "w", spark), often) == splits(lake, often)
    assert json.loads(by_hadoop(spark, f"{often.location}/_delta_log/_last_checkpoint"))["version"] == 6


def test_columns_and_settings_of_trinitys_own_table_are_committed_without_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = open_catalog(tmp_path / "w", None)
    table = lake.metadata.create_table(KEYED)
    append(lake, table, (1, "a"))
    changes: list[Change] = [
        lambda d: added(d, Column("n", "int")),
        lambda d: added(d, Column("at", "timestamp_ntz")),
        lambda d: with_type(d, "n", "bigint"),
        lambda d: rename_column(d, "v", "text"),
        lambda d: dropped(d, "at"),
        lambda d: d.with_properties({**d.properties, "delta.dataSkippingNumIndexedCols": "3"}),
        lambda d: dataclasses.replace(d, checks=(Check("short", "length(text) < 9"),)),
    ]
    for change in changes:
        lake.metadata.alter_table(table, change)
        assert last_action(table, "commitInfo")["engineInfo"].startswith("Trinity/")
    shown = spark.read.format("delta").load(table.location)
    assert [(f.name, f.dataType.simpleString()) for f in shown.schema if not f.name.startswith("_")] == [
        ("id", "bigint"), ("text", "string"), ("n", "bigint"),
    ]  # fmt: skip
    assert [(r.id, r.text, r.n) for r in shown.collect()] == [(1, "a", None)]
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{table.location}`").collect()[0]
    assert {"columnMapping", "timestampNtz", "typeWidening"} <= {*detail.tableFeatures}


@pytest.mark.parametrize("feature", ["vacuumProtocolCheck", "v2Checkpoint"])
def test_a_feature_that_trinity_does_not_keep_to_is_deltas_to_commit(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession, feature: str
) -> None:
    append(lake, handle, (1, "a"))
    assert last_action(handle, "commitInfo")["engineInfo"].startswith("Trinity/")
    spark.sql(f"ALTER TABLE delta.`{handle.location}` SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')")
    append(lake, handle, (2, "b"))
    assert "Delta-Lake/" in last_action(handle, "commitInfo")["engineInfo"]
    assert ids(lake, handle) == [1, 2]


@pytest.mark.parametrize(
    "setting",
    [pytest.param("delta.enableRowTracking = true", marks=pytest.mark.full), "delta.feature.rowTracking = supported"],
)
def test_rows_are_numbered_as_delta_does(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession, tmp_path: Path, setting: str
) -> None:
    """Each row gets one number, from Trinity and Delta by turns, also in a table that enables row tracking later."""
    name, _, value = setting.partition(" = ")
    tracked = dataclasses.replace(KEYED, name="tracked", properties={**KEYED.properties, name: value})
    made = lake.metadata.create_table(tracked)
    append(lake, handle, (1, "a"))
    assert "baseRowId" not in last_action(handle, "add")
    spark.sql(f"ALTER TABLE delta.`{handle.location}` SET TBLPROPERTIES ('{name}' = '{value}')")
    for each in (made, handle):
        append(lake, each, (2, "b"), (3, "c"))
        compact(lake, each, [{"id": n, "v": "d"} for n in range(4)], [])()
        resolve(lake, each, [{"id": 9}], [0])()
        spark.sql(f"INSERT INTO delta.`{each.location}` (id, v) VALUES (5, 'e')")
        append(open_catalog(tmp_path / "w", None), each, (6, "f"))
        newest = lake.metadata.get_splits(each).version
        listed = [action["commitInfo"]["engineInfo"] for n in range(newest + 1) for action in actions_of(each, n)[:1]]
        assert sum(engine.startswith("Trinity/") for engine in listed) >= 4
        live = live_files(lake, each)
        numbers = sorted((file["baseRowId"], json.loads(file["stats"])["numRecords"]) for file in live)
        assert all(first + rows <= later for (first, rows), (later, _) in itertools.pairwise(numbers))
        assert len({*(action["add"]["baseRowId"] for n in range(newest + 1) for action in new_files(each, n))}) >= 5
    shown = spark.read.format("delta").load(made.location)
    if value == "true":
        found = shown.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
        assert len({row.row_id for row in found}) == len(found) == 6
        assert {row.id: row.row_commit_version for row in found if row.id in (5, 6, 9)} == {5: 4, 6: 5, 9: 3}


def live_files(lake: DeltaConnector, handle: TableHandle) -> Actions:
    """Return the add actions of the live files."""
    found: dict[str, dict[str, Any]] = {}
    for version in range(lake.metadata.get_splits(handle).version + 1):
        written = actions_of(handle, version)
        for action in written:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        found |= {action["add"]["path"]: action["add"] for action in written if "add" in action}
    return list(found.values())


def new_files(handle: TableHandle, version: int) -> Actions:
    written = actions_of(handle, version)
    gone = {action["remove"]["path"] for action in written if "remove" in action}
    return [
        action
        for action in written
        if "add" in action and action["add"]["path"] not in gone and "baseRowId" in action["add"]
    ]


@pytest.mark.parametrize("setting", [{"delta.enableRowTracking": "true"}, {"delta.feature.rowTracking": "supported"}])
def test_rows_are_numbered_from_the_beginning_or_by_spark(
    lake: DeltaConnector, handle: TableHandle, setting: dict[str, str]
) -> None:
    append(lake, handle, (1, "a"))
    code, message = code_of(lambda: set_properties(lake, handle, setting))
    assert (code, handle.full_name in message) == ("INVALID_TABLE_PROPERTY", True)
    append(lake, handle, (2, "b"))
    assert "baseRowId" not in last_action(handle, "add")


@pytest.mark.parametrize("behind", [1, 2, 9, 40])
def test_a_commit_that_is_missing_is_told_wherever_it_is(
    lake: DeltaConnector, often: TableHandle, tmp_path: Path, spark: SparkSession, behind: int
) -> None:
    """A search from a checkpoint must not stop at the gap, as the newest version would then be an older one."""
    for number in range(behind + 6):
        append(lake, often, (number, "x"))
    log = Path(often.location, "_delta_log")
    for path in log.glob("*.checkpoint.parquet"):
        if int(path.name[:20]) > 3:
            path.unlink()
    (log / "_last_checkpoint").write_text(json.dumps({"version": 3, "size": 5}))
    commit_file(often, 5).unlink()
    other = open_catalog(tmp_path / "w", spark)
    code, message = code_of(lambda: other.metadata.get_splits(often))
    assert (code, often.location in message) == ("BAD_DATA", True)


def test_a_commit_that_another_engine_put_over_is_read_again(lake: DeltaConnector, handle: TableHandle) -> None:
    """Delta's classes check whether a commit exists, and then put theirs, which is not one atomic step."""
    append(lake, handle, (1, "a"))
    assert ids(lake, handle) == [1]
    append(lake, handle, (2, "b"))
    commit_file(handle, 2).unlink()
    commit_by_others(handle, {"remove": {**last_action(handle, "add"), "dataChange": True, "deletionTimestamp": 0}})
    assert ids(lake, handle) == []


def test_a_hint_that_leads_nowhere_is_passed_over(lake: DeltaConnector, often: TableHandle, tmp_path: Path) -> None:
    for number in range(4):
        append(lake, often, (number, "x"))
    hint = Path(often.location, "_delta_log", "_last_checkpoint")
    for text in ('{"version": 99, "size": 1}', "{", "", '{"version": null, "size": 1}'):
        hint.write_text(text)
        assert ids(open_catalog(tmp_path / "w", None), often) == [0, 1, 2, 3]
    append(lake, often, (4, "x"))
    append(lake, often, (5, "x"))
    assert json.loads(hint.read_text())["version"] == 6


def test_columns_that_delta_changed_are_written_by_trinity(
    lake: DeltaConnector, handle: TableHandle, spark: SparkSession
) -> None:
    append(lake, handle, (1, "a"))
    spark.sql(f"ALTER TABLE delta.`{handle.location}` ADD COLUMN w INT")
    names = lake.metadata.begin_insert(handle).target.storage.names
    append(lake, handle, tuple({"id": 2, "v": "b", "w": 7}.get(name) for name in names))
    assert [c.name for c in lake.metadata.get_table_definition(handle).visible] == ["id", "v", "w"]
    rows = spark.read.format("delta").load(handle.location).select("id", "w").collect()
    assert sorted(tuple(row) for row in rows) == [(1, None), (2, 7)]
