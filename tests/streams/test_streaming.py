"""Streams into tables: a micro-batch is one commit, exactly once, across restarts and replays (L4)."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.support.changes import rows_at
from tests.support.put_back import Backup
from trinity import Column, Session, Table, TrinityError, cdc
from trinity.engine.compacting.after_commit import THREAD, compact_newest
from trinity.engine.streaming import background
from trinity.merge.compaction_strength import Strength

pytestmark = pytest.mark.inner

Row = dict[str, Any]


@dataclass
class Source:
    """A folder of JSON files, one for each micro-batch, and the checkpoint of a stream over it."""

    spark: SparkSession
    folder: Path
    schema: str = "id INT, ts BIGINT, n INT"
    files: int = 0

    @property
    def checkpoint(self) -> Path:
        return self.folder.parent / "checkpoint"

    def put(self, name: str, *rows: Row) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / name).write_text("\n".join(map(json.dumps, rows)))
        self.files += 1
        os.utime(self.folder / name, (self.files, self.files))  # Spark takes them in this order

    def frame(self) -> DataFrame:
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.folder))

    def run(self, table: Table, **options: Any) -> Any:
        """Stream all available rows."""
        given = {"checkpoint": self.checkpoint, "available_now": True, **options}
        query = table.stream_writer(self.frame(), **given)
        query.awaitTermination()
        assert not query.isActive
        return query

    def refused(self, table: Table, **options: Any) -> str:
        """Return the message of the error that ends a stream."""
        with pytest.raises(StreamingQueryException) as raised:
            self.run(table, **options)
        return str(raised.value)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path / "input")


@pytest.fixture
def keyed(session: Session, tiered_fmt: str) -> Table:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (id INT PRIMARY KEY, ts BIGINT, n INT) "
        "TBLPROPERTIES ('watermark-key' = 'ts')"
    )
    return session.table(f"{tiered_fmt}.default.t")


@pytest.fixture
def plain(session: Session, tiered_fmt: str) -> Table:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.p (id INT, ts BIGINT, n INT)")
    return session.table(f"{tiered_fmt}.default.p")


@pytest.fixture
def stream_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, "trinity.streaming"):
        yield caplog


def row(key: int, ts: int, n: int = 0) -> Row:
    return {"id": key, "ts": ts, "n": n}


def versions(table: Table) -> int:
    return len(table.connector.metadata.history(table.handle))


def test_a_batch_is_a_commit(source: Source, keyed: Table, stream_log: pytest.LogCaptureFixture) -> None:
    before = versions(keyed)
    source.put("1.json", row(1, 10, 1), row(2, 10, 1))
    source.put("2.json", row(1, 20, 2), row(2, 5, 2))
    query = source.run(keyed, query_name="orders")
    assert query.name == "orders"
    assert rows_at(keyed) == {(1, 20, 2): 1, (2, 10, 1): 1}
    assert versions(keyed) == before + 2
    assert [tuple(p.observedMetrics["trinity"]) for p in query.recentProgress] == [(2, 10), (2, 20)]
    assert re.search(r"2 rows, .*newest ts 20", stream_log.messages[-1])
    source.put("3.json", row(3, 30, 3))
    source.put("4.json")
    again = source.run(keyed)  # the checkpoint is reused, and a batch without rows is not committed
    assert (again.id, versions(keyed)) == (query.id, before + 3)
    source.put("5.json", {**row(4, 40), "more": "new"})
    source.schema += ", more STRING"
    source.run(keyed, evolve=True)
    assert rows_at(keyed) == {(1, 20, 2, None): 1, (2, 10, 1, None): 1, (3, 30, 3, None): 1, (4, 40, 0, "new"): 1}


def test_a_batch_that_spark_has_not_noted_is_not_written_twice(
    source: Source, plain: Table, stream_log: pytest.LogCaptureFixture
) -> None:
    source.put("1.json", row(1, 1))
    source.put("2.json", row(2, 2))
    query = source.run(plain)
    (source.checkpoint / "commits" / "1").unlink()  # as a kill between the two commits leaves it
    (source.checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    source.put("3.json", row(3, 3))
    assert source.run(plain).id == query.id
    assert rows_at(plain) == {(1, 1, 0): 1, (2, 2, 0): 1, (3, 3, 0): 1}
    assert any(re.search("batch 1 .* committed before", message) for message in stream_log.messages)
    # another stream of the same rows has its own number
    source.run(plain, checkpoint=source.folder.parent / "another")
    assert rows_at(plain) == {(1, 1, 0): 2, (2, 2, 0): 2, (3, 3, 0): 2}


def test_a_crash_while_the_first_batch_is_planned_does_not_spoil_the_checkpoint(source: Source, plain: Table) -> None:
    source.put("1.json", row(1, 1))
    offsets = source.checkpoint / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.9b753c21-e00f-48e8-869e-9802b0c32316.tmp").touch()  # as a kill leaves it
    source.run(plain)
    assert rows_at(plain) == {(1, 1, 0): 1}


def test_a_checkpoint_put_back_loses_no_rows_in_silence(source: Source, plain: Table) -> None:
    source.put("1.json", row(1, 1))
    source.run(plain)
    shutil.copytree(source.checkpoint, copy := source.folder.parent / "copy")
    source.put("2.json", row(2, 2))
    source.run(plain)
    source.put("3.json", row(3, 3))
    done = rows_at(plain)
    message = source.refused(plain, checkpoint=copy)
    assert re.search(r"\[INVALID_ARGUMENTS\] .* is a copy of another one", message)
    assert rows_at(plain) == done == {(1, 1, 0): 1, (2, 2, 0): 1}
    source.run(plain)
    assert rows_at(plain) == {**done, (3, 3, 0): 1}


@pytest.mark.full
def test_a_table_put_back_under_a_stream_loses_no_batch_in_silence(
    session: Session, source: Source, tiered_fmt: str, tmp_path: Path
) -> None:
    table = session.create_table(f"{tiered_fmt}.default.t", [Column("id", "int")])
    source.schema = "id INT"
    source.put("1.json", {"id": 1})
    query = table.stream_writer(source.frame(), checkpoint=source.checkpoint, processing_time="0 seconds")
    try:
        query.processAllAvailable()
        backup = Backup.of(table, tmp_path / "copy")
        source.put("2.json", {"id": 2})
        query.processAllAvailable()
        source.put("empty.json")
        query.processAllAvailable()  # a batch without rows is not recorded
        backup.put_back()
        source.put("3.json", {"id": 3})
        with pytest.raises(StreamingQueryException, match=r"\[INVALID_ARGUMENTS\] .* was put back to an earlier state"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert table.to_arrow()["id"].to_pylist() == [1]


def test_a_lost_checkpoint_delivers_all_again(source: Source, keyed: Table) -> None:
    source.put("1.json", row(1, 10, 1))
    source.run(keyed)
    source.put("2.json", row(1, 20, 2))
    source.run(keyed)
    before = versions(keyed)
    shutil.rmtree(source.checkpoint)
    source.run(keyed)
    assert versions(keyed) == before + 2
    assert rows_at(keyed) == {(1, 20, 2): 1}  # by their watermarks


def test_a_refused_batch_ends_the_query(source: Source, keyed: Table) -> None:
    source.put("1.json", row(1, 1))
    source.put("2.json", row(2, 2), {"ts": 3})
    source.put("3.json", row(3, 3))
    message = source.refused(keyed)
    assert re.search(r"\[CONSTRAINT_VIOLATION\] .*column 'id'", message)
    assert rows_at(keyed) == {(1, 1, 0): 1}
    source.put("2.json", row(2, 2))
    source.run(keyed)
    assert rows_at(keyed) == {(1, 1, 0): 1, (2, 2, 0): 1, (3, 3, 0): 1}


def test_a_transform_makes_the_rows_of_each_batch(source: Source, session: Session) -> None:
    session.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, state STRING, lsn BIGINT, kind STRING) "
        "TBLPROPERTIES ('watermark-key' = 'lsn', 'rowkind.field' = 'kind')"
    )
    orders = session.table("orders")
    source.schema = "value STRING"

    def event(op: str, key: int, lsn: int, state: str) -> Row:
        found = {"op": op, "before" if op == "d" else "after": {"id": key, "state": state}, "source": {"lsn": lsn}}
        return {"value": json.dumps(found)}

    source.put("1.json", event("c", 1, 1, "new"), event("c", 2, 2, "new"))
    source.put("2.json", event("u", 1, 3, "paid"), event("d", 2, 4, "new"))
    source.run(orders, transform=lambda batch: cdc.debezium(batch, orders))
    assert rows_at(orders) == {(1, "paid", 3, "+U"): 1}
    source.put("3.json", {"value": "{}"})
    assert "transform" in source.refused(orders, transform=lambda batch: batch.count())


def test_a_compaction_runs_beside_the_stream(
    source: Source, keyed: Table, monkeypatch: pytest.MonkeyPatch, stream_log: pytest.LogCaptureFixture
) -> None:
    begun, release = list[int](), threading.Event()

    def slow(table: Table, strength: Strength, every: int) -> Any:
        begun.append(1)
        assert release.wait(60)
        return compact_newest(table, strength, every)

    monkeypatch.setattr(background, "compact_newest", slow)
    for n in range(6):
        source.put(f"{n}.json", row(n % 2, n, n))
    source.run(keyed, compact_every=2)
    assert begun == [1]  # one compaction at a time; the stream ends meanwhile
    release.set()
    for thread in threading.enumerate():
        if thread.name == f"{THREAD} {keyed.name}":
            thread.join()
    assert rows_at(keyed) == {(0, 4, 4): 1, (1, 5, 5): 1}
    assert any("compact" in message for message in stream_log.messages)


def test_a_lost_race_of_compactions_is_no_error(keyed: Table, stream_log: pytest.LogCaptureFixture) -> None:
    compactor = background.BackgroundCompactor(keyed, 1)
    compactor._report(TrinityError("TRANSACTION_CONFLICT", "others"))
    compactor._report(TrinityError("BAD_DATA", "a file"))
    assert [record.levelname for record in stream_log.records] == ["INFO", "WARNING"]


def test_what_is_no_stream_is_refused(source: Source, keyed: Table, spark: SparkSession) -> None:
    source.put("1.json", row(1, 1))
    frame, folder = source.frame(), source.checkpoint
    still = spark.sql("SELECT 1 AS id")
    calls: list[tuple[str, DataFrame, dict[str, Any]]] = [
        ("readStream", still, {"checkpoint": folder}),
        ("checkpoint", frame, {}),
        ("checkpoint", frame, {"checkpoint": " "}),
        ("not both", frame, {"checkpoint": folder, "available_now": True, "processing_time": "1 second"}),
        ("compact_every", frame, {"checkpoint": folder, "compact_every": 0}),
        ("soon", frame, {"checkpoint": folder, "processing_time": "soon"}),
    ]
    for stream_log, given, options in calls:
        with pytest.raises(TrinityError, match=stream_log) as raised:
            keyed.stream_writer(given, **options)
        assert raised.value.code == "INVALID_ARGUMENTS"
    for wrong, code in (("nn", "COLUMN_NOT_FOUND"), ("n", "TYPE_MISMATCH")):
        with pytest.raises(TrinityError) as raised:
            keyed.stream_writer(frame.selectExpr("id", f"array(ts) AS {wrong}"), checkpoint=folder)
        assert raised.value.code == code
    assert not folder.exists()
