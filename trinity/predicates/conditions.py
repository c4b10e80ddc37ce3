"""Facts about the target rows for which a condition can be true, from the condition's text.

Only AND-ed comparisons are understood: of a target column with a literal, or with an expression over the source. The
facts prune files and narrow joins; the condition itself is still evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.predicates.comparisons import Comparison, conjuncts, equal_sides, literal_value
from trinity.predicates.names import Names
from trinity.spi import Column, DataFile, TableDefinition
from trinity.syntax.parse import expression_or_none
from trinity.syntax.trees import bare

Bound = tuple[Any, Any]
"""(smallest, largest) value, None for no bound on that side."""


@dataclass(frozen=True)
class ConditionFacts:
    """Facts that follow from a condition.

    Attributes:
        comparisons: target column -> a comparison of it alone (bare name) that must hold.
        bounds: target column -> bounds of its values.
        equalities: target column -> expression over the source that it must equal.
        others: the parts that AND joins, but for ``equalities``.
        understood: True when the condition is text that could be parsed, so that ``equalities`` and ``others`` are it.
    """

    comparisons: tuple[tuple[str, exp.Expr], ...] = ()
    bounds: dict[str, Bound] = field(default_factory=dict)
    equalities: dict[str, str] = field(default_factory=dict)
    others: tuple[exp.Expr, ...] = ()
    understood: bool = False

    @property
    def only_equalities(self) -> bool:
        """True when the condition consists of ``equalities`` alone."""
        return self.understood and not self.others

    def where(self, columns: Sequence[str]) -> exp.Expr | None:
        """Return the comparisons of the given columns, joined by AND; None without any."""
        found = [tree for name, tree in self.comparisons if name in columns]
        return exp.and_(*found) if found else None


@deep_recursion()
def condition_facts(condition: object, definition: TableDefinition, names: Names) -> ConditionFacts:
    """Return the facts that follow from a condition; none from a Column, or from text that sqlglot cannot parse."""
    if not isinstance(condition, str):
        return ConditionFacts()
    tree = expression_or_none(condition)
    if tree is None:
        return ConditionFacts()
    found = _Collector(definition, names)
    for part in conjuncts(tree):
        found.take(part)
    return ConditionFacts(tuple(found.comparisons), found.bounds, found.equalities, tuple(found.others), True)


@deep_recursion()
def same_expression(one: object, other: object) -> bool:
    """Return True when two texts without literals are the same expression but for case and quotes."""
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    mine, its = expression_or_none(one), expression_or_none(other)
    # a literal's case is part of its value
    if mine is None or its is None or mine.find(exp.Literal) or its.find(exp.Literal):
        return False
    return _plain(mine) == _plain(its)


def _plain(tree: exp.Expr) -> str:
    return str(tree.sql(dialect="spark", identify=True)).lower()


class _Collector:
    def __init__(self, definition: TableDefinition, names: Names) -> None:
        self.definition = definition
        self.names = names
        self.comparisons: list[tuple[str, exp.Expr]] = []
        self.bounds: dict[str, Bound] = {}
        self.equalities: dict[str, str] = {}
        self.others: list[exp.Expr] = []

    def take(self, part: exp.Expr) -> None:
        if any(self._equality(*sides) for sides in equal_sides(part)):
            return
        self.others.append(part)
        found = self._comparison(part)
        if found is not None:
            name, bound = found
            self.comparisons.append((name, bare(part)))
            self.bounds[name] = _both(self.bounds.get(name, (None, None)), bound)

    def _target(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Column) and self.names.side(node, self.definition) == "target":
            return self.definition.column(node.name).name
        return None

    def _equality(self, mine: exp.Expr, other: exp.Expr) -> bool:
        name = self._target(mine)
        columns = list(other.find_all(exp.Column))
        of_source = bool(columns) and all(self.names.side(c, self.definition) == "source" for c in columns)
        if name is None or name in self.equalities or not of_source or other.find(exp.Query):
            return False
        self.equalities[name] = str(other.sql(dialect="spark"))
        return True

    def _comparison(self, part: exp.Expr) -> tuple[str, Bound] | None:
        found = Comparison.of(part)
        bound = _BOUNDS.get(found.operator) if found and not found.negated else None
        name = self._target(found.column) if found and bound else None
        if found is None or bound is None or name is None:
            return None
        values = [literal_value(value, self.definition.column(name).type) for value in found.values]
        return None if None in values else (name, bound(values))


_BOUNDS: Final[dict[type[exp.Expr], Callable[[Sequence[Any]], Bound]]] = {
    exp.EQ: lambda v: (v[0], v[0]),
    exp.LT: lambda v: (None, v[0]),
    exp.LTE: lambda v: (None, v[0]),
    exp.GT: lambda v: (v[0], None),
    exp.GTE: lambda v: (v[0], None),
    exp.Between: lambda v: (v[0], v[1]),
    exp.In: lambda v: (min(v), max(v)),
}
"""Operator -> the bounds of a column compared with values."""


def _both(one: Bound, other: Bound) -> Bound:
    lows = [v for v in (one[0], other[0]) if v is not None]
    highs = [v for v in (one[1], other[1]) if v is not None]
    return (max(lows) if lows else None, min(highs) if highs else None)


def partition_columns(
    condition: object, definition: TableDefinition, names: Names, files: Sequence[DataFile]
) -> list[Column] | None:
    """Return the partition columns that a condition names, if it names no others and every file has their values.

    None for another condition, which has to be evaluated row by row.
    """
    columns = {f.column for f in definition.partition_fields if f.identity}
    if not isinstance(condition, str) or not _only_about(condition, columns, definition, names):
        return None
    if not all(file.partition.keys() >= columns for file in files):
        return None
    return [definition.column(name) for name in sorted(columns)]


_CONSTANT: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Connector, exp.Predicate, exp.Not,
    exp.Neg, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Tuple,
)  # fmt: skip
"""Deterministic nodes of a condition."""


@deep_recursion()
def _only_about(condition: str, wanted: Collection[str], definition: TableDefinition, names: Names) -> bool:
    tree = expression_or_none(condition)
    if tree is None:
        return False
    columns = list(tree.find_all(exp.Column))
    known = {name.lower() for name in wanted}
    # nothing non-deterministic, such as rand()
    return (
        bool(columns)
        and all(names.side(c, definition) == "target" and c.name.lower() in known for c in columns)
        and all(isinstance(node, _CONSTANT) for node in tree.walk())
    )
