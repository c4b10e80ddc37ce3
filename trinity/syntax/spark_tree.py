"""Expressions of Spark SQL as sqlglot's trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from trinity.depth import deep_recursion

__all__ = ["UNREADABLE", "conjuncts", "spark_tree"]

UNREADABLE: Final = (SqlglotError, ValueError, LookupError, TypeError, AttributeError)
"""Errors that sqlglot raises for a text; its builders fail for a wrong number of arguments, as in ``map(1)``."""


@deep_recursion()
def spark_tree(text: str) -> exp.Expr | None:
    """Parse one expression; None when sqlglot cannot, or when there are several."""
    try:
        trees = sqlglot.parse(text, dialect="spark")
    except UNREADABLE:
        return None
    return trees[0] if len(trees) == 1 else None


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a predicate that AND joins."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for part in tree.flatten():
            yield from conjuncts(part)
    else:
        yield tree
