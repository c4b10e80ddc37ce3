"""Rewriting of aggregate functions into those that DuckDB computes as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import BOOLEAN, MEAN, Refused
from trinity.spi import DataType

EXACT_SUM: Final = "trinity_of_whole_numbers"
"""Key in the meta of a SUM over whole numbers as DOUBLE, whose result does not depend on their order."""
_MOST_DIGITS_IN_DOUBLE: Final = 11
"""Precision of the widest DECIMAL whose average Spark computes as DOUBLE."""
_EXTREMES: Final[dict[str, type[exp.AggFunc]]] = {
    "bool_or": exp.Max, "some": exp.Max, "any": exp.Max, "bool_and": exp.Min, "every": exp.Min,
}  # fmt: skip


def simpler(tree: exp.Expr, type_of: Callable[[exp.Expr], DataType]) -> exp.Expr:
    """Replace aggregate functions that can be computed from count, sum, min and max.

    Raises:
        Refused: for an average of a type that only Spark computes, and for a condition that is not BOOLEAN.
    """

    def extreme(function: type[exp.AggFunc], condition: exp.Expr) -> exp.Expr:
        known = isinstance(condition.unnest(), exp.Predicate | exp.Connector | exp.Not)
        if not known and (kind := type_of(condition)) != BOOLEAN:
            raise Refused(f"only Spark takes a condition of {kind}")
        return function(this=condition.copy())

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):
            return _in_window(node, simpler(node.this, type_of))
        if isinstance(node, exp.Filter):
            return simpler(_of_some_rows(node), type_of)
        if isinstance(node, exp.CountIf):
            return exp.Count(this=_where(node.this, exp.Literal.number(1)))
        if isinstance(node, exp.LogicalOr | exp.LogicalAnd):
            return extreme(exp.Max if isinstance(node, exp.LogicalOr) else exp.Min, node.this)
        if isinstance(node, exp.Anonymous) and len(node.expressions) == 1 and node.name.lower() in _EXTREMES:
            return extreme(_EXTREMES[node.name.lower()], node.expressions[0])
        return _average(node.this, type_of(node.this)) if isinstance(node, exp.Avg) else node

    return tree.copy().transform(replaced)


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


_OF_KNOWN: Final = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.ArrayAgg, exp.ArrayUniqueAgg)
"""Functions that ignore NULL."""


def _of_some_rows(node: exp.Filter) -> exp.Expr:
    """Return an aggregate function with FILTER as one without: in other rows its argument is NULL, which it ignores."""
    call: exp.Expr = node.this.copy()
    condition = node.expression.this
    taken = call.this
    if isinstance(taken, exp.Distinct) and len(taken.expressions) == 1:
        taken.set("expressions", [_where(condition, taken.expressions[0])])
    elif isinstance(call, exp.Count) and (taken == exp.Star() or isinstance(taken, exp.Literal)):
        call.set("this", _where(condition, exp.Literal.number(1)))
    elif isinstance(call, exp.ArgMax | exp.ArgMin):
        call.set("expression", _where(condition, call.expression))
    elif isinstance(call, _OF_KNOWN) and not isinstance(taken, exp.Distinct):
        call.set("this", _where(condition, taken))
    else:
        raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'")
    return call


def _in_window(window: exp.Window, found: exp.Expr) -> exp.Expr:
    """Return a rewritten window function: each aggregate in it is over the window."""
    if not isinstance(found, exp.Case) and found.name != MEAN:
        window.set("this", found)
        return window

    def over(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.AggFunc):
            return node
        part = window.copy()
        part.set("this", node)
        return part

    return found.transform(over)


def _average(value: exp.Expr, kind: DataType) -> exp.Expr:
    """Return AVG as a sum divided by a count, computed in the type that Spark uses."""
    count = exp.Count(this=value.copy())
    if kind.is_integer or kind.is_floating:
        return _unless_zero(count, exp.Div(this=_sum_of_doubles(value, kind), expression=count.copy()))
    if kind.name != "decimal":
        raise Refused(f"only Spark computes the average of {kind}")
    precision, scale = kind.arguments
    if precision > _MOST_DIGITS_IN_DOUBLE:
        return exp.Anonymous(this=MEAN, expressions=[exp.Sum(this=value.copy()), count])
    units = exp.Mul(this=exp.paren(value.copy()), expression=exp.Literal.number(10**scale))
    mean = exp.Div(this=_sum_of_doubles(units, DataType("bigint")), expression=count.copy())
    mean = exp.Div(this=mean, expression=exp.cast(exp.Literal.number(10**scale), "DOUBLE"))
    return _unless_zero(count, exp.cast(mean, f"DECIMAL({precision + 4}, {scale + 4})"))


def _sum_of_doubles(value: exp.Expr, kind: DataType) -> exp.Expr:
    total = exp.Sum(this=exp.cast(value.copy(), "DOUBLE"))
    total.meta[EXACT_SUM] = kind.is_integer
    return total


def _unless_zero(count: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=exp.GT(this=count.copy(), expression=exp.Literal.number(0)), true=value)])
