"""A predicate of a read, parsed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from trinity.depth import room
from trinity.engine.expressions import Compiled, Scope, compile_predicate, expression_tree
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.listed_keys import listed_keys
from trinity.spi import TableDefinition, parse_type

__all__ = ["Predicate", "Where"]

Where: TypeAlias = str | exp.Expr
"""Spark SQL of a condition, or its tree."""


@dataclass(frozen=True)
class Predicate:
    """A condition on a table's rows.

    Attributes:
        definition: the table.
        given: Spark SQL over bare column names, or its tree.
        tree: its tree.
        timezone: Spark's session time zone, which timestamps without zone are of; asked only when there is one.
    """

    definition: TableDefinition
    given: Where
    tree: exp.Expr
    timezone: Callable[[], str]

    @classmethod
    def of(
        cls, definition: TableDefinition, given: Where | None, timezone: Callable[[], str] = lambda: ""
    ) -> Predicate | NotLocal | None:
        """Return the predicate of a text or tree; None without one, and why for a text that only Spark can read."""
        if not given:
            return None
        tree = expression_tree(given) if isinstance(given, str) else given
        return tree if isinstance(tree, NotLocal) else cls(definition, given, tree, timezone)

    @property
    def text(self) -> str:
        """The predicate as Spark SQL: as it was given, where that is text."""
        with room():
            return self.given if isinstance(self.given, str) else self.tree.sql(dialect="spark", identify=True)

    @cached_property
    def compiled(self) -> Compiled | NotLocal:
        """The predicate over rows of the visible columns. Raises as :func:`compile_predicate`."""
        return compile_predicate(self.tree, Scope.of(self.definition.visible), self.timezone)

    @cached_property
    def listed_keys(self) -> pa.Table | None:
        """All keys for which it may be true, of a keyed table, where it lists them."""
        return listed_keys(self.definition, self.tree, self.timezone) if self.definition.keyed else None

    @cached_property
    def filters_keys(self) -> bool:
        """True where it may be applied below the fold: it names key columns alone, all of them stored as they are."""
        key = {k.lower() for k in self.definition.primary_key}
        with room():
            named = {c.name.lower() for c in self.tree.find_all(exp.Column)}
        plain = all(parse_type(self.definition.column(n).type).name != "time" for n in named & key)
        return named <= key and plain
