"""Changes on disk, written and read by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trinity.engine.feed.changelog import TableChangelog
from trinity.engine.feed.spark.computed import all_rows
from trinity.engine.feed.spark.images import feed_rows, union
from trinity.engine.feed.stored import EqualColumns, Written, by_version, stored_schema, writing, written_columns
from trinity.engine.reading.spark.columns import to_user_columns
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.writing.run_sinks import run_on_spark
from trinity.spark.remote import parallelism
from trinity.spark.settings import pinned
from trinity.spark.types import arrow_schema
from trinity.spark_names import DataFrame
from trinity.spi import Column, DataFile, SplitSource, TableDefinition, from_fragments
from trinity.storage.changelog import StoredChanges
from trinity.target import Target


def written_by_spark(known: TableChangelog, target: Target, equal_columns: EqualColumns) -> Written:
    """Compute and write the changes of versions that have the same columns, by one job. Raises as ``store_changes``."""
    from trinity.calls import spark_errors

    spark = target.session.spark
    with pinned(spark), spark_errors():
        rows = all_rows(target, equal_columns.parts, equal_columns.definition, known.producer)
        if rows is None:
            return {}
        written = equal_columns.written(target)
        return by_version(write_files(target, known.changelog.store.root, written, rows.coalesce(parallelism(spark))))


def write_files(target: Target, folder: str, written: TableDefinition, rows: DataFrame) -> list[DataFile]:
    """Write rows into a folder, one file or several per Spark task. Raises errors of writing files."""
    task = writing(target, folder, written, arrow_schema(rows.schema))
    return from_fragments(run_on_spark(task, rows))


def stored_change_rows(target: Target, stored: Iterable[StoredChanges], columns: Sequence[Column]) -> DataFrame | None:
    """Return the feed's rows on disk, in another version's columns; None without any."""
    equal_columns: dict[tuple[Column, ...], list[str]] = {}
    for changes in stored:
        equal_columns.setdefault(changes.columns, []).extend(changes.files)
    found = [_scanned(target, files, old, columns) for old, files in equal_columns.items() if files]
    return union(found) if found else None


def _scanned(target: Target, files: Sequence[str], old: Sequence[Column], columns: Sequence[Column]) -> DataFrame:
    written = written_columns(old)
    storage = stored_schema(written)
    rows = plain_scan(target.session.spark, [DataFile(path, 0, 0) for path in files], storage)
    rows = to_user_columns(rows, SplitSource(0, 0, written, storage, ()))
    return feed_rows(rows, columns, old)
