"""Leaves out files whose statistics show that no row can meet a predicate on key columns (L9)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import sqlglot
from sqlglot import exp

from trinity.spi import ColumnStats, DataFile, TableDefinition

__all__ = ["prune"]

_MayMeet = Callable[[ColumnStats], bool]


def prune(files: Sequence[DataFile], definition: TableDefinition, where: str | None) -> list[DataFile]:
    """The files that may hold a row for which ``where`` is true.

    Args:
        files: candidates with statistics; a file without them stays.
        definition: the table, for the columns' types.
        where: Spark SQL over bare column names. Only AND-ed comparisons with literals are understood; the rest
            prunes nothing.
    """
    if not where:
        return list(files)
    tests = _tests(sqlglot.parse_one(where, dialect="spark"), definition)
    return [f for f in files if all(name not in f.stats or test(f.stats[name]) for name, test in tests)]


def _tests(tree: exp.Expr, definition: TableDefinition) -> list[tuple[str, _MayMeet]]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return _tests(tree.left, definition) + _tests(tree.right, definition)
    found = _comparison(tree, definition)
    return [found] if found else []


def _comparison(tree: exp.Expr, definition: TableDefinition) -> tuple[str, _MayMeet] | None:
    if isinstance(tree, exp.Between):
        bounds = [_literal(tree.this, part, definition) for part in (tree.args["low"], tree.args["high"])]
        if None in bounds:
            return None
        (name, low), (_, high) = (b for b in bounds if b)
        return name, _unless_unknown(lambda s: s.max >= low and s.min <= high)
    if isinstance(tree, exp.In) and tree.expressions:
        values = [_literal(tree.this, part, definition) for part in tree.expressions]
        if None in values:
            return None
        wanted = [v for _, v in (x for x in values if x)]
        return values[0][0], _unless_unknown(lambda s: any(s.min <= v <= s.max for v in wanted))  # type: ignore[index]
    for kind, flipped, test in _OPERATORS:
        if isinstance(tree, kind | flipped):
            sides = (tree.left, tree.right) if isinstance(tree, kind) else (tree.right, tree.left)
            if found := _literal(*sides, definition):
                return found[0], _unless_unknown(partial(_compare, test, found[1]))
    return None


def _compare(test: Callable[[ColumnStats, Any], bool], value: Any, stats: ColumnStats) -> bool:
    return test(stats, value)


_OPERATORS: Final[tuple[tuple[Any, Any, Callable[[ColumnStats, Any], bool]], ...]] = (
    (exp.EQ, exp.EQ, lambda s, v: s.min <= v <= s.max),
    (exp.LT, exp.GT, lambda s, v: s.min < v),
    (exp.LTE, exp.GTE, lambda s, v: s.min <= v),
    (exp.GT, exp.LT, lambda s, v: s.max > v),
    (exp.GTE, exp.LTE, lambda s, v: s.max >= v),
)
"""(operator with the column on its left, the same with the column on its right, may a file meet it)."""


def _unless_unknown(test: _MayMeet) -> _MayMeet:
    def checked(stats: ColumnStats) -> bool:
        if stats.min is None or stats.max is None:
            return True
        try:
            return test(stats)
        except TypeError:  # bounds of another type than the literal: no knowledge
            return True

    return checked


def _literal(column: exp.Expr, value: exp.Expr, definition: TableDefinition) -> tuple[str, Any] | None:
    """(column name, value in the type of the column's bounds), or None when it is no such comparison."""
    if not isinstance(column, exp.Column):
        return None
    found = next((c for c in definition.columns if c.name.lower() == column.name.lower()), None)
    value = value.unnest()
    if isinstance(value, exp.Cast):
        value = value.this
    if found is None or not isinstance(value, exp.Literal | exp.Neg):
        return None
    convert = _CONVERTERS.get(found.type.split("(")[0])
    try:
        return (found.name, convert(value.name if isinstance(value, exp.Literal) else value.sql())) if convert else None
    except (ValueError, InvalidOperation):
        return None


_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    # floats are left out: their bounds say nothing of NaN, which is above every number (K3)
    **dict.fromkeys(("string", "varchar"), str),
    "decimal": Decimal,
    "date": dt.date.fromisoformat,
}
