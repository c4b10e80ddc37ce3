"""Changes on disk: the feed of a version never changes (C3), so its files are written once and then scanned.

They are written right after a commit, as ``changelog-producer`` asks, or when a caller asks for the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from trinity.engine.feed.changelog import TableChangelog
from trinity.engine.feed.computed import all_rows
from trinity.engine.feed.images import CHANGE_TYPE, VERSION, union, values
from trinity.engine.feed.interval import Interval, unknown_version
from trinity.engine.feed.written import stored_columns, stored_schema, write_files
from trinity.engine.reading.spark.columns import to_user_columns
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.spark.remote import parallelism
from trinity.engine.spark.settings import pinned
from trinity.engine.target import Target
from trinity.spark_names import DataFrame
from trinity.spi import Column, DataFile, HistoryEntry, SplitSource, TableDefinition
from trinity.storage.changelog import KeptChanges
from trinity.syntax.quoting import quoted

__all__ = ["keep", "kept_rows"]

_MARKS: Final = (Column(CHANGE_TYPE, "string"), Column(VERSION, "bigint"))
"""Columns that the files have after the table's."""


def keep(
    target: Target, history: list[HistoryEntry], versions: Sequence[int], place: str | None = None
) -> list[KeptChanges]:
    """Return where the changes of some versions are on disk; compute and write those that are missing.

    One Spark job writes all that is missing, unless columns have changed in between.

    Args:
        target: the table.
        history: its readable commits in their order.
        versions: the versions whose changes are wanted.
        place: the folder for them; by default that of the table, which an external table lacks.

    Returns:
        the changes of each version, in the order asked for.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that cannot be read, or whose predecessor cannot, unless its
            changes are on disk; NOT_SUPPORTED for an external table without a place; errors of writing files.
    """
    from trinity.calls.spark import spark_errors

    places = {entry.version: number for number, entry in enumerate(history)}
    if unknown := [version for version in versions if version not in places]:
        raise unknown_version(target, unknown[0], history)
    known = TableChangelog.of(target, place)
    found = known.find([history[places[version]] for version in versions])
    missing = sorted(places[version] for version in {*versions}.difference(found))
    if missing:
        with pinned(target.session.spark), spark_errors():
            for definition, parts in _alike(target, history, missing):
                found |= _written_changes(known, target, definition, parts)
    return [found[version] for version in versions]


def kept_rows(target: Target, kept: Iterable[KeptChanges], columns: Sequence[Column]) -> DataFrame | None:
    """Return the rows of the feed that are in files, in the columns of another version; None when there are none."""
    alike: dict[tuple[Column, ...], list[str]] = {}
    for changes in kept:
        alike.setdefault(changes.columns, []).extend(changes.files)
    found = [_scanned(target, files, old, columns) for old, files in alike.items() if files]
    return union(found) if found else None


def _scanned(target: Target, files: Sequence[str], old: Sequence[Column], columns: Sequence[Column]) -> DataFrame:
    written = _written(old)
    storage = stored_schema(written)
    rows = plain_scan(target.session.spark, [DataFile(path, 0, 0) for path in files], storage)
    rows = to_user_columns(rows, SplitSource(0, 0, written, storage, ()))
    shown = zip(columns, values(columns, old), strict=True)
    return rows.selectExpr(*(f"{value} AS {quoted(column.name)}" for column, value in shown), CHANGE_TYPE, VERSION)


def _written_changes(
    known: TableChangelog, target: Target, definition: TableDefinition, parts: Sequence[Interval]
) -> dict[int, KeptChanges]:
    """Compute the changes of versions under a definition, and keep them."""
    columns = stored_columns(definition.visible)
    rows = all_rows(target, parts, definition, known.producer)
    files: dict[int, list[DataFile]] = {}
    for file in _files(known, target, columns, rows) if rows is not None else ():
        files.setdefault(file.partition[VERSION], []).append(file)
    return {
        entry.version: known.changelog.put(entry.version, known.tag(entry), columns, files.get(entry.version, ()))
        for part in parts
        for entry in part.entries
    }


def _files(known: TableChangelog, target: Target, columns: Sequence[Column], rows: DataFrame) -> list[DataFile]:
    written = replace(_written(columns), partition_by=(VERSION,), properties=target.properties)
    tasks = parallelism(target.session.spark)
    return write_files(target, known.changelog.store.root, written, rows.coalesce(tasks))


def _alike(
    target: Target, history: list[HistoryEntry], places: Sequence[int]
) -> Iterator[tuple[TableDefinition, list[Interval]]]:
    """Yield runs of places in a history that have the same columns, with the definition that has these."""
    shown = ((target.splits(history[place].version).definition, place) for place in places)
    for _, group in groupby(shown, lambda found: found[0].visible):
        alike = list(group)
        behind = alike[-1][1] + 1
        others = {history[n].version for n in range(behind)} - {history[n].version for _, n in alike}
        yield alike[0][0], Interval(history, 0, behind).without(others)


def _written(columns: Iterable[Column]) -> TableDefinition:
    """Return the columns of files, as those of a plain table."""
    return TableDefinition("", "", (*stored_columns(columns), *_MARKS))
