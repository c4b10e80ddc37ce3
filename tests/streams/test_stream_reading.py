"""Streams from tables: rows, then changes, by versions that Spark's checkpoint has durably (C7)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.changes import Change, feed, rows_at
from tests.support.edges import COLUMNS, edges
from tests.support.tables import put
from trinity import Column, Session, Table

KEYED = "(id INT PRIMARY KEY, ts BIGINT, n STRING) TBLPROPERTIES ('watermark-key' = 'ts')"


@dataclass
class Reader:
    """A stream of a table, with a checkpoint, which collects its batches in a list."""

    spark: SparkSession
    table: Table
    checkpoint: Path
    batches: list[Counter[Change]] = field(default_factory=list)

    def load(self, **options: Any) -> DataFrame:
        return self.spark.readStream.format("trinity").options(table=str(self.table.name), **options).load()

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(self._take)
        return writer.trigger(**trigger).start()

    def run(self, frame: DataFrame | None = None, **options: Any) -> list[Counter[Change]]:
        """Stream all available rows, and return the batches of this run."""
        before = len(self.batches)
        self.start(self.load(**options) if frame is None else frame, availableNow=True).awaitTermination()
        return self.batches[before:]

    def refused(self, frame: DataFrame | None = None, **options: Any) -> str:
        with pytest.raises(StreamingQueryException) as raised:
            self.run(frame, **options)
        return str(raised.value)

    def _take(self, batch: DataFrame, number: int) -> None:
        self.batches.append(changes_of(batch))


def changes_of(frame: DataFrame) -> Counter[Change]:
    rows = [row.asDict() for row in frame.collect()]
    assert all(row["_commit_timestamp"] for row in rows)
    names = [name for name in frame.columns if name[0] != "_"]
    return Counter((r["_change_type"], r["_commit_version"], tuple(r[name] for name in names)) for r in rows)


@pytest.fixture
def table(session: Session, tiered_fmt: str) -> Table:
    session.sql(f"CREATE TABLE {tiered_fmt}.default.t {KEYED}")
    return session.table(f"{tiered_fmt}.default.t")


@pytest.fixture
def reader(spark: SparkSession, table: Table, tmp_path: Path) -> Reader:
    return Reader(spark, table, tmp_path / "checkpoint")


def inserts(version: int, *rows: tuple[Any, ...]) -> Counter[Change]:
    return Counter(("insert", version, row) for row in rows)


@pytest.mark.full
def test_rows_then_changes_across_restarts(reader: Reader, table: Table) -> None:
    put(table, (1, 1, "a"), (2, 1, "b"))
    begun = put(table, (1, 2, "c"))
    assert reader.run() == [inserts(begun, (1, 2, "c"), (2, 1, "b"))]
    put(table, (2, 0, "late"), (3, 1, "d"))
    table.compact(full=True)
    table.delete([{"id": 1}])
    last = put(table, (2, 3, "e"))
    assert reader.run() == [feed(table, begun, last)]
    offsets = sorted((reader.checkpoint / "offsets").glob("[0-9]"))
    assert [re.findall(r'"version": ?(\d+)', path.read_text())[-1] for path in offsets] == [str(begun), str(last)]
    # the batch is repeated, as if the process had ended before Spark recorded it; later rows are read as well
    (reader.checkpoint / "commits" / "1").unlink()
    (reader.checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    newer = put(table, (4, 1, "f"))
    assert reader.run() == [feed(table, begun, last), feed(table, last, newer)]


@pytest.mark.full
def test_beginnings_and_limits(reader: Reader, table: Table, tmp_path: Path) -> None:
    versions = [put(table, (n, n, "x")) for n in range(5)]
    query = reader.start(reader.load(startingVersion=versions[1], maxVersionsPerTrigger=2), processingTime="0 seconds")
    query.processAllAvailable()
    assert reader.batches == [feed(table, versions[0], versions[2]), feed(table, versions[2], versions[4])]
    versions += [put(table, (9, n, "y")) for n in (1, 2, 3)]
    query.processAllAvailable()
    query.stop()
    later = reader.batches[2:]
    assert max(len({version for _, version, _ in batch}) for batch in later) <= 2
    assert sum(later, Counter()) == feed(table, versions[4], versions[7])
    # all available rows are read, whatever the limit; the start is the checkpoint's
    versions += [put(table, (9, n, "z")) for n in (11, 12, 13)]
    assert reader.run(startingVersion=99, maxVersionsPerTrigger=1) == [feed(table, versions[7], versions[10])]
    since = Reader(reader.spark, table, tmp_path / "since")
    at = str(table.history().where(f"version = {versions[4]}").first().timestamp)
    assert since.run(startingTimestamp=at) == [feed(table, versions[3], versions[10])]
    newest = Reader(reader.spark, table, tmp_path / "newest")
    assert newest.run(startingVersion="latest") == [Counter()]
    assert newest.run(startingVersion="latest") == []
    assert [feed(table, versions[10], put(table, (9, 99, "a")))] == newest.run(startingVersion="latest")
    assert "startingTimestamp is after the newest" in Reader(reader.spark, table, tmp_path / "x").refused(
        startingTimestamp="2999-01-01"
    )


@pytest.mark.full
def test_a_vacuumed_version_is_named(reader: Reader, table: Table) -> None:
    begun = put(table, (1, 1, "a"))
    reader.run()
    put(table, (2, 1, "b"))
    table.compact(full=True)
    put(table, (3, 1, "c"))
    oldest = table.vacuum("0 seconds").oldest_version
    assert oldest > begun + 1
    message = reader.refused()
    assert re.search(rf"no version {begun} any more.* vacuumed.*oldest version still readable is {oldest}", message)
    assert "[INVALID_ARGUMENTS]" in message


@pytest.mark.full
def test_rows_of_the_last_full_compaction_where_the_changes_begin_there(reader: Reader, table: Table) -> None:
    table.set_properties({"changelog-producer": "full-compaction"})
    put(table, (1, 1, "a"))
    begun = table.compact(full=True).version
    put(table, (1, 2, "b"), (2, 1, "c"))
    assert reader.run() == [inserts(begun, (1, 1, "a"))]
    put(table, (1, 3, "d"))
    last = table.compact(full=True).version
    changes: Counter[Change] = Counter()
    changes["update_preimage", last, (1, 1, "a")] = changes["update_postimage", last, (1, 3, "d")] = 1
    changes["insert", last, (2, 1, "c")] = 1
    assert reader.run() == [changes]


@pytest.mark.full
def test_columns_that_change(reader: Reader, table: Table) -> None:
    put(table, (1, 1, "a"))
    frame, kept = reader.load(), reader.load(onSchemaChange="ignore")
    begun = put(table, (2, 1, "b"))
    table.add_column(Column("x", "int"))
    table.rename_column("n", "name")
    table.widen_column("id", "bigint")
    assert "have changed" in reader.refused(frame)
    [rows] = reader.run(kept)
    assert sorted(row for _, _, row in rows) == [(1, 1, "a"), (2, 1, "b")]
    table.drop_column("name")
    version = table.upsert(pa.table({"id": pa.array([3]), "ts": [5], "x": pa.array([7], pa.int32())})).version
    assert version > begun
    assert reader.run(kept) == [inserts(version, (3, 5, None))]
    newest = table.upsert(pa.table({"id": pa.array([2**31]), "ts": [5]})).version
    assert "does not fit into column 'id'" in reader.refused(kept)
    assert reader.run() == [inserts(newest, (2**31, 5, None))]


@pytest.mark.full
def test_a_running_query_gets_all_before_a_change_of_columns(reader: Reader, table: Table) -> None:
    begun = put(table, (1, 1, "a"))
    query = reader.start(reader.load(), processingTime="0 seconds")
    query.processAllAvailable()
    last = put(table, (2, 1, "b"))
    table.add_column(Column("x", "int"))
    with pytest.raises(StreamingQueryException, match=r"'x' was added.*the same checkpoint"):
        query.awaitTermination(120)
    assert reader.batches == [inserts(begun, (1, 1, "a")), feed(table, begun, last)]
    newest = put(table, (3, 1, "c"))
    assert reader.run() == [inserts(newest, (3, 1, "c", None))]


@pytest.mark.full
def test_columns_of_the_caller(reader: Reader, table: Table) -> None:
    version = put(table, (1, 1, "a"))
    chosen = reader.spark.readStream.format("trinity").option("table", str(table.name))
    frame = chosen.schema("n STRING, _commit_version BIGINT, id BIGINT").load()
    table.add_column(Column("x", "int"))
    found: list[Any] = []
    query = frame.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query.option("checkpointLocation", str(reader.checkpoint)).trigger(availableNow=True).start().awaitTermination()
    assert list(map(tuple, found)) == [("a", version + 1, 1)]
    assert "has no column 'nn'" in reader.refused(chosen.schema("nn STRING").load())


@pytest.mark.full
@pytest.mark.parametrize("keyed", [True, False])
def test_every_type(session: Session, spark: SparkSession, fmt: str, keyed: bool, tmp_path: Path) -> None:
    table = session.create_table(f"{fmt}.default.e", COLUMNS, primary_key=["k"] if keyed else [])
    write, made_at = table.upsert if keyed else table.append, table.splits().version
    first = write(edges().slice(0, 3)).version
    write(edges().slice(3))
    for options in ({"startingVersion": made_at}, {"versionAsOf": first}, {}):
        frame = spark.read.format("trinity").options(table=str(table.name), **options).load()
        out = tmp_path / str(len(options)) / "".join(options)
        frame.write.parquet(str(out))  # as in Spark, with days and years that Python lacks
        read = spark.read.parquet(str(out)).drop("_change_type", "_commit_version", "_commit_timestamp")
        wanted = table.to_df(version=first if "versionAsOf" in options else None)
        assert read.dtypes == wanted.dtypes
        shown = [d.selectExpr(*(f"CAST({name} AS STRING)" for name in d.columns)) for d in (read, wanted)]
        assert shown[0].count() == wanted.count() > 0
        assert shown[0].exceptAll(shown[1]).count() == shown[1].exceptAll(shown[0]).count() == 0


@pytest.mark.full
def test_batches(session: Session, spark: SparkSession, table: Table) -> None:
    made_at = table.splits().version
    one = put(table, (1, 1, "a"))
    two = put(table, (1, 2, "b"), (2, 1, "c"))

    def read(**options: Any) -> DataFrame:
        return spark.read.format("trinity").options(table=str(table.name), **options).load()

    loaded = read()
    three = put(table, (3, 1, "d"))
    assert changes_of(loaded) == inserts(two, (1, 2, "b"), (2, 1, "c"))  # columns of the version it was loaded at
    rows = read(readChangeFeed="false")
    assert (rows.columns, rows.count()) == (["id", "ts", "n"], 3)
    assert changes_of(read(versionAsOf=one)) == inserts(one, (1, 1, "a"))
    assert changes_of(read(startingVersion=two)) == feed(table, one, three)
    assert changes_of(read(startingVersion=two, endingVersion=two)) == feed(table, one, two)
    assert changes_of(read(startingTimestamp="1999-01-01", endingVersion=two)) == feed(table, made_at, two)
    assert read(startingVersion=three).where("_change_type = 'delete'").count() == 0
    for options, message in (
        ({"maxVersionsPerTrigger": 1}, "spark.read has no option maxVersionsPerTrigger"),
        ({"versionAsOf": 99}, "has no version 99"),
        ({"startingVersion": one, "endingTimestamp": "1999-01-01"}, "no version as old as 1999-01-01"),
        ({"startingVersion": one, "versionAsOf": one}, "not both"),
    ):
        with pytest.raises(Exception, match=message):
            read(**options).collect()


@pytest.mark.full
def test_a_table_of_others(session: Session, spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    where = tmp_path / "theirs"
    write_deltalake(where, pa.table({"id": [1, 2], "n": ["a", "b"]}))
    table = session.register("delta.default.ours", "delta", where, {"primary-key": "id"})
    reader = Reader(spark, table, tmp_path / "checkpoint")
    assert reader.run() == [inserts(0, (1, "a"), (2, "b"))]
    write_deltalake(where, pa.table({"id": [3], "n": ["c"]}), mode="append")
    DeltaTable(where).delete("id = 1")
    assert reader.run() == [Counter({("insert", 1, (3, "c")): 1, ("delete", 2, (1, "a")): 1})]
    assert not (where / "_trinity").exists()
    assert list((warehouse / "_trinity/aside/delta/default/ours").glob("*.json"))


@pytest.mark.full
def test_a_plain_table(session: Session, spark: SparkSession, fmt: str, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE {fmt}.default.p (id INT, n STRING)")
    table = session.table(f"{fmt}.default.p")
    table.append(pa.table({"id": pa.array([1, 1, 2], pa.int32()), "n": ["a", "a", "b"]}))
    reader = Reader(spark, table, tmp_path / "checkpoint")
    assert [sum(batch.values()) for batch in reader.run()] == [3]
    start = table.splits().version
    table.delete("id = 1")
    assert reader.run() == [feed(table, start)]
    assert rows_at(table) == {(2, "b"): 1}
