"""Pruning: leaves out files whose partition or statistics show that no row can meet a predicate (L9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from trinity.depth import deep_recursion
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.layout import with_buckets_of
from trinity.engine.reading.predicate import Predicate
from trinity.spi import DataFile, TableDefinition, parse_type

__all__ = ["may_share_keys", "prune"]


@deep_recursion()
def prune(
    files: Sequence[DataFile], predicate: Predicate | NotLocal | None, columns: Collection[str] | None = None
) -> list[DataFile]:
    """Return the files that may hold a row for which a predicate is true.

    Args:
        files: candidates. Partition values are exact, statistics are bounds, and a bucket of a keyed table tells
            which keys it may have; a file without any of them stays.
        predicate: AND, OR, comparisons with literals, IN, BETWEEN, IS [NOT] NULL and boolean columns are understood;
            the rest prunes nothing.
        columns: the only columns by which files may be left out; all by default.
    """
    if not isinstance(predicate, Predicate):
        return list(files)
    from trinity.engine.reading.stats_tests import stats_of

    test = predicate.stats_test(None if columns is None else frozenset(columns))
    left = [f for f in files if test(stats_of(f))]
    if not any(f.bucket for f in left) or predicate.listed_keys is None:
        return left
    return with_buckets_of(left, predicate.definition, predicate.listed_keys)


_UNBOUNDED: Final = frozenset({"float", "double"})
"""Types whose bounds do not hold for all values: NaN is left out."""


def may_share_keys(
    files: Sequence[DataFile], others: Sequence[DataFile], definition: TableDefinition
) -> list[DataFile]:
    """Return the files that may hold a key of a keyed table's other files, by the bounds of the key columns."""
    for name in definition.primary_key:
        if parse_type(definition.column(name).type).name not in _UNBOUNDED:
            files = _files_within(files, name, [file.bounds(name) for file in others])
    return list(files)


def _files_within(files: Sequence[DataFile], name: str, wanted: Sequence[tuple[Any, Any] | None]) -> Sequence[DataFile]:
    """Return the files in which a column may have values within some bounds; all where those are not known."""
    known = [bounds for bounds in wanted if bounds is not None]
    if len(known) < len(wanted):
        return files
    try:
        low, high = min(bounds[0] for bounds in known), max(bounds[1] for bounds in known)
        return [f for f in files if (bounds := f.bounds(name)) is None or (low <= bounds[1] and high >= bounds[0])]
    except TypeError:  # bounds of more than one type
        return files
