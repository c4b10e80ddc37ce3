"""Pruning: leaves out files whose partition or statistics show that no row can meet a predicate (L9)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlglot import exp

from trinity.depth import room
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.layout import with_buckets_of
from trinity.engine.reading.predicate import Predicate
from trinity.spi import ColumnStats, DataFile, TableDefinition, parse_type
from trinity.syntax.comparisons import Comparison
from trinity.syntax.literals import literal_value

__all__ = ["may_share_keys", "prune"]

_Test = Callable[[DataFile], bool]
"""False when no row of the file can meet the predicate."""
_StatsTest = Callable[[ColumnStats], bool]


@room()
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
    definition = predicate.definition
    known = {c.name.lower(): (c.name, c.type) for c in definition.columns}
    if columns is not None:
        known = {name.lower(): known[name.lower()] for name in columns}
    test = _Compiler(known, predicate.timezone).test(predicate.tree)
    left = [f for f in files if test(f)]
    if not any(f.bucket for f in left) or predicate.listed_keys is None:
        return left
    return with_buckets_of(left, definition, predicate.listed_keys)


def _always(_: DataFile) -> bool:
    return True


@dataclass(frozen=True)
class _Compiler:
    """Turns a predicate into a test of files.

    Attributes:
        known: lower case name -> (name, type) of the columns that may be used.
        timezone: see :class:`~trinity.engine.reading.predicate.Predicate`.
    """

    known: dict[str, tuple[str, str]]
    timezone: Callable[[], str]

    def test(self, tree: exp.Expr) -> _Test:
        tree = tree.unnest()
        if isinstance(tree, exp.And | exp.Or):
            tests, hold = [self.test(part) for part in tree.flatten()], all if isinstance(tree, exp.And) else any
            return lambda f: hold(test(f) for test in tests)
        negated = isinstance(tree, exp.Not)
        column = tree.this.unnest() if negated else tree
        if isinstance(column, exp.Column):
            return self._flag(column, wanted=not negated)
        found = Comparison.of(tree)
        return self._comparison(found) if found else _always

    def _flag(self, column: exp.Column, *, wanted: bool) -> _Test:
        if self.known.get(column.name.lower(), ("", ""))[1] != "boolean":
            return _always
        return self._bounded(column, lambda s: s.min <= wanted <= s.max)

    def _comparison(self, found: Comparison) -> _Test:
        if found.operator is exp.Is:
            held = (lambda s: s is not _ALL_NULL) if found.negated else (lambda s: s.nulls is None or s.nulls > 0)
            return self._on(found.column, held)
        test = _TESTS.get((found.operator, found.negated))
        values = [self._literal(found.column, value) for value in found.values]
        if test is None or None in values:
            return _always
        if found.operator is exp.In:
            values.sort()
        return self._bounded(found.column, partial(test, values))

    def _bounded(self, column: exp.Column, test: _StatsTest) -> _Test:
        """Return the test of a comparison, which no NULL meets."""

        def checked(stats: ColumnStats) -> bool:
            if stats.min is None or stats.max is None:
                return stats is not _ALL_NULL
            try:
                return test(stats)
            except TypeError:  # bounds of another type than the literal: no knowledge
                return True

        return self._on(column, checked)

    def _on(self, column: exp.Column, test: _StatsTest) -> _Test:
        if column.name.lower() not in self.known:
            return _always
        name, _ = self.known[column.name.lower()]

        def checked(file: DataFile) -> bool:
            if name in file.partition:
                value = file.partition[name]
                return test(_ALL_NULL if value is None else ColumnStats(value, value, 0))
            return name not in file.stats or test(file.stats[name])

        return checked

    def _literal(self, column: exp.Column, value: exp.Expr) -> Any:
        """Return the value in the type of the column's bounds, or None when it is uncertain what Spark makes of it."""
        if column.name.lower() not in self.known:
            return None
        return literal_value(value, self.known[column.name.lower()][1], self.timezone)


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""Stands for a partition of NULL."""


def _any_within(listed: Sequence[Any], stats: ColumnStats) -> bool:
    """Return True when one of some values, ascending, is within bounds."""
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

_UNBOUNDED: Final = frozenset({"float", "double"})
"""Types whose bounds do not hold for all values: NaN is left out."""


def may_share_keys(
    files: Sequence[DataFile], others: Sequence[DataFile], definition: TableDefinition
) -> list[DataFile]:
    """Return the files that may hold a key of a keyed table's other files, by the bounds of the key columns."""
    for name in definition.primary_key:
        if parse_type(definition.column(name).type).name not in _UNBOUNDED:
            files = _within(files, name, [file.bounds(name) for file in others])
    return list(files)


def _within(files: Sequence[DataFile], name: str, wanted: Sequence[tuple[Any, Any] | None]) -> Sequence[DataFile]:
    """Return the files in which a column may have values within some bounds; all where those are not known."""
    known = [bounds for bounds in wanted if bounds is not None]
    if len(known) < len(wanted):
        return files
    try:
        low, high = min(bounds[0] for bounds in known), max(bounds[1] for bounds in known)
        return [f for f in files if (bounds := f.bounds(name)) is None or (low <= bounds[1] and high >= bounds[0])]
    except TypeError:  # bounds of more than one type
        return files
