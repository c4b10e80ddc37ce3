"""The merged rows of a version as files beside the changes, for workers, which read files and do not fold."""

from __future__ import annotations

from trinity.engine.feed.changelog import TableChangelog
from trinity.engine.feed.spark.kept import write_files
from trinity.engine.feed.stored import stored_columns
from trinity.engine.reading.merged_read import merged_read
from trinity.engine.spark.settings import pinned
from trinity.engine.target import Target
from trinity.spi import HistoryEntry, TableDefinition
from trinity.storage.changelog import KeptChanges

__all__ = ["stored_rows"]


def stored_rows(table: Target, entry: HistoryEntry, place: str | None) -> KeptChanges:
    """Return the rows of a version, in files that the next vacuum removes; write them if they do not exist yet.

    Args:
        table: the table.
        entry: the version.
        place: the folder for the changes; None for the table's own, which an external table lacks.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that cannot be read; NOT_SUPPORTED for an external table without a
            place; and as reading and writing files.
    """
    from trinity.calls.spark import spark_errors

    known = TableChangelog.of(table, place)
    if (found := known.changelog.find(entry.version, known.rows_tag(entry))) is not None:
        return found
    splits = table.splits(entry.version)
    columns = stored_columns(splits.definition.visible)
    with pinned(table.session.spark), spark_errors():
        rows = merged_read(table.session.spark, splits)
        files = write_files(table, known.changelog.store.root, TableDefinition("", "", columns), rows)
    return known.changelog.put(entry.version, known.rows_tag(entry), columns, files)
