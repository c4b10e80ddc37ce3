"""The change feed by its definition: reads of two versions, compared in Python (C1, C5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from trinity import Column, Table

Change = tuple[str, int, tuple[Any, ...]]
"""(change type, version, row in a form that can be hashed)."""


def feed(table: Table, start: int, end: int | None = None, **form: Any) -> Counter[Change]:
    """Return the rows of ``table.changes``. Check that each has the time of its commit."""
    rows = [row.asDict(recursive=True) for row in table.changes(start, end, **form).collect()]
    times = {row.version: row.timestamp for row in table.history().collect()}
    assert all(row["_commit_timestamp"] == times[row["_commit_version"]] for row in rows)
    return Counter(
        (row["_change_type"], row["_commit_version"], _form(v for n, v in row.items() if n[0] != "_")) for row in rows
    )


def defined_changes(table: Table, start: int, end: int) -> Counter[Change]:
    """Return the changes that C1 defines: from separate reads of the versions, in the columns of the last one."""
    versions = [v for v in reversed([r.version for r in table.history().collect()]) if start <= v <= end]
    shown = table.splits(end).definition.visible
    reads = {v: _rows(table, v, [_identity(c) for c in shown]) for v in versions}
    key = [[c.name for c in shown].index(k) for k in table.splits(end).definition.primary_key]
    found: Counter[Change] = Counter()
    for before, after in pairwise(versions):
        found.update(_between(reads[before], reads[after], after, key))
    return found


def _between(old: list[tuple[Any, ...]], new: list[tuple[Any, ...]], version: int, key: list[int]) -> Iterable[Change]:
    if not key:
        was, now = Counter(old), Counter(new)
        yield from (("insert", version, row) for row in (now - was).elements())
        yield from (("delete", version, row) for row in (was - now).elements())
        return
    by_key_old, by_key_new = ({tuple(r[k] for k in key): r for r in rows} for rows in (old, new))
    for k in by_key_old.keys() | by_key_new.keys():
        before, after = by_key_old.get(k), by_key_new.get(k)
        if before == after:
            continue
        if before is not None:
            yield ("update_preimage" if after is not None else "delete"), version, before
        if after is not None:
            yield ("update_postimage" if before is not None else "insert"), version, after


def rows_at(table: Table, version: int | None = None) -> Counter[tuple[Any, ...]]:
    """Return the merged rows of a version."""
    definition = table.splits(version).definition
    return Counter(_rows(table, version, [_identity(c) for c in definition.visible]))


def applied(rows: Counter[tuple[Any, ...]], changes: Mapping[Change, int]) -> Counter[tuple[Any, ...]]:
    """Return the rows after changes have been applied to them (C2)."""
    found = Counter(rows)
    for (kind, _, row), count in changes.items():
        found[row] += count if kind in ("insert", "update_postimage") else -count
    return +found


def _identity(column: Column) -> int | str:
    """Return the id of a column, or its name: columns that another engine made have no id."""
    return column.name if column.field_id is None else column.field_id


def _rows(table: Table, version: int | None, ids: list[int | str]) -> list[tuple[Any, ...]]:
    by_id = {_identity(c): c.name for c in table.splits(version).definition.visible}
    names = [by_id.get(i) for i in ids]
    rows = [row.asDict(recursive=True) for row in table.to_df(version).collect()]
    return [_form(None if name is None else row[name] for name in names) for row in rows]


def _form(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(_hashable, values))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((_hashable(k), _hashable(v)) for k, v in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
