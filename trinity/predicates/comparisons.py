"""What the parts of a condition say: comparisons of columns, sets of values that meet them, what a part depends on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import le, lt
from typing import Any, Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.predicates.literals import literal_value

Bound = tuple[Any, Any]
"""(smallest, largest) value; None for no bound on that side."""
FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.EQ: exp.EQ, exp.NullSafeEQ: exp.NullSafeEQ, exp.NEQ: exp.NEQ,
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
"""Operator -> the operator that means the same with the two sides exchanged."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column with other expressions.

    Attributes:
        column: the column.
        operator: the operator with the column on its left; ``exp.Is`` for IS NULL.
        values: the other operands: the bounds of BETWEEN, the elements of IN, none for IS NULL.
        negated: whether NOT stands before the comparison.
    """

    column: exp.Column
    operator: type[exp.Expr]
    values: tuple[exp.Expr, ...]
    negated: bool

    @classmethod
    def of(cls, part: exp.Expr) -> Comparison | None:
        """Return a part of a predicate as a comparison of a column; None if it is none."""
        part = part.unnest()
        negated = isinstance(part, exp.Not)
        part = part.this.unnest() if negated else part
        if isinstance(part, exp.Column):  # a BOOLEAN by itself
            return cls(part, exp.EQ, (exp.true(),), negated)
        sides = _sides(part)
        if sides is None:
            return None
        operator, column, values = sides
        return cls(column, operator, values, negated) if isinstance(column, exp.Column) else None


def _sides(part: exp.Expr) -> tuple[type[exp.Expr], exp.Expr, tuple[exp.Expr, ...]] | None:
    """Return the operator, its left side and its other operands; None for other predicates."""
    operator = type(part)
    if isinstance(part, exp.Between):
        return None if part.args.get("symmetric") else (operator, part.this, (part.args["low"], part.args["high"]))
    if isinstance(part, exp.In):
        listed = part.expressions and not part.args.get("query") and not part.args.get("unnest")
        return (operator, part.this, tuple(part.expressions)) if listed else None
    if isinstance(part, exp.Is):
        return (operator, part.this, ()) if isinstance(part.expression, exp.Null) else None
    if operator not in FLIPPED:
        return None
    if isinstance(part.this, exp.Column):
        return operator, part.this, (part.expression,)
    return FLIPPED[operator], part.expression, (part.this,)


@dataclass(frozen=True)
class ValueSet:
    """A set of values of a column.

    Attributes:
        bounds: bounds of the values.
        strict: True when the bounds themselves are not in the set.
        listed: all the values, ascending; None if the set is not a list.
        excluded: values that are not in the set.
    """

    bounds: Bound = (None, None)
    strict: bool = False
    listed: Sequence[Any] | None = None
    excluded: Collection[Any] = ()

    @classmethod
    def listing(cls, values: Collection[Any]) -> ValueSet:
        """Return the set of the given values, of which there must be at least one."""
        listed = sorted(values)
        return cls((listed[0], listed[-1]), listed=listed)

    @classmethod
    def of(cls, found: Comparison, kind: str, timezone: Callable[[], str] = lambda: "") -> ValueSet | None:
        """Return the values that meet a comparison; None if they are not certain.

        Args:
            found: the comparison.
            kind: the column's type.
            timezone: as in :func:`~trinity.predicates.literals.literal_value`.
        """
        values = [literal_value(value, kind, timezone) for value in found.values]
        if not values or None in values:
            return None
        if (found.operator, found.negated) in ((exp.EQ, True), (exp.In, True), (exp.NEQ, False)):
            return cls(excluded=values)
        if found.negated or found.operator is exp.NEQ:
            return None
        if found.operator in (exp.EQ, exp.NullSafeEQ, exp.In):
            return cls.listing(values)
        strict = found.operator in (exp.LT, exp.GT)
        if found.operator in (exp.LT, exp.LTE):
            return cls((None, values[0]), strict)
        return cls((values[0], values[1] if found.operator is exp.Between else None), strict)

    def meets(self, smallest: Any, largest: Any) -> bool:
        """Return True unless no value of the set is within bounds; also for bounds of a type that does not compare."""
        try:
            if self.listed is not None:
                index = bisect_left(self.listed, smallest)
                return index < len(self.listed) and bool(self.listed[index] <= largest)
            if self.excluded:
                return bool(smallest != largest or smallest not in self.excluded)
            reaches, (low, high) = lt if self.strict else le, self.bounds
            return (low is None or reaches(low, largest)) and (high is None or reaches(smallest, high))
        except TypeError:
            return True


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a predicate that AND joins."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for part in tree.flatten():
            yield from conjuncts(part)
    else:
        yield tree


def bare(tree: exp.Expr) -> exp.Expr:
    """Return a copy of an expression in which columns have no table names."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return tree


def equal_sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield (left, right) and (right, left) of an equality; nothing for another part of a predicate."""
    if isinstance(part, exp.EQ):
        yield part.this, part.expression
        yield part.expression, part.this


def equalities(
    parts: Iterable[exp.Expr], name_of: Callable[[exp.Expr], str | None], is_value: Callable[[exp.Expr], bool]
) -> tuple[dict[str, exp.Expr], list[exp.Expr]]:
    """Return (column name -> the expression that it must equal, the other parts of a predicate).

    If a column has several equalities, the first one counts; the others are among the other parts.

    Args:
        parts: the parts that AND joins.
        name_of: returns the name of a side that is one of the columns in question; None for another side.
        is_value: returns whether a side is an expression that such a column may be compared with.
    """
    found, others = dict[str, exp.Expr](), []
    for part in parts:
        named = ((name_of(one), other) for one, other in equal_sides(part))
        pair = next(((n, value) for n, value in named if n is not None and n not in found and is_value(value)), None)
        if pair is None:
            others.append(part)
        else:
            found[pair[0]] = pair[1]
    return found, others


@deep_recursion()
def depends_on_columns_alone(tree: exp.Expr) -> bool:
    """Return True when an expression has one value for the same values of its columns, in whichever file they are.

    False where that is not certain: of functions, as ``rand()`` and ``input_file_name()``, for a session may have its
    own under any name, and of subqueries.
    """
    return all(isinstance(node, _OF_COLUMNS) for node in tree.walk())


_OF_COLUMNS: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Connector, exp.Predicate, exp.Not,
    exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.DPipe, exp.Escape, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Tuple, exp.Interval, exp.Var, exp.HexString,
)  # fmt: skip
"""The kinds of nodes that make an expression depend on nothing but columns: operators, literals and casts."""
