"""The driver of a cluster whose executors are killed: each step writes its name to a file before it begins.

Usage: python on_cluster.py MASTER SETTINGS FOLDER

SETTINGS are those of the catalog ``lake``, as JSON. FOLDER gets ``step``, and is the tasks' own, too. What the steps
leave is printed as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

import trinity
from trinity import Session

COUNT = 12_000
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "768m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss8m",
    "spark.sql.shuffle.partitions": "4",
    "spark.task.maxFailures": "10",  # an executor that is killed fails its task
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
}


class Steps:
    """The steps of the program, in order."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.table = session.create_table(
            "t",
            [trinity.Column("k", "bigint"), trinity.Column("ts", "bigint"), trinity.Column("v", "string")],
            primary_key=["k"],
            properties={"watermark-key": "ts"},
        )

    def rows(self, first: int, count: int, ts: int) -> DataFrame:
        known = self.session.spark.range(first, first + count, numPartitions=6)
        return known.selectExpr("id AS k", f"{ts}L AS ts", f"concat('v{ts} ', id) AS v")

    def upsert(self) -> None:
        self.table.upsert(self.rows(0, COUNT, 1))
        self.table.upsert(self.rows(0, COUNT // 2, 2))

    def retried(self) -> None:
        """Write rows by tasks that all fail at their first attempt, after half of their rows."""

        def fails_once(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                yield batch.slice(0, batch.num_rows // 2)
                if attempt() == 0:
                    raise RuntimeError("the first attempt")
                yield batch.slice(batch.num_rows // 2)

        frame = self.rows(COUNT, COUNT, 1)
        self.table.upsert(frame.mapInArrow(fails_once, frame.schema))

    def speculated(self) -> None:
        """Write rows by a task that waits until a second attempt at it has begun."""
        begun = str(self.folder / "second-attempt")

        def waits(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            yield from batches
            if attempt():
                Path(begun).touch()
            elif partition() == 0:
                until = time.monotonic() + 60
                while not Path(begun).exists() and time.monotonic() < until:
                    time.sleep(0.02)

        frame = self.rows(2 * COUNT, COUNT, 1)
        self.table.upsert(frame.mapInArrow(waits, frame.schema))
        assert Path(begun).exists()

    def merge(self) -> None:
        self.rows(0, 3 * COUNT, 9).createOrReplaceTempView("s")
        self.session.sql(
            f"""MERGE INTO t USING (SELECT * FROM s UNION ALL SELECT k + {3 * COUNT}, ts, v FROM s WHERE k < 100) s
            ON t.k = s.k WHEN MATCHED AND s.k % 5 = 0 THEN DELETE
            WHEN MATCHED AND s.k % 5 = 1 THEN UPDATE SET v = 'merged', ts = 9
            WHEN NOT MATCHED THEN INSERT (k, ts, v) VALUES (s.k, s.ts, 'new')"""
        )

    def read(self) -> None:
        self.found = self.session.sql("SELECT count(*), count(DISTINCT k), sum(k) FROM t").collect()[0]

    def compact(self) -> None:
        self.table.compact(full=True)

    def stream(self) -> None:
        """Let another table follow this one by a stream."""
        self.session.sql("CREATE TABLE copy (k BIGINT, ts BIGINT, v STRING, PRIMARY KEY (k))")
        changes = self.session.spark.readStream.format("trinity").option("table", str(self.table.name)).load()
        self.session.table("copy").stream_writer(
            changes,
            checkpoint=str(self.folder / "checkpoint"),
            transform=lambda rows: rows.select("k", "ts", "v"),
            available_now=True,
        ).awaitTermination()


def attempt() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.attemptNumber()


def partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def main(master: str, expected: str, folder: str) -> None:
    settings = {**SETTINGS, "spark.master": master}
    with trinity.connect(catalogs={"lake": json.loads(expected)}, spark_settings=settings) as session:
        steps = Steps(session, Path(folder))
        calls: list[Callable[[], Any]] = [
            steps.upsert, steps.retried, steps.speculated, steps.merge, steps.read, steps.compact, steps.stream,
        ]  # fmt: skip
        for call in calls:
            Path(folder, "step").write_text(call.__name__)
            call()
        Path(folder, "step").write_text("done")
        copy = session.sql("SELECT count(*), count(DISTINCT k), sum(k) FROM copy").collect()[0]
        print(json.dumps({"read": list(steps.found), "copy": list(copy)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
