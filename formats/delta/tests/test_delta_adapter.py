"""The Delta adapter, driven through the SPI alone, and what Spark's Delta reader, delta-rs and Polars make of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import delta.tables  # noqa: F401 - Spark then raises Delta's conflicts as other classes
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

import trinity
from tests.support.alter import add_column, set_properties
from trinity.errors import TrinityError
from trinity.spi import (
    Bucket,
    Column,
    ColumnStats,
    CommitResult,
    ConnectorContext,
    DataFile,
    SinkId,
    TableDefinition,
    TableHandle,
    Tier,
    WriteTarget,
    arrival_order,
)
from trinity.storage import CommitRaced
from trinity_delta import DeltaConnector, DeltaFormat, snapshot
from trinity_delta.actions import new_metadata, transaction
from trinity_delta.jvm import DeltaJvm

UTC = dt.UTC
KEYED = TableDefinition(
    "default",
    "t",
    (
        Column("id", "bigint", nullable=False),
        Column("v", "string", comment="the value"),
        Column("_trinity_row_kind", "int"),
    ),
    ("id",),
    properties={"watermark-key": "v"},
)
TYPES: dict[str, Any] = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32767,
    "int": -(2**31),
    "bigint": 2**62,
    "float": 1.5,
    "double": -2.5,
    "decimal(10,2)": Decimal("-12345678.90"),
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "string": "grüße",
    "char(4)": "ab  ",
    "varchar(9)": "abc",
    "binary": b"\x00\xff",
    "date": dt.date(1969, 7, 20),
    "timestamp": dt.datetime(2013, 1, 1, 5, 17, 0, 123456, UTC),
    "timestamp_ntz": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
    "time": 86_399_999_999,
    "array<int>": [1, None, 3],
    "map<string,array<bigint>>": [("a", [1]), ("b", None)],
    "struct<x:int,y:struct<z:string>>": {"x": 1, "y": {"z": "q"}},
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The Spark of the run when there is one, else one with the JARs of all formats."""
    settings = {"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
    return trinity.connect(tmp_path_factory.mktemp("spark"), spark_settings=settings).spark


def open_catalog(warehouse: Path, spark: SparkSession | None) -> DeltaConnector:
    def lend() -> SparkSession:
        assert spark is not None, "no JVM is needed here"
        return spark

    connector = DeltaFormat().create("lake", {"warehouse": str(warehouse)}, ConnectorContext(lend))
    assert isinstance(connector, DeltaConnector)
    return connector


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> DeltaConnector:
    return open_catalog(tmp_path / "w", spark)


@pytest.fixture
def table(lake: DeltaConnector) -> TableHandle:
    return lake.metadata.create_table(KEYED)


def write(lake: DeltaConnector, target: WriteTarget, rows: list[dict[str, Any]], sink: SinkId) -> list[bytes]:
    page_sink = lake.sinks.create_page_sink(target, sink)
    page_sink.append_page(pa.RecordBatch.from_pylist(rows, schema=target.storage))
    return page_sink.finish()


def append(lake: DeltaConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None) -> CommitResult:
    return prepare(lake, table, *rows, txn=txn)()


def prepare(
    lake: DeltaConnector, table: TableHandle, *rows: tuple[Any, ...], txn: Any = None
) -> Callable[[], CommitResult]:
    """An insert that has written its files; the call commits it."""
    insert = lake.metadata.begin_insert(table)
    records = [dict(itertools.zip_longest(insert.target.storage.names, row)) for row in rows]
    fragments = write(lake, insert.target, records, SinkId()) if rows else []
    return lambda: lake.metadata.finish_insert(insert, fragments, txn)


def prepare_merge(lake: DeltaConnector, table: TableHandle, row: int) -> Callable[[], CommitResult]:
    """A row change that has read the table and written a row; the call commits it."""
    merge = lake.metadata.begin_merge(table, {})
    fragments = write(lake, merge.insert.target, [{"id": row}], SinkId())
    return lambda: lake.metadata.finish_merge(merge, [], fragments)


def compact(
    lake: DeltaConnector, table: TableHandle, rows: list[dict[str, Any]], dead: list[dict[str, Any]]
) -> Callable[[], CommitResult]:
    """What the engine does: rewrites all files into one base file and a sidecar."""
    splits = lake.metadata.get_splits(table)
    rewrite = lake.metadata.begin_rewrite(dataclasses.replace(table, version=splits.version), splits.files)
    folded = max(f.commit or 0 for f in splits.files)
    fragments = write(lake, rewrite.target, rows, SinkId(0, Tier.BASE, Bucket(0, 1), folded)) if rows else []
    aside = dataclasses.replace(rewrite.target, folder=f"{table.location}/_trinity")
    fragments += write(lake, aside, dead, SinkId(0, Tier.SIDECAR, None, folded)) if dead else []
    return lambda: lake.metadata.finish_rewrite(rewrite, fragments, replace_sidecar=True)


def stored(lake: DeltaConnector, table: TableHandle) -> list[dict[str, Any]]:
    splits = lake.metadata.get_splits(table)
    return [row for f in splits.files for row in pq.read_table(f.path, schema=splits.storage).to_pylist()]


def ids(lake: DeltaConnector, table: TableHandle) -> list[int]:
    return sorted(row["id"] for row in stored(lake, table))


def code_of(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(TrinityError) as caught:
        call()
    return caught.value.code, caught.value.message


def commit_file(table: TableHandle, version: int) -> Path:
    return Path(table.location, "_delta_log", f"{version:020d}.json")


# -- schemas and tables ------------------------------------------------------------------------------------


def test_names(lake: DeltaConnector, table: TableHandle, tmp_path: Path) -> None:
    lake.metadata.create_schema("sales")
    made = lake.metadata.create_table(dataclasses.replace(KEYED, schema="sales"))
    assert lake.metadata.list_schemas() == ["default", "sales"]
    assert lake.metadata.list_tables("sales") == ["t"]
    assert made.location == str(tmp_path / "w" / "sales" / "t")
    assert code_of(lambda: lake.metadata.create_table(KEYED))[0] == "TABLE_ALREADY_EXISTS"
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(KEYED, schema="x")))[0] == "SCHEMA_NOT_FOUND"
    (tmp_path / "w" / "default" / "half" / "_delta_log").mkdir(parents=True)  # a crash before the first commit
    assert lake.metadata.list_tables("default") == ["t"]
    assert lake.metadata.get_table("default", "half") is None


