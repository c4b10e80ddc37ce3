"""A predicate as a test of statistics: those of files, with their partitions, of row groups and of pages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlglot import exp

from trinity.predicates.comparisons import Comparison, literal_value
from trinity.spi import ColumnStats, DataFile

StatsTest = Callable[[Mapping[str, ColumnStats]], bool]
"""False when the predicate cannot be true for any row of a file with these statistics."""
_ColumnTest = Callable[[ColumnStats], bool]


def stats_of(file: DataFile) -> Mapping[str, ColumnStats]:
    """Return the statistics of a file's columns; those of its partition are its values there."""
    if not file.partition:
        return file.stats
    values = {name: _ALL_NULL if v is None else ColumnStats(v, v, 0) for name, v in file.partition.items()}
    return {**file.stats, **values}


def _no_test(_: Mapping[str, ColumnStats]) -> bool:
    return True


@dataclass(frozen=True)
class StatsTests:
    """Turns the trees of predicates into tests of statistics of the known columns: lower case name -> (name, type)."""

    known: dict[str, tuple[str, str]]
    timezone: Callable[[], str]

    def test(self, tree: exp.Expr) -> StatsTest:
        """Return the test of a predicate over bare column names."""
        tree = tree.unnest()
        if isinstance(tree, exp.And | exp.Or):
            tests, hold = [self.test(part) for part in tree.flatten()], all if isinstance(tree, exp.And) else any
            return lambda stats: hold(test(stats) for test in tests)
        negated = isinstance(tree, exp.Not)
        column = tree.this.unnest() if negated else tree
        if isinstance(column, exp.Column):
            return self._flag(column, wanted=not negated)
        found = Comparison.of(tree)
        return self._comparison(found) if found else _no_test

    def _flag(self, column: exp.Column, *, wanted: bool) -> StatsTest:
        known = self._usable_column(column)
        if known is None or known[1] != "boolean":
            return _no_test
        return self._comparison_test(column, lambda s: s.min <= wanted <= s.max)

    def _comparison(self, found: Comparison) -> StatsTest:
        if found.operator is exp.Is:
            nulls = (lambda s: s is not _ALL_NULL) if found.negated else (lambda s: s.nulls is None or s.nulls > 0)
            return self._on(found.column, nulls)
        test = _TESTS.get((found.operator, found.negated))
        values = [self._literal(found.column, value) for value in found.values]
        if test is None or None in values:
            return _no_test
        if found.operator is exp.In:
            values.sort()
        return self._comparison_test(found.column, partial(test, values))

    def _comparison_test(self, column: exp.Column, test: _ColumnTest) -> StatsTest:
        """Return the test of a comparison. It rejects files that have only NULLs."""

        def checked(stats: ColumnStats) -> bool:
            if stats.min is None or stats.max is None:
                return stats is not _ALL_NULL
            try:
                return test(stats)
            except TypeError:  # bounds of another type than the literal: no knowledge
                return True

        return self._on(column, checked)

    def _on(self, column: exp.Column, test: _ColumnTest) -> StatsTest:
        known = self._usable_column(column)
        if known is None:
            return _no_test
        name, _ = known

        def checked(stats: Mapping[str, ColumnStats]) -> bool:
            return name not in stats or test(stats[name])

        return checked

    def _literal(self, column: exp.Column, value: exp.Expr) -> Any:
        """Return the value in the type of the column's bounds, or None when it is uncertain what Spark makes of it."""
        known = self._usable_column(column)
        return None if known is None else literal_value(value, known[1], self.timezone)

    def _usable_column(self, column: exp.Column) -> tuple[str, str] | None:
        """Return (name, type) of a column with statistics; None for other columns, and for a field of a struct."""
        return None if column.table else self.known.get(column.name.lower())


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""Stands for a partition of NULL."""


def _any_within(listed: Sequence[Any], stats: ColumnStats) -> bool:
    """Return True when one of the values, which ascend, is within bounds."""
    place = bisect_left(listed, stats.min)
    return place < len(listed) and bool(listed[place] <= stats.max)


_TESTS: Final[dict[tuple[type[exp.Expr], bool], Callable[[Sequence[Any], ColumnStats], bool]]] = {
    (exp.EQ, False): lambda v, s: s.min <= v[0] <= s.max,
    (exp.NullSafeEQ, False): lambda v, s: s.min <= v[0] <= s.max,
    (exp.NEQ, False): lambda v, s: s.min != v[0] or s.max != v[0],
    (exp.EQ, True): lambda v, s: s.min != v[0] or s.max != v[0],
    (exp.LT, False): lambda v, s: s.min < v[0],
    (exp.LTE, False): lambda v, s: s.min <= v[0],
    (exp.GT, False): lambda v, s: s.max > v[0],
    (exp.GTE, False): lambda v, s: s.max >= v[0],
    (exp.Between, False): lambda v, s: s.max >= v[0] and s.min <= v[1],
    (exp.In, False): _any_within,
    (exp.In, True): lambda v, s: s.min != s.max or s.min not in v,
}
"""(operator, negated) -> may rows within bounds meet it, given the values on its right, those of IN ascending."""
