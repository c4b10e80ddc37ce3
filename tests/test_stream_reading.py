"""Streams out of tables: rows, then changes, by versions that are durable in Spark's checkpoint (C7)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.support.changes import Change, feed
from trinity import Session, Table


@dataclass
class Reader:
    """A stream of a table, with its checkpoint, that goes into a list."""

    spark: SparkSession
    table: Table
    checkpoint: Path
    batches: list[Counter[Change]]

    def load(self, **options: Any) -> DataFrame:
        named = self.spark.readStream.format("trinity").option("table", str(self.table.name))
        return named.options(**options).load()

    def run(self, frame: DataFrame | None = None, **trigger: Any) -> list[Counter[Change]]:
        """Streams what is there to its end, and gives the batches that this run has brought."""
        before = len(self.batches)
        frame = self.load() if frame is None else frame
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(self._take)
        query = writer.trigger(**{"availableNow": True, **trigger}).start()
        query.awaitTermination()
        return self.batches[before:]

    def _take(self, batch: DataFrame, number: int) -> None:
        rows = [row.asDict() for row in batch.collect()]
        assert all(row["_commit_timestamp"] for row in rows)
        self.batches.append(
            Counter(
                (r["_change_type"], r["_commit_version"], tuple(v for n, v in r.items() if n[0] != "_")) for r in rows
            )
        )

    def refused(self, frame: DataFrame | None = None) -> str:
        with pytest.raises(StreamingQueryException) as raised:
            self.run(frame)
        return str(raised.value)


@pytest.fixture
def table(session: Session, tiered_fmt: str) -> Table:
    session.sql(
        f"CREATE TABLE {tiered_fmt}.default.t (id INT PRIMARY KEY, ts BIGINT, n STRING) "
        "TBLPROPERTIES ('watermark-key' = 'ts')"
    )
    return session.table(f"{tiered_fmt}.default.t")


@pytest.fixture
def reader(spark: SparkSession, table: Table, tmp_path: Path) -> Reader:
    return Reader(spark, table, tmp_path / "checkpoint", [])


def put(table: Table, *rows: tuple[int, int, str]) -> int:
    ids, times, names = zip(*rows, strict=True)
    data = pa.table({"id": pa.array(ids, pa.int32()), "ts": pa.array(times, pa.int64()), "n": names})
    return table.upsert(data).version


def test_rows_then_changes_across_restarts(reader: Reader, table: Table) -> None:
    put(table, (1, 1, "a"), (2, 1, "b"))
    begun = put(table, (1, 2, "c"))
    assert reader.run() == [Counter({("insert", begun, (1, 2, "c")): 1, ("insert", begun, (2, 1, "b")): 1})]
    put(table, (2, 0, "late"), (3, 1, "d"))
    table.compact(full=True)
    table.delete([{"id": 1}])
    last = put(table, (2, 3, "e"))
    assert reader.run() == [feed(table, begun, last)]
    offsets = sorted((reader.checkpoint / "offsets").glob("[0-9]"))
    assert [re.findall(r'"version": ?(\d+)', path.read_text())[-1] for path in offsets] == [str(begun), str(last)]
    # the batch is repeated, as when the process had ended before Spark noted its end, and what came since is read too
    (reader.checkpoint / "commits" / "1").unlink()
    (reader.checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    newer = put(table, (4, 1, "f"))
    assert reader.run() == [feed(table, begun, last), feed(table, last, newer)]