def test_two_processes_make_one_table(lake: DeltaConnector, tmp_path: Path, spark: SparkSession) -> None:
    location = str(tmp_path / "w" / "default" / "t")
    slow = DeltaJvm(spark).start("t", location)
    table = lake.metadata.create_table(KEYED)
    with pytest.raises(CommitRaced):  # the loop looks again and says TABLE_ALREADY_EXISTS
        slow.create(new_metadata(KEYED, {}))
    append(lake, table, (1, "a"))
    assert ids(lake, table) == [1]


def test_definition_survives(lake: DeltaConnector, tmp_path: Path) -> None:
    columns = tuple(Column(f"C{i}", kind, default="NULL", comment="x") for i, kind in enumerate(TYPES))
    definition = TableDefinition(
        "default",
        "wide",
        (Column("Id", "tinyint", nullable=False), Column("need", "char(3)", nullable=False, default="'abc'"), *columns),
        ("Id",),
        ("Id",),
        {"tombstone-key": "C0", "delta.logRetentionDuration": "interval 60 days"},
    )
    lake.metadata.create_table(definition)
    table = open_catalog(tmp_path / "w", None).metadata.get_table("default", "wide")
    assert table
    assert open_catalog(tmp_path / "w", None).metadata.get_splits(table).definition == definition.numbered()
    refused = definition.with_properties({"delta.columnMapping.mode": "name"})
    code, message = code_of(lambda: lake.metadata.create_table(dataclasses.replace(refused, name="r")))
    assert code == "INVALID_TABLE_PROPERTY"
    assert "delta.columnMapping.mode" in message
    unknown = definition.with_properties({"delta.noSuchThing": "1"})
    assert code_of(lambda: lake.metadata.create_table(dataclasses.replace(unknown, name="u")))[0] == (
        "INVALID_TABLE_PROPERTY"
    )
    assert lake.metadata.list_tables("default") == ["wide"]


