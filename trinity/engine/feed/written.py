"""Rows in Parquet files that belong to no version's list of files: those of a table's changelog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from trinity.engine.spark.types import arrow_schema
from trinity.engine.target import Target
from trinity.engine.writing.ingest import StoredForm, plan_ingest
from trinity.engine.writing.run_sinks import AppendTask, run_on_spark
from trinity.spark_names import DataFrame
from trinity.spi import Column, DataFile, TableDefinition, from_fragments
from trinity.storage import OWN_ENDING, ParquetSinkProvider, write_target

__all__ = ["stored_columns", "stored_schema", "write_files"]


def stored_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns as such files have them: name, type and field ids."""
    return tuple(Column(c.name, c.type, field_id=c.field_id, within=c.within) for c in columns)


def stored_schema(written: TableDefinition) -> pa.Schema:
    """Return the schema of such files."""
    return pa.schema([(c.name, c.to_arrow().type) for c in written.columns])


def write_files(target: Target, folder: str, written: TableDefinition, rows: DataFrame) -> list[DataFile]:
    """Write rows into a folder, one file or several per Spark task.

    Args:
        target: the table that the rows are of, for messages and settings.
        folder: the folder.
        written: columns, partitioning and options of the files.
        rows: the columns of ``written``.

    Raises:
        TrinityError: errors of writing files.
    """
    into = replace(write_target(folder, written, stored_schema(written), statistics=()), ending=OWN_ENDING)
    plain = replace(written, partition_by=(), properties={})
    conformer = plan_ingest(StoredForm.of(target, plain, into.storage), arrow_schema(rows.schema))
    return from_fragments(run_on_spark(AppendTask(ParquetSinkProvider(), into, conformer), rows))
