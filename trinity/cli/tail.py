"""``trinity tail``: a table's changes, printed as they are committed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TextIO

from trinity.cli.output import json_line, json_lines, write_rows
from trinity.engine.feed.reader_position import ReaderPosition
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from trinity.result import Result
    from trinity.spi import HistoryEntry, SplitSource
    from trinity.table import Table

_READER: Final = "tail"
_REMEDY: Final = "Begin after a version of history(), by --after."
_ROWS_AT_ONCE: Final = 1000
"""Maximum number of rows of one printed table."""


def follow(table: Table, after: int, wait: Callable[[], bool]) -> Iterator[Result]:
    """Yield the changes since a version, a result each time that there are newer commits."""
    reached = ReaderPosition(after)
    while True:
        newest = table.splits()
        reached.check_not_ahead(table.name, newest.version, _READER, _REMEDY)
        if newest.version > reached.version:
            yield _in_order(table, _changes(table, reached, newest.version))
        else:
            _check(table, reached, newest)
        reached = ReaderPosition.of(newest)
        if not wait():
            return


def _changes(table: Table, reached: ReaderPosition, newest: int) -> Result:
    from trinity.engine.feed.changes import changes
    from trinity.engine.feed.interval import Bound
    from trinity.engine.feed.shape import FeedMode

    start = Bound(reached.version, inclusive=False, check=partial(_check, table, reached))
    return changes(table, start, Bound(newest, inclusive=True), FeedMode())


def _check(table: Table, reached: ReaderPosition, found: HistoryEntry | SplitSource) -> None:
    reached.check(table.name, found, _READER, _REMEDY)


def _in_order(table: Table, changes: Result) -> Result:
    """Sort changes by version, then by key, a preimage before its postimage."""
    import pyarrow.compute as pc

    from trinity.arrays import numbered
    from trinity.result import Result

    key, facts = table.definition.primary_key, ["_commit_version", "_commit_timestamp", "_change_type"]
    columns = [*facts, *(name for name in changes.columns if name not in facts)]
    order = ["_commit_version", *key, "_change_type"]
    if (frame := changes.frame) is not None:
        ascending = [name != "_change_type" for name in order]
        rows = frame.orderBy(*map(quoted, order), ascending=ascending).select(*map(quoted, columns))
        return Result(table.session, rows)
    ways = [(name, "descending" if name == "_change_type" else "ascending") for name in order]
    rows = changes.to_arrow()
    sort_keys = [(str(rows.column_names.index(name)), way) for name, way in ways]
    return Result(table.session, rows.take(pc.sort_indices(numbered(rows), sort_keys=sort_keys)).select(columns))


def print_changes(changes: Result, to: TextIO, *, lines: bool) -> int:
    """Print changes, as a JSON object in each line or as tables, and return their number."""
    if lines and changes.frame is None:
        count = 0
        for page in changes.to_reader():
            to.writelines(json_lines(page))
            to.flush()
            count += len(page)
        return count
    return _print_rows(changes, to, lines=lines)


def _print_rows(changes: Result, to: TextIO, *, lines: bool) -> int:
    count = 0
    rows = iter(changes.collect()) if changes.frame is None else changes.frame.toLocalIterator()
    while found := list(islice(rows, _ROWS_AT_ONCE)):
        count += len(found)
        if lines:
            instants = {field.name for field in changes.schema if getattr(field.type, "tz", None) is not None}
            to.writelines(json_line(_with_zones(row.asDict(recursive=True), instants)) for row in found)
        else:
            write_rows(to, "table", changes.columns, found)
        to.flush()
    return count


def _with_zones(row: dict[str, Any], instants: set[str]) -> dict[str, Any]:
    """Return a row from Spark with a zone for its instants: Spark gives them as local times of this process."""
    return {name: value.astimezone(dt.UTC) if value and name in instants else value for name, value in row.items()}
