"""Copies of expressions, for other places than where they were written."""

from __future__ import annotations

from sqlglot import exp


def as_operand(value: exp.Expr) -> exp.Expr:
    """Return a copy of an expression, in parentheses where an operator beside it could take it apart."""
    simple = isinstance(value, exp.Column | exp.Literal | exp.Paren | exp.Func | exp.Subquery)
    return value.copy() if simple else exp.Paren(this=value.copy())


def bare(tree: exp.Expr) -> exp.Expr:
    """Return a copy of an expression that names columns without the table."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return tree
