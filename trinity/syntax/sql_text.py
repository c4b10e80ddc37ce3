"""The text of an expression in Spark SQL with its tree, which is parsed when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


class SqlText(str):
    """The text of an expression in Spark SQL, as Spark gets it, with its tree."""

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The tree, which is shared and must not be changed; None for a text that sqlglot cannot parse."""
        from trinity.syntax.parse import expression_or_none

        return expression_or_none(self)


def with_tree(text: str) -> SqlText:
    """Return a text with its tree; a text that has one already is returned itself."""
    return text if isinstance(text, SqlText) else SqlText(text)


def tree_of(expression: object) -> exp.Expr | None:
    """Return the tree of an expression that a program gave; None for a Column, and for text that cannot be parsed."""
    return with_tree(expression).tree if isinstance(expression, str) else None
