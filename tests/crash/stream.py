"""The program that is killed: a stream of a folder's JSON files, or of another table's changes, to its end.

Usage: python stream.py WAREHOUSE TABLE CHECKPOINT files FOLDER SCHEMA COMPACT_EVERY
       python stream.py WAREHOUSE TABLE CHECKPOINT changes SOURCE

Each file, and each version of the source, is a micro-batch. Spark's master is STREAM_MASTER of the environment.
"""

from __future__ import annotations

import os
import sys

import trinity
from trinity import Session, Table

SETTINGS = {
    "spark.master": os.environ.get("STREAM_MASTER", "local[2]"),
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss8m",
}


def of_files(session: Session, table: Table, checkpoint: str, folder: str, schema: str, compact_every: str) -> None:
    files = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(folder)
    query = table.stream_writer(files, checkpoint=checkpoint, available_now=True, compact_every=int(compact_every))
    query.awaitTermination()


def of_changes(session: Session, table: Table, checkpoint: str, source: str) -> None:
    stream = session.spark.readStream.format("trinity").option("table", source).option("maxVersionsPerTrigger", 1)
    query = table.stream_writer(
        stream.load(),
        checkpoint=checkpoint,
        transform=lambda rows: rows.selectExpr("id", "ts", "n", "_change_type AS kind", "_commit_version AS at"),
    )
    query.processAllAvailable()
    query.stop()


def main(warehouse: str, name: str, checkpoint: str, kind: str, *more: str) -> None:
    run = of_files if kind == "files" else of_changes
    with trinity.connect(warehouse, spark_settings=SETTINGS) as session:
        run(session, session.table(name), checkpoint, *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
