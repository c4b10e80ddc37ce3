"""Subqueries in the expressions of a SELECT. Each is computed once, for all outer rows, when a value first needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pyarrow as pa
from sqlglot import exp

from trinity.engine.expressions import Refused, Scope, SubqueryRows
from trinity.hidden import HIDDEN_PREFIX
from trinity.sql.local.correlated import OuterQuery, rows_name, rows_seen
from trinity.sql.local.insert import reader_with_names
from trinity.sql.local.relations import Relation


def own_nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return the nodes of an expression or a SELECT, except for those within subqueries."""
    return list(tree.dfs(prune=lambda node: node is not tree and isinstance(node, exp.Query)))


def of_subquery_rows(column: exp.Column) -> bool:
    """Return whether a column is one of a subquery's rows, as :meth:`Subqueries.within` names them."""
    return column.text("table").startswith(HIDDEN_PREFIX)


class Subqueries:
    """The subqueries of one SELECT. The rows of each are put into ``subquery_rows`` under a new name."""

    def __init__(
        self,
        rows_of: Callable[[exp.Expr], Relation],
        names_in: Callable[[exp.Expr], Sequence[str]],
        outer: Scope,
        subquery_rows: dict[str, SubqueryRows],
    ) -> None:
        self.subquery_rows = subquery_rows
        self._rows_of, self._names_in, self._outer = rows_of, names_in, outer

    def within(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression whose subqueries are replaced by queries over rows in ``subquery_rows``.

        Raises:
            Refused: for a subquery that only Spark runs.
            TrinityError: the errors of :meth:`trinity.Session.sql` for a query.
        """
        return tree.copy().transform(self._replaced) if tree.find(exp.Query) else tree

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Exists):
            return exp.Exists(this=self._rows_seen(node.this, "EXISTS"))
        if isinstance(node, exp.In) and (query := node.args.get("query")) is not None:
            return exp.In(this=self.within(node.this), query=self._rows_seen(query, "IN"))
        return exp.Paren(this=self._rows_seen(node, "=")) if isinstance(node, exp.Subquery) else node

    def _rows_seen(self, query: exp.Expr, word: str) -> exp.Expr:
        outer = OuterQuery(self._named, lambda name: self._outer.has("", name))
        return rows_seen(query.unnest(), word, outer, self._names_in, self._keep_rows)

    def _keep_rows(self, query: exp.Expr) -> str:
        """Keep the rows of a query, and return their name."""
        relation = self._rows_of(query)
        names = [column.name for column in relation.columns]
        schema = pa.schema([(name, field.type) for name, field in zip(names, relation.schema, strict=True)])
        if pa.null() in schema.types:
            raise Refused("only Spark runs a subquery of NULLs without type")
        name = rows_name(len(self.subquery_rows))
        self.subquery_rows[name] = SubqueryRows(schema, cache(lambda: reader_with_names(relation, names).read_all()))
        return name

    def _named(self, parts: Sequence[str]) -> tuple[int, exp.Expr]:
        """Return the column of the outer query that a name means, as ``named`` of :class:`OuterQuery`."""
        rest = list(self._outer.from_table(parts))
        before = len(parts) - len(rest)
        with_table = len(rest) > 1 and self._outer.has(*rest[:2])
        found = self._outer.find(*rest[:2]) if with_table else self._outer.find("", rest[0])
        column = exp.column(found.name, table=found.qualifier or None, quoted=True)
        return before + (2 if with_table else 1), column
