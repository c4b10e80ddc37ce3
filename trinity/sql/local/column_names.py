"""Names for unnamed columns of a subquery: Spark derives them from the expressions, but here nobody sees them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from trinity.hidden import HIDDEN_PREFIX


def with_column_names(query: exp.Expr) -> exp.Expr:
    """Return a query whose columns all have names."""
    if not list(_unnamed(query)):
        return query
    named = query.copy()
    for number, column in list(_unnamed(named)):
        column.replace(exp.alias_(column.copy(), f"{HIDDEN_PREFIX}c{number}"))
    return named


def _unnamed(query: exp.Expr) -> Iterator[tuple[int, exp.Expr]]:
    """Yield index and expression of each column of a query that has no name of its own."""
    for select in _selects(query):
        for number, column in enumerate(select.expressions):
            if not isinstance(column, exp.Alias | exp.Column | exp.Star):
                yield number, column


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs whose rows make up a query's: one, or several for a UNION and the like."""
    if isinstance(query, exp.Select):
        yield query
    elif isinstance(query, exp.Subquery):
        yield from _selects(query.this)
    elif isinstance(query, exp.SetOperation):
        yield from _selects(query.this)
        yield from _selects(query.expression)
