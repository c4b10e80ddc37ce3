"""A predicate of a read, parsed once. The SQL parser is loaded only when there is a predicate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.spi import TableDefinition, parse_type

if TYPE_CHECKING:
    from sqlglot import exp

    from trinity.engine.expressions import Compiled
    from trinity.predicates.stats_tests import StatsTest

Where: TypeAlias = "str | exp.Expr"
"""Spark SQL of a condition, or its tree."""


@dataclass(frozen=True)
class Predicate:
    """A condition on a table's rows, given as Spark SQL over bare column names, or as its tree.

    ``timezone`` returns Spark's session time zone. It is called only for a timestamp that is written without zone.
    """

    definition: TableDefinition
    given: Where
    tree: exp.Expr
    timezone: Callable[[], str]

    @classmethod
    def of(
        cls, definition: TableDefinition, given: Where | None, timezone: Callable[[], str] = lambda: ""
    ) -> Predicate | NotLocal | None:
        """Return the predicate of a text or tree; None without one, a NotLocal for a text that only Spark parses."""
        if not given:
            return None
        if isinstance(given, str):
            from trinity.engine.expressions import local_tree

            tree = local_tree(given)
        else:
            tree = given
        return tree if isinstance(tree, NotLocal) else cls(definition, given, tree, timezone)

    @property
    def spark_text(self) -> str:
        """The predicate in Spark SQL, with comparisons in which Spark pads a CHAR; the tree keeps the given ones."""
        from trinity.syntax.operands import with_plain_comparisons

        with deep_recursion():
            text = self.given if isinstance(self.given, str) else self.tree.sql(dialect="spark", identify=True)
        return with_plain_comparisons(text)

    @classmethod
    def of_keys(cls, definition: TableDefinition, keys: pa.Table) -> Predicate | None:
        """Return the predicate that lists the keys; None for too many, or for types that have no exact literals."""
        from trinity.predicates.listed_keys import listing

        tree = listing(definition, keys)
        return None if tree is None else cls(definition, tree, tree, lambda: "")

    @cached_property
    def compiled(self) -> Compiled | NotLocal:
        """The predicate, compiled over rows of the visible columns. Raises as :func:`compile_predicate`."""
        from trinity.engine.expressions import Scope, compile_predicate

        return compile_predicate(self.tree, Scope.of(self.definition.visible), self.timezone)

    def stats_test(self, columns: frozenset[str] | None = None) -> StatsTest:
        """Return a test of statistics that never rejects a file with a matching row; ``columns`` may limit it."""
        if columns not in self._stats_tests:
            from trinity.predicates.stats_tests import stats_test

            known = {c.name.lower(): (c.name, c.type) for c in self.definition.columns}
            used = known if columns is None else {name.lower(): known[name.lower()] for name in columns}
            self._stats_tests[columns] = stats_test(self.tree, used, self.timezone)
        return self._stats_tests[columns]

    @cached_property
    def _stats_tests(self) -> dict[frozenset[str] | None, StatsTest]:
        return {}

    @cached_property
    def listed_keys(self) -> pa.Table | None:
        """The keys that the predicate lists, for a keyed table; None when it lists none."""
        from trinity.predicates.listed_keys import listed_keys

        return listed_keys(self.definition, self.tree, self.timezone) if self.definition.keyed else None

    @cached_property
    def filters_keys(self) -> bool:
        """True when the predicate may be applied below the fold, where each version of a key is tested for itself.

        It depends on key columns alone, so that it has one value for all versions of a key; none has type TIME.
        """
        from sqlglot import exp

        from trinity.predicates.comparisons import depends_on_columns_alone

        key = {k.lower() for k in self.definition.primary_key}
        with deep_recursion():
            named = {c.parts[0].name.lower() for c in self.tree.find_all(exp.Column)}
        plain = all(parse_type(self.definition.column(n).type).name != "time" for n in named & key)
        return named <= key and plain and depends_on_columns_alone(self.tree)
