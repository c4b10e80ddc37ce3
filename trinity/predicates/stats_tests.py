"""Predicates as tests of statistics: of files, with their partition values, of row groups and of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sqlglot import exp

from trinity.predicates.comparisons import Comparison, ValueSet
from trinity.spi import ColumnStats, DataFile

StatsTest = Callable[[Mapping[str, ColumnStats]], bool]
"""A function that returns False when the predicate is true for no row of a file with these statistics."""


def stats_of(file: DataFile) -> Mapping[str, ColumnStats]:
    """Return the statistics of a file's columns; for a partition column they are the file's partition value."""
    if not file.partition:
        return file.stats
    values = {name: _ALL_NULL if v is None else ColumnStats(v, v, 0) for name, v in file.partition.items()}
    return {**file.stats, **values}


def _no_test(_: Mapping[str, ColumnStats]) -> bool:
    return True


def stats_test(tree: exp.Expr, known: Mapping[str, tuple[str, str]], timezone: Callable[[], str]) -> StatsTest:
    """Return the test of a predicate over bare column names.

    ``known`` are the columns with statistics: name in lower case -> (name, type).
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        parts, hold = list(tree.flatten()), all if isinstance(tree, exp.And) else any
        tests = [stats_test(part, known, timezone) for part in parts]
        return lambda stats: hold(test(stats) for test in tests)
    found = Comparison.of(tree)
    if found is None or found.column.table or found.column.name.lower() not in known:
        return _no_test
    name, kind = known[found.column.name.lower()]
    if found.operator is exp.Is:
        test = (lambda s: s is not _ALL_NULL) if found.negated else (lambda s: s.nulls is None or s.nulls > 0)
    elif (values := ValueSet.of(found, kind, timezone)) is not None:
        test = partial(_may_meet, values)
    else:
        return _no_test
    return lambda stats: name not in stats or test(stats[name])


def _may_meet(values: ValueSet, stats: ColumnStats) -> bool:
    """Return True unless no value between the bounds is in a set. A column with NULLs only has no value."""
    if stats.min is None or stats.max is None:
        return stats is not _ALL_NULL
    return values.meets(stats.min, stats.max)


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""The statistics that stand for a partition value of NULL."""