def test_every_type_reads_back_everywhere(lake: DeltaConnector, spark: SparkSession) -> None:
    columns = (Column("id", "int", nullable=False), *(Column(f"c{i}", kind) for i, kind in enumerate(TYPES)))
    table = lake.metadata.create_table(TableDefinition("default", "types", columns, ("id",)))
    append(lake, table, (1, *TYPES.values()), (2, *[None] * len(TYPES)))
    splits = lake.metadata.get_splits(table)
    assert [f.name for f in splits.storage] == [c.name for c in columns]
    assert [tuple(r.values()) for r in stored(lake, table)] == [(1, *TYPES.values()), (2, *[None] * len(TYPES))]
    rows = spark.read.format("delta").load(table.location).orderBy("id").toArrow().to_pylist()
    types = list(TYPES)
    for i, (kind, value) in enumerate(TYPES.items()):
        found = rows[0][f"c{i}"]
        assert (dict(found) if kind.startswith("map") else found) == (dict(value) if kind.startswith("map") else value)
        assert rows[1][f"c{i}"] is None
    schema = spark.read.format("delta").load(table.location).schema
    wanted = {"tinyint": "tinyint", "smallint": "smallint", "timestamp_ntz": "timestamp_ntz", "char(4)": "string"}
    for kind, spark_kind in wanted.items():
        assert schema[f"c{types.index(kind)}"].dataType.simpleString() == spark_kind
    by_rs = pa.table(QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT * FROM t").read_all())
    assert by_rs.num_rows == 2
    first = next(r for r in by_rs.to_pylist() if r["id"] == 1)
    assert first["c15"] == TYPES["timestamp_ntz"]
    assert first["c8"] == TYPES["decimal(38,10)"]


# -- appends -----------------------------------------------------------------------------------------------


def test_append_and_commit_numbers(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    assert append(lake, table).version == 0  # nothing to commit
    result = append(lake, table, (1, "a"), (2, "b"))
    assert (result.version, result.rows, result.files, result.skipped) == (1, 2, 1, False)
    append(lake, table, (1, "c"))
    splits = lake.metadata.get_splits(table)
    assert [(f.commit, f.tier, f.rows) for f in splits.files] == [(1, Tier.LOG, 2), (2, Tier.LOG, 1)]
    assert splits.files[0].stats["id"] == ColumnStats(1, 2, 0)
    assert splits.files[0].stats["v"] == ColumnStats("a", "b", 0)
    added = [json.loads(line) for line in commit_file(table, 2).read_text().splitlines()]
    assert [a["add"]["tags"] for a in added if "add" in a] == [{"trinity.tier": "log", "trinity.order": "2"}]
    # the JVM's own view of the version is the same
    rebuilt = open_catalog(Path(table.location).parents[1], spark)
    rebuilt.metadata._snapshots._replay = (  # type: ignore[attr-defined]
        lambda t, states, version: rebuilt.metadata._snapshots._rebuild(t, version)  # type: ignore[attr-defined]
    )
    again = rebuilt.metadata.get_splits(table)
    assert sorted(again.files, key=lambda f: f.name) == sorted(splits.files, key=lambda f: f.name)
    assert (again.definition, again.timestamp_ms) == (splits.definition, splits.timestamp_ms)


def test_a_raced_append_keeps_the_number_of_its_commit(
    lake: DeltaConnector, table: TableHandle, spark: SparkSession
) -> None:
    """Delta rebases a blind append behind other commits; the number is that of the commit that took the file."""
    append(lake, table, (1, "a"))
    fresh = DeltaJvm(spark)
    slow = fresh.start("t", table.location)
    append(lake, table, (2, "b"))
    path = write(lake, lake.metadata.begin_insert(table).target, [{"id": 3}], SinkId())[0]
    file = DataFile.from_dict(json.loads(path))
    raced = {
        "add": {
            "path": file.name, "partitionValues": {}, "size": file.size, "modificationTime": 0, "dataChange": True,
            "stats": '{"numRecords":1}', "tags": {"trinity.tier": "log"},
        }
    }  # fmt: skip
    assert slow.commit([raced], operation="Write") == 3
    assert sorted((f.commit, f.rows) for f in lake.metadata.get_splits(table).files) == [(1, 1), (2, 1), (3, 1)]


def test_txn_is_a_no_op_when_repeated(lake: DeltaConnector, table: TableHandle, tmp_path: Path) -> None:
    assert not append(lake, table, (1, "a"), txn=("app", 5)).skipped
    for version in (5, 4):
        result = append(lake, table, (2, "b"), txn=("app", version))
        assert (result.skipped, result.version, result.rows) == (True, 1, 0)
    assert not append(lake, table, txn=("app", 6)).skipped  # no rows, but the record moves
    assert not append(lake, table, (3, "c"), txn=("other", 1)).skipped
    compact(lake, table, [{"id": 1}, {"id": 3}], [])()
    lake.metadata.vacuum(table, int(time.time() * 1000) + 60_000)
    again = open_catalog(tmp_path / "w", lake.metadata._context.spark())  # type: ignore[attr-defined]
    assert again.metadata.recorded_txn(table, "app") == 6
    assert again.metadata.recorded_txn(table, "nobody") is None
    assert append(again, table, (2, "b"), txn=("app", 6)).skipped
    assert ids(again, table) == [1, 3]


def test_a_concurrent_commit_of_the_same_application_conflicts(
    lake: DeltaConnector, table: TableHandle, spark: SparkSession
) -> None:
    for other, raced in (("app", True), ("another", False)):
        slow = DeltaJvm(spark).start("t", table.location)
        slow.read_txn("app")
        append(lake, table, txn=(other, 1))
        with pytest.raises(CommitRaced) if raced else nullcontext():
            slow.commit([transaction(("app", 2))], operation="Write")
    assert [lake.metadata.recorded_txn(table, name) for name in ("app", "another")] == [2, 1]


def test_a_statement_that_read_refuses_later_rows(lake: DeltaConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    late = prepare_merge(lake, table, 2)
    append(lake, table, (3, "c"))
    assert code_of(late)[0] == "TRANSACTION_CONFLICT"
    late = prepare_merge(lake, table, 4)
    compact(lake, table, [{"id": 1}, {"id": 3}], [])()  # means the same: no conflict
    set_properties(lake, table, {"comment": "x"})
    late()
    assert ids(lake, table) == [1, 3, 4]


def test_concurrent_appends_all_land(lake: DeltaConnector, table: TableHandle, tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            own = open_catalog(tmp_path / "w", lake.metadata._context.spark())  # type: ignore[attr-defined]
            for i in range(3):
                append(own, table, (worker * 10 + i, "x"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(w,)) for w in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    splits = lake.metadata.get_splits(table)
    assert sorted(f.commit or 0 for f in splits.files) == list(range(1, 13))
    assert ids(lake, table) == sorted(w * 10 + i for w in range(4) for i in range(3))
    cold = open_catalog(tmp_path / "w", lake.metadata._context.spark())  # type: ignore[attr-defined]
    assert cold.metadata._snapshots._rebuild(table, 12).files == {  # type: ignore[attr-defined]
        f.name: f for f in splits.files
    }


# -- compaction --------------------------------------------------------------------------------------------


def test_rewrite_concurrent_with_append(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    append(lake, table, (1, "a"), (2, "b"))
    append(lake, table, (2, "c", 3))
    finish = compact(lake, table, [{"id": 1, "v": "a"}], [{"id": 2, "v": "c", "_trinity_row_kind": 3}])
    append(lake, table, (9, "late"))
    assert finish().version == 4
    splits = lake.metadata.get_splits(table)
    found = sorted((f.tier.value, f.commit, f.rows, f.bucket) for f in splits.files)
    assert found == [("base", 2, 1, Bucket(0, 1)), ("log", 3, 1, None)]
    (sidecar,) = splits.sidecar
    assert (sidecar.tier, sidecar.commit, sidecar.rows) == (Tier.SIDECAR, 2, 1)
    assert sidecar.path.startswith(f"{table.location}/_trinity/")
    assert pq.read_table(sidecar.path).column("id").to_pylist() == [2]
    # a second rewrite keeps the sidecar when told so, and other readers never see it
    splits = lake.metadata.get_splits(table)
    log = [f for f in splits.files if f.tier is Tier.LOG]
    rewrite = lake.metadata.begin_rewrite(table, log)
    again = write(lake, rewrite.target, [{"id": 9, "v": "late"}], SinkId(0, Tier.LOG, None, 3))
    lake.metadata.finish_rewrite(rewrite, again, replace_sidecar=False)
    assert lake.metadata.get_splits(table).sidecar == (sidecar,)
    assert spark.read.format("delta").load(table.location).count() == 2
    assert code_of(lambda: lake.metadata.finish_rewrite(rewrite, again, replace_sidecar=False))[0] == (
        "TRANSACTION_CONFLICT"
    )
    compact(lake, table, [{"id": 1}], [])()
    assert lake.metadata.get_splits(table).sidecar == ()


def test_two_rewrites_one_wins(lake: DeltaConnector, table: TableHandle) -> None:
    append(lake, table, (1, "a"))
    append(lake, table, (2, "b"))
    first, second = (compact(lake, table, [{"id": 1}, {"id": 2}], []) for _ in range(2))
    first()
    code, message = code_of(second)
    assert code == "TRANSACTION_CONFLICT"
    assert table.full_name in message
    assert ids(lake, table) == [1, 2]


def test_a_rewrite_that_delta_calls_raced_is_tried_again(
    lake: DeltaConnector, table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process appends between our reload and our commit; Delta refuses, the loop checks and tries again."""
    append(lake, table, (1, "a"))
    finish = compact(lake, table, [{"id": 1}], [{"id": 7}])
    other = prepare(lake, table, (2, "b"))
    monkeypatch.setattr("trinity_delta.commit.commit_loop", _without_lock)
    start = DeltaJvm.start
    raced: list[int] = []

    def start_and_lose(self: DeltaJvm, name: str, location: str) -> Any:
        started = start(self, name, location)
        if not raced:
            raced.append(1)
            commit = type(started).commit

            def late(*args: Any, **kwargs: Any) -> int:
                monkeypatch.setattr(type(started), "commit", commit)
                other()
                return commit(started, *args, **kwargs)

            monkeypatch.setattr(type(started), "commit", lambda _, *args, **kwargs: late(*args, **kwargs))
        return started

    monkeypatch.setattr(DeltaJvm, "start", start_and_lose)
    assert finish().version == 3
    assert sorted((f.tier.value, f.commit) for f in lake.metadata.get_splits(table).files) == [("base", 1), ("log", 2)]


def _without_lock(location: str, attempt: Callable[[], Any], timeout_s: float = 1) -> Any:
    for _ in range(10):
        try:
            return attempt()
        except CommitRaced:
            continue
    raise AssertionError("raced ten times")


# -- versions, care ----------------------------------------------------------------------------------------


def test_time_travel_history_vacuum(lake: DeltaConnector, table: TableHandle, tmp_path: Path) -> None:
    for i in range(1, 4):
        append(lake, table, (i, "x"))
    compact(lake, table, [{"id": i} for i in (1, 2, 3)], [{"id": 8}])()
    append(lake, table, (4, "x"))
    add_column(lake, table, Column("more", "int"))
    for version, wanted in enumerate([[], [1], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]):
        assert ids(lake, dataclasses.replace(table, version=version)) == wanted
    history = lake.metadata.history(table)
    assert [e.version for e in history] == list(range(7))
    assert [e.operation for e in history] == ["create", "append", "append", "append", "compact", "append", "alter"]
    times = [e.timestamp_ms for e in history]
    assert times == sorted(set(times))
    at = dataclasses.replace(table, version=3)
    assert lake.metadata.get_splits(at).timestamp_ms == times[3]
    code, message = code_of(lambda: lake.metadata.get_splits(dataclasses.replace(table, version=99)))
    assert code == "INVALID_ARGUMENTS"
    assert "the newest 6" in message

    orphan = Path(table.location, "orphan.parquet")
    shutil.copy(lake.metadata.get_splits(table).files[0].path, orphan)
    assert lake.metadata.vacuum(table, 1).files == 0  # nothing is that old
    assert orphan.exists()
    for path in Path(table.location).rglob("*.parquet"):
        os.utime(path, (1, 1))
    result = lake.metadata.vacuum(table, times[5] - 1)  # version 4 was the newest one at that time
    assert (result.files, result.oldest_version) == (4, 4)
    assert not orphan.exists()
    assert [e.version for e in lake.metadata.history(table)] == [4, 5, 6, 7]
    assert lake.metadata.history(table)[-1].operation == "vacuum"
    for connector in (lake, open_catalog(tmp_path / "w", None)):
        code, message = code_of(lambda c=connector: c.metadata.get_splits(at))  # type: ignore[misc]
        assert code == "INVALID_ARGUMENTS"
        assert "the oldest readable one is 4" in message
        assert ids(connector, dataclasses.replace(table, version=4)) == [1, 2, 3]
    assert len(lake.metadata.get_splits(table).sidecar) == 1
    assert Path(lake.metadata.get_splits(table).sidecar[0].path).exists()
    assert lake.metadata.vacuum(table, times[5] - 1).files == 0


def test_no_commit_runs_a_spark_job(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    def jobs(work: Callable[[], Any]) -> int:
        group = uuid.uuid4().hex
        spark.sparkContext.setJobGroup(group, "")
        work()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

    def commits() -> None:
        for i in range(12):  # past the tenth, where Delta by itself makes a checkpoint
            append(lake, table, (i, "x"), txn=("app", i))
        add_column(lake, table, Column("more", "int"))
        append(lake, table, (12, "x"))
        compact(lake, table, [{"id": i} for i in range(13)], [{"id": 99}])()
        set_properties(lake, table, {"comment": "hello"})
        prepare_merge(lake, table, 13)()
        lake.metadata.vacuum(table, int(time.time() * 1000) + 60_000)
        lake.metadata.truncate(table)

    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # where Delta checks each commit by a job
    try:
        assert jobs(commits) == 0
        assert jobs(lambda: spark.range(1).collect()) == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    described = spark.sql(f"DESCRIBE HISTORY delta.`{table.location}`").collect()
    assert [r["operation"] for r in sorted(described, key=lambda r: r["version"])][12:] == [
        "WRITE", "UPDATE SCHEMA", "WRITE", "OPTIMIZE", "SET TBLPROPERTIES", "UPDATE", "VACUUM START", "TRUNCATE",
    ]  # fmt: skip


def test_vacuum_leaves_checkpoints(lake: DeltaConnector, tmp_path: Path) -> None:
    table = lake.metadata.create_table(KEYED.with_properties({"delta.checkpointInterval": "3"}))
    for i in range(4):
        append(lake, table, (i, "x"))
    log = Path(table.location, "_delta_log")
    assert list(log.glob("*.checkpoint.parquet"))
    lake.metadata.vacuum(table, int(time.time() * 1000) + 60_000)
    assert list(log.glob("*.checkpoint.parquet"))
    for version in range(3):  # Delta cleans its log up behind a checkpoint
        commit_file(table, version).unlink()
    DeltaJvm(lake.metadata._context.spark()).forget(table.location)  # type: ignore[attr-defined]
    cold = open_catalog(tmp_path / "w", lake.metadata._context.spark())  # type: ignore[attr-defined]
    assert ids(cold, table) == list(range(4))
    assert sorted(f.commit or 0 for f in cold.metadata.get_splits(table).files) == list(range(1, 5))


def test_add_column_and_properties(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    append(lake, table, (1, "a"))
    add_column(lake, table, Column("Extra", "varchar(5)", comment="new"))
    set_properties(lake, table, {"comment": "hello", "delta.checkpointInterval": "50"})
    append(lake, table, (2, "b", "e"))
    definition = lake.metadata.get_splits(table).definition
    assert [c.name for c in definition.columns] == ["id", "v", "Extra", "_trinity_row_kind"]
    assert definition.properties["comment"] == "hello"
    assert definition.properties["watermark-key"] == "v"
    found = spark.read.format("delta").load(table.location)
    assert found.columns == ["id", "v", "Extra", "_trinity_row_kind"]
    assert [tuple(r) for r in found.orderBy("id").collect()] == [(1, "a", None, None), (2, "b", "e", None)]
    shown = spark.sql(f"SHOW TBLPROPERTIES delta.`{table.location}`").collect()
    assert ("delta.checkpointInterval", "50") in [(r[0], r[1]) for r in shown]
    code, message = code_of(lambda: set_properties(lake, table, {"delta.isolationLevel": "WriteSerializable"}))
    assert code == "INVALID_TABLE_PROPERTY"
    assert "Serializable" in message


def test_restart_and_recreate(lake: DeltaConnector, table: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, table, (1, "a"))
    other = open_catalog(tmp_path / "w", spark)
    assert other.metadata.get_splits(table) == lake.metadata.get_splits(table)
    other.metadata.drop_table(table)
    assert not Path(table.location).exists()
    made = other.metadata.create_table(dataclasses.replace(KEYED, columns=(*KEYED.columns, Column("w", "int"))))
    append(other, made, (5, "e"))
    assert ids(lake, table) == [5]  # the connector that remembered the dropped table
    append(lake, table, (6, "f"))
    assert ids(other, made) == [5, 6]
    assert len(lake.metadata.get_splits(table).definition.columns) == 4


def test_dropped_meanwhile(lake: DeltaConnector, table: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, table, (1, "a"))
    late = prepare(lake, table, (2, "b"))
    rewrite = compact(lake, table, [{"id": 1}], [])
    shutil.rmtree(table.location)
    for call in (
        late,
        rewrite,
        lambda: lake.metadata.get_splits(table),
        lambda: lake.metadata.history(table),
        lambda: lake.metadata.drop_table(table),
        lambda: lake.metadata.vacuum(table, 0),
        lambda: set_properties(lake, table, {"comment": "x"}),
    ):
        code, message = code_of(call)
        assert code == "TABLE_NOT_FOUND"
        assert "lake.default.t" in message
    assert lake.metadata.get_table("default", "t") is None
    assert not Path(table.location, "_delta_log").exists()


def test_bad_data(lake: DeltaConnector, table: TableHandle, tmp_path: Path, spark: SparkSession) -> None:
    append(lake, table, (1, "a"))
    append(lake, table, (2, "b"))
    commit_file(table, 1).write_text('{"add": {"path"')
    code, message = code_of(lambda: open_catalog(tmp_path / "w", spark).metadata.get_splits(table))
    assert code == "BAD_DATA"
    assert str(commit_file(table, 1)) in message
    commit_file(table, 1).unlink()
    DeltaJvm(spark).forget(table.location)
    code, message = code_of(lambda: open_catalog(tmp_path / "w", spark).metadata.get_splits(table))
    assert code == "BAD_DATA"
    assert table.location in message


# -- other engines -----------------------------------------------------------------------------------------


def test_other_readers(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    append(lake, table, (1, "a"), (2, "b"))
    append(lake, table, (2, "c"), (3, None))
    compact(lake, table, [{"id": 1, "v": "a"}, {"id": 2, "v": "c"}], [{"id": 3}])()
    wanted = [(1, "a"), (2, "c")]
    frame = spark.read.format("delta").load(table.location).select("id", "v")
    assert sorted(map(tuple, frame.collect())) == wanted
    assert frame.where("id = 2").count() == 1
    assert frame.where("v > 'b'").count() == 1
    opened = DeltaTable(table.location)
    by_query = pa.table(QueryBuilder().register("t", opened).execute("SELECT id, v FROM t ORDER BY id").read_all())
    assert [tuple(r.values()) for r in by_query.to_pylist()] == wanted
    by_arrow = opened.to_pyarrow_table(columns=["id", "v"]).to_pylist()
    assert sorted(tuple(r.values()) for r in by_arrow) == wanted
    assert sorted(pl.read_delta(table.location).select("id", "v").rows()) == wanted
    old = DeltaTable(table.location, version=1).to_pyarrow_table(columns=["id"])
    assert sorted(old["id"].to_pylist()) == [1, 2]
    assert spark.read.format("delta").option("versionAsOf", 2).load(table.location).count() == 4


def test_pruning_by_other_readers_is_right(lake: DeltaConnector, spark: SparkSession) -> None:
    columns = (
        Column("id", "timestamp", nullable=False),
        Column("n", "timestamp_ntz", nullable=False),
        Column("d", "decimal(30,4)", nullable=False),
        Column("f", "double", nullable=False),
        Column("s", "string", nullable=False),
        Column("t", "time", nullable=False),
        Column("day", "date", nullable=False),
    )
    table = lake.metadata.create_table(TableDefinition("default", "p", columns, tuple(c.name for c in columns)))
    at = dt.datetime(2024, 2, 3, 4, 5, 6, 123456)
    big = Decimal("12345678901234567890123456.0001")
    row = (at.replace(tzinfo=UTC), at, big, float("nan"), "x" * 40, 5, dt.date(2024, 2, 3))
    append(lake, table, row, (*row[:3], 1.0, *row[4:]))
    (file,) = lake.metadata.get_splits(table).files
    assert file.stats["d"].max == big
    assert file.stats["id"].min is not None
    assert file.stats["id"].min <= row[0] <= file.stats["id"].max
    assert file.stats["n"].min <= at <= file.stats["n"].max
    assert file.stats["day"] == ColumnStats(row[6], row[6], 0)
    assert file.stats["s"].max is None
    frame = spark.read.format("delta").load(table.location)
    conditions = (
        "id = TIMESTAMP '2024-02-03 04:05:06.123456 UTC'",
        "n >= TIMESTAMP_NTZ '2024-02-03 04:05:06.123456'",
        f"d = {big}",
        "d > 12345678901234567890123456.0000",
        "s >= repeat('x', 40)",
        "t = 5",
        "day = DATE '2024-02-03'",
        "f >= 1",
    )
    for condition in conditions:
        assert frame.where(condition).count() == 2, condition
    (added,) = [json.loads(line)["add"] for line in commit_file(table, 1).read_text().splitlines() if '"add"' in line]
    bounds = json.loads(added["stats"])
    assert not any("f" in known for known in bounds.values() if isinstance(known, dict))  # NaN is in no bounds


def test_commits_are_what_delta_calls_them(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    """After these operations Delta adds a commit to the state it knows, and writes the sum of that beside the log."""
    append(lake, table, (1, "a"), (2, "b"))
    append(lake, table, (3, "c"))
    compact(lake, table, [{"id": i} for i in (1, 2, 3)], [])()
    lake.metadata.truncate(table)
    said = [row.operation for row in spark.sql(f"DESCRIBE HISTORY delta.`{table.location}`").collect()]
    assert said[::-1] == ["CREATE TABLE", "WRITE", "WRITE", "OPTIMIZE", "TRUNCATE"]
    assert [e.operation for e in lake.metadata.history(table)][3:] == ["compact", "truncate"]
    for version in range(5):
        files = lake.metadata.get_splits(dataclasses.replace(table, version=version)).files
        known = json.loads(commit_file(table, version).with_suffix(".crc").read_text())
        assert (known["numFiles"], known["tableSizeBytes"]) == (len(files), sum(f.size for f in files))


def test_another_engine_writes(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    append(lake, table, (1, "a"))
    columns = "id bigint, v string, _trinity_row_kind int"
    spark.createDataFrame([(7, "spark", None)], columns).coalesce(1).write.format("delta").mode("append").save(
        table.location
    )
    append(lake, table, (2, "b"))
    found = [(f.tier, f.commit, f.rows) for f in lake.metadata.get_splits(table).files]
    assert sorted(found, key=lambda f: f[1] or 0) == [(Tier.LOG, 1, 1), (Tier.LOG, 2, 1), (Tier.LOG, 3, 1)]
    assert ids(lake, table) == [1, 2, 7]
    spark.sql(f"OPTIMIZE delta.`{table.location}`")
    assert ids(lake, table) == [1, 2, 7]
    assert lake.metadata.history(table)[-1].operation == "optimize"
    spark.sql(f"DELETE FROM delta.`{table.location}` WHERE id = 7")
    assert ids(lake, table) == [1, 2]
    append(lake, table, (8, "z"))
    assert ids(lake, table) == [1, 2, 8]


def test_a_feature_that_trinity_does_not_read(lake: DeltaConnector, table: TableHandle, spark: SparkSession) -> None:
    spark.sql(f"ALTER TABLE delta.`{table.location}` SET TBLPROPERTIES ('delta.feature.variantType' = 'supported')")
    for call in (lambda: lake.metadata.get_splits(table), lambda: lake.metadata.begin_insert(table)):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert "variantType" in message
    assert lake.metadata.get_splits(dataclasses.replace(table, version=0)).version == 0


def commit_by_others(table: TableHandle, *actions: dict[str, Any], operation: str = "ALTER") -> None:
    """The next commit, as another engine writes it."""
    log = sorted(Path(table.location, "_delta_log").glob("*.json"))
    now = int(time.time() * 1000) + 1000
    said = {"operation": operation, "operationParameters": {}}
    info = {"commitInfo": {"timestamp": now, "inCommitTimestamp": now, **said}}
    lines = "\n".join(json.dumps(a) for a in (info, *actions))
    log[-1].with_name(f"{len(log):020d}.json").write_text(lines)


def last_action(table: TableHandle, kind: str) -> Any:
    """The newest action of a kind in the log."""
    files = sorted(Path(table.location, "_delta_log").glob("*.json"))
    return [a[kind] for f in files for a in map(json.loads, f.read_text().splitlines()) if kind in a][-1]


def with_fields(table: TableHandle, *fields: dict[str, Any], without: str | None = None) -> dict[str, Any]:
    """The ``metaData`` action with other fields first, and without one."""
    metadata = last_action(table, "metaData")
    present = [f for f in json.loads(metadata["schemaString"])["fields"] if f["name"] != without]
    return {"metaData": {**metadata, "schemaString": json.dumps({"type": "struct", "fields": [*fields, *present]})}}


def test_a_column_of_others_is_the_tables(lake: DeltaConnector, table: TableHandle) -> None:
    old = append(lake, table, (1, "a")).version
    for name in ("extra", "first"):  # the younger one comes to stand before the older
        added = {"name": name, "type": "integer", "nullable": True, "metadata": {"comment": "theirs"}}
        commit_by_others(table, with_fields(table, added))
        append(lake, table, *([(7, 2, "b")] if name == "extra" else [(8, 9, 3, "c")]))
    definition = lake.metadata.get_splits(table).definition
    assert [(c.name, c.field_id) for c in definition.visible] == [("first", 4), ("extra", 3), ("id", 1), ("v", 2)]
    assert definition.column("extra").comment == "theirs"
    rows = [{k: v for k, v in row.items() if k[0] != "_"} for row in stored(lake, table)]
    assert rows == [
        {"first": None, "extra": None, "id": 1, "v": "a"},
        {"first": None, "extra": 7, "id": 2, "v": "b"},
        {"first": 8, "extra": 9, "id": 3, "v": "c"},
    ]
    compact(lake, table, rows, [])()
    assert [r["extra"] for r in stored(lake, table)] == [None, 7, 9]
    assert DeltaTable(table.location).to_pyarrow_table()["first"].to_pylist() == [None, None, 8]
    assert (
        lake.metadata.get_splits(dataclasses.replace(table, version=old)).definition.visible == definition.visible[2:]
    )


def test_deletion_vectors_are_refused_alike(lake: DeltaConnector, table: TableHandle) -> None:
    first = append(lake, table, (1, "a"), (2, "b")).version
    begun = prepare(lake, table, (3, "c"))
    added = last_action(table, "add")
    inline = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 40, "cardinality": 1}
    features = {"readerFeatures": ["deletionVectors"], "minReaderVersion": 3}
    protocol = last_action(table, "protocol")
    written = {"writerFeatures": [*protocol["writerFeatures"], "deletionVectors"]}
    commit_by_others(table, {"protocol": {**protocol, **features, **written}})
    assert len(lake.metadata.get_splits(table).files) == 1  # the feature alone does no harm
    gone = {"remove": {"path": added["path"], "dataChange": True, "deletionTimestamp": 1}}
    commit_by_others(table, gone, {"add": {**added, "deletionVector": vector}})
    for call in (
        lambda: lake.metadata.get_splits(table),
        lambda: lake.metadata.begin_insert(table),
        lambda: lake.metadata.begin_merge(table, {}),
        lambda: lake.metadata.begin_rewrite(table, ()),
        begun,
        lambda: lake.metadata.truncate(table),
        lambda: set_properties(lake, table, {"bucket": "4"}),
    ):
        code, message = code_of(call)
        assert code == "NOT_SUPPORTED"
        assert "APPLY (PURGE)" in message
    assert len(lake.metadata.get_splits(dataclasses.replace(table, version=first)).files) == 1
    commit_by_others(table, {"remove": {**gone["remove"], "deletionVector": vector}})
    assert lake.metadata.get_splits(table).files == ()
    append(lake, table, (4, "d"))
    assert [r["id"] for r in stored(lake, table)] == [4]


def test_changes_of_rows_that_are_folded_from_others_are_refused(
    lake: DeltaConnector, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (*KEYED.columns, Column("_trinity_carried", "string"))
    properties = {"merge-engine": "partial-update", "sequence.field": "v"}
    table = lake.metadata.create_table(dataclasses.replace(KEYED, columns=columns, properties=properties))
    append(lake, table, (1, "a"), (2, "b"))
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    compact(lake, table, rows, rows)()
    base = last_action(table, "add")
    kept = append(lake, table, (3, "c")).version
    added = last_action(table, "add")
    gone = {k: v for k, v in added.items() if k in ("path", "partitionValues", "size", "tags")}
    commit_by_others(table, {"remove": {**gone, "dataChange": True, "deletionTimestamp": 1}})  # was not compacted
    assert len(lake.metadata.get_splits(table).files) == 1
    gone |= {"path": base["path"], "tags": base["tags"]}
    commit_by_others(table, {"remove": {**gone, "dataChange": True, "deletionTimestamp": 1}})
    monkeypatch.setattr(snapshot, "_MOST_REPLAYED", 0)
    for known in (lake, open_catalog(tmp_path / "w", spark)):  # which has the version from a checkpoint
        for call in (
            lambda lake=known: lake.metadata.get_splits(table),
            lambda lake=known: lake.metadata.begin_insert(table),
            lambda lake=known: lake.metadata.begin_merge(table, {}),
            lambda lake=known: lake.metadata.begin_rewrite(table, ()),
        ):
            code, message = code_of(call)
            assert code == "NOT_SUPPORTED"
            assert "RESTORE TABLE" in message
    assert len(lake.metadata.get_splits(dataclasses.replace(table, version=kept)).files) == 2
    restored = ({"add": {**a, "dataChange": True}} for a in (base, added))
    commit_by_others(table, *restored, operation="RESTORE")
    files = sorted(lake.metadata.get_splits(table).files, key=arrival_order)
    assert [(f.tier, f.commit) for f in files] == [(Tier.BASE, 1), (Tier.LOG, 3)]
    append(lake, table, (4, "d"))
    assert ids(lake, table) == [1, 2, 3, 4]


def test_a_column_that_others_dropped_and_rows_need(lake: DeltaConnector, table: TableHandle) -> None:
    old = append(lake, table, (1, "a")).version
    append(lake, table, (1, "b"))
    before = {"metaData": last_action(table, "metaData")}
    for column, role in (("v", "the watermark"), ("_trinity_row_kind", "Trinity's own")):
        commit_by_others(table, with_fields(table, without=column))
        for call in (lambda: lake.metadata.get_splits(table), lambda: lake.metadata.begin_insert(table)):
            code, message = code_of(call)
            assert code == "NOT_SUPPORTED"
            assert f"'{column}', which is {role}" in message
        assert lake.metadata.get_splits(dataclasses.replace(table, version=old)).version == old
        commit_by_others(table, before)


def test_no_delta_in_spark(tmp_path: Path) -> None:
    class Thread:
        @staticmethod
        def currentThread() -> Any:  # noqa: N802
            raise RuntimeError("java.lang.ClassNotFoundException: org.apache.spark.sql.delta.DeltaLog$")

    class Spark:
        _jvm = SimpleNamespace(**{"java.lang.Thread": Thread})
        _jsparkSession = None  # noqa: N815

    lake = open_catalog(tmp_path / "w", Spark())  # type: ignore[arg-type]
    code, message = code_of(lambda: lake.metadata.create_table(KEYED))
    assert code == "CONFIGURATION_INVALID"
    assert "delta-spark" in message
