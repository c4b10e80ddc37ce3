"""The merged rows of a version as files beside the changes, for workers that read files and fold nothing."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from trinity.engine.appending.ingest import StoredForm, plan_ingest
from trinity.engine.appending.run_sinks import AppendTask, run_on_spark
from trinity.engine.feed.changelog import TableChangelog
from trinity.engine.reading.merged_read import merged_read
from trinity.engine.spark.settings import pinned
from trinity.engine.spark.types import arrow_schema
from trinity.engine.target import Target
from trinity.spi import Column, HistoryEntry, TableDefinition, from_fragments
from trinity.storage import ParquetSinkProvider, write_target
from trinity.storage.changelog import KeptChanges

__all__ = ["stored_rows"]


def stored_rows(table: Target, entry: HistoryEntry, place: str | None) -> KeptChanges:
    """The rows of a version, in files that the next vacuum takes away.

    Args:
        table: the table.
        entry: the version.
        place: the folder for its changes; that of the table by default, which an external one has not.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that cannot be read; NOT_SUPPORTED for an external table without a
            place; what reading and writing files raises.
    """
    from trinity.calls.spark import spark_errors

    splits = table.splits(entry.version)
    changelog = TableChangelog.of(table, place).changelog
    tag = hashlib.sha256(f"{splits.definition.id}/rows/{entry.timestamp_ms}".encode()).hexdigest()[:16]
    if (found := changelog.find(entry.version, tag)) is not None:
        return found
    columns = tuple(Column(c.name, c.type, field_id=c.field_id) for c in splits.definition.visible)
    plain = TableDefinition("", "", columns)
    storage = pa.schema([(c.name, c.to_arrow().type) for c in columns])
    into = write_target(changelog.store.root, plain, storage, statistics=())
    with pinned(table.session.spark), spark_errors():
        rows = merged_read(table.session.spark, splits)
        conformer = plan_ingest(StoredForm.of(table, plain, into.storage), arrow_schema(rows.schema))
        files = from_fragments(run_on_spark(AppendTask(ParquetSinkProvider(), into, conformer), rows))
    return changelog.put(entry.version, tag, columns, files)
