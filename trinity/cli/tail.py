"""``trinity tail``: a table's changes, printed as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from trinity.cli.output import write_rows
from trinity.merge.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trinity.table import Table

__all__ = ["followed", "print_changes"]

_AT_ONCE = 1000
"""Rows that are laid out as one table."""


def followed(table: Table, after: int, wait: Callable[[], bool]) -> Iterator[DataFrame]:
    """The changes since a version, a DataFrame each time that there are newer commits.

    Args:
        table: the table.
        after: the version.
        wait: called when all changes were given; False ends it.
    """
    while True:
        newest = table.splits().version
        if newest > after:
            yield _in_order(table, table.changes(after, newest))
            after = newest
        if not wait():
            return


def _in_order(table: Table, changes: DataFrame) -> DataFrame:
    """Changes by version, then by key, a row before its update before the one after it."""
    key = map(quoted, table.definition.primary_key)
    facts = ["_commit_version", "_commit_timestamp", "_change_type"]
    rest = [quoted(name) for name in changes.columns if name not in facts]
    return changes.orderBy("_commit_version", *key, changes["_change_type"].desc()).select(*facts, *rest)


def print_changes(changes: DataFrame, to: TextIO, *, lines: bool) -> int:
    """Prints changes, and returns how many.

    Args:
        changes: their rows.
        to: where they go.
        lines: True for an object of JSON in each line, False for tables.
    """
    count = 0
    rows = changes.toLocalIterator()
    while found := list(islice(rows, _AT_ONCE)):
        count += len(found)
        if lines:
            to.writelines(_line(row.asDict(recursive=True)) for row in found)
        else:
            write_rows(to, "table", changes.columns, found)
        to.flush()
    return count


def _line(row: dict[str, object]) -> str:
    return json.dumps(row, default=_text, ensure_ascii=False) + "\n"


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
