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

    def changed_to(self, text: str) -> SqlText:
        """Return another text; the same object for the same text."""
        return self if text == self else SqlText(text)
