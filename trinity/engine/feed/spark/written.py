"""Rows in Parquet files that belong to no version's list of files: those of a table's changelog."""

from __future__ import annotations

from trinity.engine.feed.stored import writing
from trinity.engine.spark.types import arrow_schema
from trinity.engine.target import Target
from trinity.engine.writing.run_sinks import run_on_spark
from trinity.spark_names import DataFrame
from trinity.spi import DataFile, TableDefinition, from_fragments

__all__ = ["write_files"]


def write_files(target: Target, folder: str, written: TableDefinition, rows: DataFrame) -> list[DataFile]:
    """Write rows into a folder, one file or several per Spark task.

    Raises:
        TrinityError: errors of writing files.
    """
    task = writing(target, folder, written, arrow_schema(rows.schema))
    return from_fragments(run_on_spark(task, rows))
