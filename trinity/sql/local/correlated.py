"""Correlated subqueries, computed once for all outer rows, which then find their rows by keys.

The keys are the expressions that the WHERE of the subquery equates with columns of the outer row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import Refused
from trinity.errors import TrinityError
from trinity.hidden import HIDDEN_PREFIX
from trinity.predicates.comparisons import conjuncts, equal_sides
from trinity.sql.local.column_names import with_column_names
from trinity.sql.queries.references import joined_nodes

_UNDERSTOOD: Final = frozenset({"expressions", "from_", "joins", "where", "with_", "distinct"})


@dataclass(frozen=True)
class OuterQuery:
    """The columns of the outer query that a subquery may name.

    Attributes:
        named: returns the column of the outer query that a name means: (number of parts that name it, the column).
            The column is None if only Spark knows it; the result is None for a name that is no column.
        has: returns True for the bare name of a column of the outer query.
        tables: names, in lower case, of the tables and queries in the FROM of the subquery.
        columns: names, in lower case, of the columns of these.
    """

    named: Callable[[Sequence[str]], tuple[int, exp.Expr | None] | None]
    has: Callable[[str], bool]
    tables: Collection[str] = ()
    columns: Collection[str] = ()

    def columns_in(self, tree: exp.Expr) -> list[exp.Column]:
        """Return the columns of the outer query in an expression. Raises COLUMN_NOT_FOUND."""
        nodes = tree.dfs(prune=lambda node: isinstance(node, exp.Query))
        return [node for node in nodes if isinstance(node, exp.Column) and self._is_outer(node)]

    def _is_outer(self, column: exp.Column) -> bool:
        if isinstance(column.this, exp.Star):
            return False
        names = [part.name for part in column.parts]
        first = names[0].lower()
        if first in self.columns or (len(names) > 1 and first in self.tables):
            return False
        return self.named(names) is not None

    def key(self, part: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        """Return (expression over the subquery's rows, expression over the outer row) that a condition equates.

        Raises:
            Refused: for a condition that is no such equality.
        """
        for own, other in equal_sides(part):
            theirs = list(other.find_all(exp.Column))
            of_one_side = len(self.columns_in(other)) == len(theirs) and not self.columns_in(own)
            if theirs and own.find(exp.Column) and of_one_side and not part.find(exp.Query):
                return own, other.copy().transform(self._with_engine_name)
        raise Refused("a subquery names a column of the outer query otherwise than in an equality")

    def _with_engine_name(self, node: exp.Expr) -> exp.Expr:
        """Return a column of the outer row under its name in the engine; return other nodes as they are."""
        if not isinstance(node, exp.Column):
            return node
        found = self.named([part.name for part in node.parts])
        known = None if found is None or found[0] < len(node.parts) else found[1]
        if known is None:
            raise Refused(f"only Spark finds rows by '{node.sql(dialect='spark')}'")
        return known.copy()


@dataclass(frozen=True)
class _Correlated:
    """A correlated subquery as a query over all outer rows, whose first columns are the keys.

    Attributes:
        query: the query of all rows that some outer row may see.
        keys: for each key, the expression over the outer row that equals it.
        of_none: the query of the aggregates over no rows, for outer rows that find none; None where that is NULL, or no
            row.
    """

    query: exp.Select
    keys: Sequence[exp.Expr]
    of_none: exp.Select | None

    def rows_of(self, name: str) -> exp.Select:
        """Return the query of the rows that the outer row sees; ``name`` is the name of the rows of ``query``."""
        pairs = [exp.EQ(this=exp.column(_key(n), table=name), expression=key) for n, key in enumerate(self.keys)]
        return _all_of(name).where(*pairs)


def _all_of(name: str) -> exp.Select:
    return exp.select(exp.Star()).from_(exp.Table(this=exp.to_identifier(name)))


def rows_seen(
    tree: exp.Expr,
    word: str,
    outer: OuterQuery,
    names_in: Callable[[exp.Select], Sequence[str]],
    keep_rows: Callable[[exp.Expr], str],
) -> exp.Expr:
    """Run a subquery once, and return a query that selects from its rows those that the outer row sees.

    Args:
        tree: the subquery.
        word: the keyword before it: EXISTS, IN, or another one where it is a value.
        outer: the columns of the outer query.
        names_in: returns the names of the columns of a query.
        keep_rows: runs a query, keeps its rows, and returns their name.

    Raises:
        TrinityError: the errors of :meth:`trinity.Session.sql` for a query.
        Refused: for a subquery that only Spark can run.
    """

    def subquery_rows(query: exp.Expr) -> str:
        try:
            return keep_rows(query)
        except TrinityError as error:
            if error.code == "COLUMN_NOT_FOUND" and any(outer.has(c.name) for c in query.find_all(exp.Column)):
                raise Refused("a subquery names a column of the outer query") from None
            raise

    tree = with_column_names(tree)
    found = None
    if isinstance(tree, exp.Select) and tree.args.get("from_") is not None and tree.args.get("where") is not None:
        everything = tree.copy()
        for clause in everything.args.keys() - {"with_", "from_", "joins", "laterals"}:
            everything.set(clause, None)
        everything.set("expressions", [exp.Star()])
        tables = {node.alias_or_name.lower() for node in joined_nodes(tree)}
        columns = {name.lower() for name in names_in(everything)}
        found = _correlated(tree, replace(outer, tables=tables, columns=columns), word)
    if found is None:
        return _all_of(subquery_rows(tree))
    rows = found.rows_of(subquery_rows(found.query))
    if found.of_none is None:
        return rows
    of_none = _all_of(subquery_rows(found.of_none))
    return exp.If(this=exp.Exists(this=rows), true=rows.copy().subquery(), false=of_none.subquery())


def _correlated(tree: exp.Select, outer: OuterQuery, word: str) -> _Correlated | None:
    """Return a subquery as one whose rows are found by keys; None if its WHERE names no column of the outer query."""
    parts = list(conjuncts(tree.args["where"].this))
    keys = [outer.key(part) for part in parts if outer.columns_in(part)]
    rest = [part for part in parts if not outer.columns_in(part)]
    if not keys:
        return None
    if further := {name for name, value in tree.args.items() if value} - _UNDERSTOOD:
        raise Refused(f"only Spark runs '{min(further).strip('_').upper()}' in a correlated subquery")
    values = list(tree.expressions)
    if word == "EXISTS":
        values = [value for value in values if not isinstance(value.unalias(), exp.Star | exp.Literal)]
    aggregates = [value for value in values if value.find(exp.AggFunc)]
    if aggregates and word in ("EXISTS", "IN"):
        raise Refused(f"only Spark runs {word} of a subquery that aggregates for each outer row")
    owns = [own for own, _ in keys]
    query = tree.copy()
    query.set("expressions", [*(exp.alias_(own, _key(n), quoted=True) for n, own in enumerate(owns)), *values])
    query.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    query.set("group", exp.Group(expressions=owns) if aggregates else None)
    of_none = None
    if any(not isinstance(value.unalias(), exp.Min | exp.Max | exp.Sum) for value in aggregates):
        of_none = tree.copy()
        of_none.set("where", exp.Where(this=exp.false()))
    return _Correlated(query, [other for _, other in keys], of_none)


def rows_name(number: int) -> str:
    """Return the name under which the rows of a subquery are selected."""
    return f"{HIDDEN_PREFIX}rows{number}"


def _key(number: int) -> str:
    return f"{HIDDEN_PREFIX}key{number}"
