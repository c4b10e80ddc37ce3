"""One expression of Spark SQL as sqlglot reads it, for what can be told from its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from trinity.depth import room

__all__ = ["UNREADABLE", "conjuncts", "spark_tree"]

UNREADABLE: Final = (SqlglotError, ValueError, LookupError, TypeError, AttributeError)
"""Errors that sqlglot raises of a text: its builders stumble over a wrong number of arguments, as in ``map(1)``."""


@room()
def spark_tree(text: str) -> exp.Expr | None:
    """The expression; None for what sqlglot cannot read, and for several."""
    try:
        trees = sqlglot.parse(text, dialect="spark")
    except UNREADABLE:
        return None
    return trees[0] if len(trees) == 1 else None


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a predicate that AND joins."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for part in tree.flatten():
            yield from conjuncts(part)
    else:
        yield tree
