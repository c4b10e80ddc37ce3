"""Facts about the target rows for which a condition can be true, from its tree.

Only AND-ed comparisons are understood: of a target column with a literal, or with an expression over the source. The
facts prune files and narrow joins; the condition itself is still evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.predicates.comparisons import (
    Bound,
    Comparison,
    ValueSet,
    bare,
    conjuncts,
    depends_on_columns_alone,
    equalities,
)
from trinity.spi import Column, DataFile, TableDefinition


@dataclass(frozen=True)
class Names:
    """The aliases of the target and of the source, if there is one, in an expression."""

    target: str
    source: str | None = None
    source_columns: Sequence[str] = ()

    def side(self, column: exp.Column, definition: TableDefinition) -> str | None:
        """Return ``target``, ``source``, or None for a name that is ambiguous or unknown."""
        qualifier, name = column.table.lower(), column.name.lower()
        if column.args.get("db"):
            return None
        in_target = any(c.name.lower() == name for c in definition.visible)
        in_source = name in (c.lower() for c in self.source_columns)
        if qualifier == self.target.lower() or (not qualifier and in_target and not in_source):
            return "target" if in_target else None
        if self.source and (qualifier == self.source.lower() or (not qualifier and in_source and not in_target)):
            return "source"
        return None

    def of_source(self, tree: exp.Expr, definition: TableDefinition) -> bool:
        """Return True for an expression over columns of the source alone, without a subquery."""
        columns = list(tree.find_all(exp.Column))
        own = bool(columns) and all(self.side(column, definition) == "source" for column in columns)
        return own and not tree.find(exp.Query)


@dataclass(frozen=True)
class ConditionFacts:
    """Facts that follow from a condition.

    Attributes:
        comparisons: (target column, a comparison of the column's bare name with literals that must hold).
        bounds: target column -> bounds of its values.
        equalities: target column -> expression over the source that the column must equal.
        others: the parts that AND joins, without ``equalities``.
        understood: True when there was a tree, so that ``equalities`` and ``others`` are the whole condition.
    """

    comparisons: tuple[tuple[str, exp.Expr], ...] = ()
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    equalities: Mapping[str, exp.Expr] = field(default_factory=dict)
    others: tuple[exp.Expr, ...] = ()
    understood: bool = False

    @property
    def only_equalities(self) -> bool:
        """True when the condition consists of ``equalities`` only."""
        return self.understood and not self.others

    def where(self, columns: Sequence[str]) -> exp.Expr | None:
        """Return the comparisons of the given columns, joined by AND; None without any."""
        found = [tree for name, tree in self.comparisons if name in columns]
        return exp.and_(*found) if found else None


@deep_recursion()
def condition_facts(tree: exp.Expr | None, definition: TableDefinition, names: Names) -> ConditionFacts:
    """Return the facts that follow from a condition; no facts without a tree."""
    if tree is None:
        return ConditionFacts()

    def target(node: exp.Expr) -> str | None:
        own = isinstance(node, exp.Column) and names.side(node, definition) == "target"
        return definition.column(node.name).name if own else None

    equal, others = equalities(conjuncts(tree), target, lambda value: names.of_source(value, definition))
    comparisons, bounds = list[tuple[str, exp.Expr]](), dict[str, Bound]()
    for part in others:
        found = Comparison.of(part)
        name = target(found.column) if found else None
        values = ValueSet.of(found, definition.column(name).type) if found and name else None
        if name is not None and values is not None and values.bounds != (None, None):
            comparisons.append((name, bare(part)))
            bounds[name] = _both(bounds.get(name, (None, None)), values.bounds)
    return ConditionFacts(tuple(comparisons), bounds, equal, tuple(others), True)


@deep_recursion()
def same_expression(one: exp.Expr | None, other: exp.Expr | None) -> bool:
    """Return True when two expressions without literals differ at most in case and quotes; False without a tree."""
    if one is None or other is None:
        return False
    # a literal's case is part of its value
    if one.find(exp.Literal) or other.find(exp.Literal):
        return False
    return with_lower_names(one) == with_lower_names(other)


def with_lower_names(tree: exp.Expr) -> exp.Expr:
    """Return an expression with names and keywords in lower case; literals stay, whose case is part of their value."""

    def lower(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier):
            return exp.Identifier(this=node.this.lower(), quoted=True)
        return exp.var(node.name.lower()) if isinstance(node, exp.Var) else node

    found: exp.Expr = tree.transform(lower)
    return found


def _both(one: Bound, other: Bound) -> Bound:
    lows = [v for v in (one[0], other[0]) if v is not None]
    highs = [v for v in (one[1], other[1]) if v is not None]
    return (max(lows) if lows else None, min(highs) if highs else None)


@deep_recursion()
def partition_columns(
    tree: exp.Expr | None, definition: TableDefinition, names: Names, files: Sequence[DataFile]
) -> list[Column] | None:
    """Return the partition columns that a condition names, if it names no other columns and every file has values.

    None for any other condition: it has to be evaluated row by row.
    """
    columns = {f.column for f in definition.partition_fields if f.identity}
    if tree is None or not all(file.partition.keys() >= columns for file in files):
        return None
    known, named = {name.lower() for name in columns}, list(tree.find_all(exp.Column))
    own = all(names.side(c, definition) == "target" and c.name.lower() in known for c in named)
    if not named or not own or not depends_on_columns_alone(tree):
        return None
    return [definition.column(name) for name in sorted(columns)]
