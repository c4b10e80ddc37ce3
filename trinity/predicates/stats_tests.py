"""A predicate as a test of statistics: those of files, with their partitions, of row groups and of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.predicates.comparisons import Comparison
from trinity.predicates.value_sets import ValueSet
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
        return _no_test if known is None or known[1] != "boolean" else self._among(column, ValueSet.listing([wanted]))

    def _comparison(self, found: Comparison) -> StatsTest:
        if found.operator is exp.Is:
            nulls = (lambda s: s is not _ALL_NULL) if found.negated else (lambda s: s.nulls is None or s.nulls > 0)
            return self._on(found.column, nulls)
        known = self._usable_column(found.column)
        values = None if known is None else ValueSet.of(found, known[1], self.timezone)
        return _no_test if values is None else self._among(found.column, values)

    def _among(self, column: exp.Column, values: ValueSet) -> StatsTest:
        """Return the test of a comparison. It rejects files that have only NULLs."""

        def checked(stats: ColumnStats) -> bool:
            if stats.min is None or stats.max is None:
                return stats is not _ALL_NULL
            return values.meets(stats.min, stats.max)

        return self._on(column, checked)

    def _on(self, column: exp.Column, test: _ColumnTest) -> StatsTest:
        known = self._usable_column(column)
        if known is None:
            return _no_test
        name, _ = known

        def checked(stats: Mapping[str, ColumnStats]) -> bool:
            return name not in stats or test(stats[name])

        return checked

    def _usable_column(self, column: exp.Column) -> tuple[str, str] | None:
        """Return (name, type) of a column with statistics; None for other columns, and for a field of a struct."""
        return None if column.table else self.known.get(column.name.lower())


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""Stands for a partition of NULL."""
