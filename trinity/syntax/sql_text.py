"""An expression as Spark SQL, which is parsed at most once, by whoever asks for its tree first."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


class SqlText(str):
    """Spark SQL of an expression, as Spark gets it, and its tree."""

    @cached_property
    def tree(self) -> exp.Expr | None:
        """Its tree, which is shared, and which nobody changes; None for a text that sqlglot cannot parse."""
        from trinity.syntax.parse import expression_or_none

        return expression_or_none(self)


def with_tree(text: str) -> SqlText:
    """Return a text with its tree; the same object where it has one."""
    return text if isinstance(text, SqlText) else SqlText(text)


def tree_of(expression: object) -> exp.Expr | None:
    """Return the tree of an expression of a program; None for a Column, and for text that sqlglot cannot parse."""
    return with_tree(expression).tree if isinstance(expression, str) else None
