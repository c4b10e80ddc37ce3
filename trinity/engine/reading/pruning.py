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
        return self._negated(tree.this.unnest()) if isinstance(tree, exp.Not) else self._simple(tree)

    def _simple(self, tree: exp.Expr) -> _Test:
        if isinstance(tree, exp.Column):
            return self._flag(tree, True)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._on(tree.this, lambda s: s.nulls is None or s.nulls > 0)
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low, high = (self._literal(tree.this, tree.args[part]) for part in ("low", "high"))
            return self._bounded(tree.this, (low, high), lambda s: s.max >= low and s.min <= high)
        if isinstance(tree, exp.In) and tree.expressions:
            values = [self._literal(tree.this, part) for part in tree.expressions]
            listed = [] if None in values else sorted(values)
            return self._bounded(tree.this, values, lambda s: _any_within(listed, s))
        return self._comparison(tree)

    def _negated(self, tree: exp.Expr) -> _Test:
        """Return the test of a NOT, by the tree under it: as much as is of use for partitions."""
        if isinstance(tree, exp.Column):
            return self._flag(tree, False)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._on(tree.this, lambda s: s is not _ALL_NULL)
        if isinstance(tree, exp.EQ):
            return self._comparison(exp.NEQ(this=tree.this, expression=tree.expression))
        if isinstance(tree, exp.In) and tree.expressions:
            values = [self._literal(tree.this, part) for part in tree.expressions]
            return self._bounded(tree.this, values, lambda s: s.min != s.max or s.min not in values)
        return _always

    def _comparison(self, tree: exp.Expr) -> _Test:
        for kind, flipped, test in _OPERATORS:
            if isinstance(tree, kind | flipped):
                sides = (tree.left, tree.right) if isinstance(tree, kind) else (tree.right, tree.left)
                value = self._literal(*sides)
                if value is not None:
                    return self._bounded(sides[0], [value], partial(_compare, test, value))
        return _always

    def _flag(self, column: exp.Column, wanted: bool) -> _Test:
        if self.known.get(column.name.lower(), ("", ""))[1] != "boolean":
            return _always
        return self._bounded(column, [wanted], lambda s: s.min <= wanted <= s.max)

    def _bounded(self, column: exp.Expr, values: Sequence[Any], test: _StatsTest) -> _Test:
        """Return a comparison, which no NULL meets, with some values: None for one that is not understood."""
        if any(v is None for v in values):
            return _always

        def checked(stats: ColumnStats) -> bool:
            if stats.min is None or stats.max is None:
                return stats is not _ALL_NULL
            try:
                return test(stats)
            except TypeError:  # bounds of another type than the literal: no knowledge
                return True

        return self._on(column, checked)

    def _on(self, column: exp.Expr, test: _StatsTest) -> _Test:
        if not isinstance(column, exp.Column) or column.name.lower() not in self.known:
            return _always
        name, _ = self.known[column.name.lower()]

        def checked(file: DataFile) -> bool:
            if name in file.partition:
                value = file.partition[name]
                return test(_ALL_NULL if value is None else ColumnStats(value, value, 0))
            return name not in file.stats or test(file.stats[name])

        return checked

    def _literal(self, column: exp.Expr, value: exp.Expr) -> Any:
        """Return the value in the type of the column's bounds, or None when it is uncertain what Spark makes of it."""
        if not isinstance(column, exp.Column) or column.name.lower() not in self.known:
            return None
        return literal_value(value, self.known[column.name.lower()][1], self.timezone)


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""Stands for a partition of NULL."""


def _any_within(listed: Sequence[Any], stats: ColumnStats) -> bool:
    """Return True when one of some values, ascending, is within bounds."""
    place = bisect_left(listed, stats.min)
    return place < len(listed) and bool(listed[place] <= stats.max)


def _compare(test: Callable[[ColumnStats, Any], bool], value: Any, stats: ColumnStats) -> bool:
    return test(stats, value)


_OPERATORS: Final[tuple[tuple[Any, Any, Callable[[ColumnStats, Any], bool]], ...]] = (
    (exp.EQ, exp.EQ, lambda s, v: s.min <= v <= s.max),
    (exp.NullSafeEQ, exp.NullSafeEQ, lambda s, v: s.min <= v <= s.max),
    (exp.NEQ, exp.NEQ, lambda s, v: s.min != v or s.max != v),
    (exp.LT, exp.GT, lambda s, v: s.min < v),
    (exp.LTE, exp.GTE, lambda s, v: s.min <= v),
    (exp.GT, exp.LT, lambda s, v: s.max > v),
    (exp.GTE, exp.LTE, lambda s, v: s.max >= v),
)
"""(operator with the column on its left, the same with the column on its right, may a file meet it)."""


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
