"""Comparisons of a column with other expressions, and equalities, as AND joins them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.EQ: exp.EQ, exp.NullSafeEQ: exp.NullSafeEQ, exp.NEQ: exp.NEQ,
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
"""Operator -> the one that means the same with its sides exchanged."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column with other expressions.

    Attributes:
        operator: the operator with the column on its left; ``exp.Is`` for IS NULL.
        values: what it is compared with: the bounds of BETWEEN, the elements of IN, none for IS NULL.
        negated: whether NOT stands before it.
    """

    column: exp.Column
    operator: type[exp.Expr]
    values: tuple[exp.Expr, ...]
    negated: bool

    @classmethod
    def of(cls, part: exp.Expr) -> Comparison | None:
        """Return the comparison of a part of a predicate; None for other parts."""
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


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a predicate that AND joins."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for part in tree.flatten():
            yield from conjuncts(part)
    else:
        yield tree


def bare(tree: exp.Expr) -> exp.Expr:
    """Return a copy of an expression that names columns without the table."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return tree


def equal_sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield both sides of an equality, then both the other way round; nothing for another part of a predicate."""
    if isinstance(part, exp.EQ):
        yield part.this, part.expression
        yield part.expression, part.this


def equalities(
    parts: Iterable[exp.Expr], name_of: Callable[[exp.Expr], str | None], is_value: Callable[[exp.Expr], bool]
) -> tuple[dict[str, exp.Expr], list[exp.Expr]]:
    """Split the parts that AND joins: name -> what the column must equal, and the parts that are no such equality.

    ``name_of`` returns the name of a side that is one of the columns in question, ``is_value`` accepts what one is
    compared with. Of several equalities of a column the first one counts.
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
