"""References to journalled tables in a statement, found by SQL's scopes, and replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.reading import live_rows
from trinity.journal.tables import JournalModel, JournalTable

_CARRIED: Final = ("joins", "laterals")
"""Arguments of a table in FROM that belong to the FROM clause."""


class Scopes:
    """The table references of one statement, and their replacements.

    Attributes:
        refers_to_model: True once a reference meant a journalled table, or a schema with another name on the backend.
    """

    def __init__(self, model: JournalModel, dialect: str) -> None:
        self._model = model
        self._dialect = dialect
        self.refers_to_model = False

    def find(self, table: exp.Table, hidden: frozenset[str] = frozenset()) -> JournalTable | None:
        """Return the journalled table that a reference means; ``hidden`` are the names of CTEs in scope."""
        if not isinstance(table.this, exp.Identifier):
            return None
        parts = (table.this, table.args.get("db"), table.args.get("catalog"))
        name, schema, catalog = (self._meant_name(p) if p is not None else "" for p in parts)
        if (not schema and name in hidden) or (catalog and catalog not in self._model.catalogs):
            return None
        found = self._model.find(schema, name)
        self.refers_to_model = self.refers_to_model or found is not None
        return found

    def journalled(self, table: exp.Table, hidden: frozenset[str] = frozenset()) -> JournalTable | None:
        """Find as :meth:`find`; raise TABLE_NOT_FOUND when the journal does not exist."""
        found = self.find(table, hidden)
        if found is not None and not found.columns:
            raise TrinityError(
                "TABLE_NOT_FOUND",
                f"Table {found} is journalled, and its journal {found.backend_schema}.{found.journal} does not exist. "
                f"CREATE TABLE {found} makes it.",
            )
        return found

    def replace(self, root: exp.Expr, hidden: frozenset[str] = frozenset(), target: exp.Expr | None = None) -> None:
        """Replace every journalled table below ``root`` by its live rows, except for ``target``, which is written."""
        stack: list[tuple[exp.Expr, frozenset[str]]] = [(root, hidden)]
        while stack:
            node, names = stack.pop()
            if isinstance(node, exp.Table):
                node = self.renamed(node) if node is target else self._replace_table(node, names)
            elif isinstance(node, exp.Column):
                self._unqualify(node)
            elif isinstance(node, exp.DML) and node is not root and not isinstance(node.parent, exp.When):
                raise TrinityError(
                    "NOT_SUPPORTED", "INSERT, UPDATE, DELETE and MERGE stand in the outermost WITH only."
                )
            stack.extend(self._children(node, names))

    def _meant_name(self, name: exp.Identifier) -> str:
        """Return the name that an identifier means; on Spark in lower case, quoted or not."""
        found = trees.folded(name)
        return found.lower() if self._dialect == "spark" else found

    def _replace_table(self, table: exp.Table, hidden: frozenset[str]) -> exp.Expr:
        found = self.journalled(table, hidden)
        if found is None:
            return self.renamed(table)
        for name, value in table.args.items():
            if value and name not in ("this", "db", "catalog", "alias", "version", *_CARRIED):
                raise TrinityError("NOT_SUPPORTED", f"{name.upper()} on journalled table {found} is not supported.")
        alias = table.args.get("alias")
        columns = alias.args.get("columns") or [] if alias is not None else []
        rows = live_rows(found, self._dialect, table.args.get("version"))
        inner = trees.derived(rows, trees.alias_name(table), columns)
        for name in _CARRIED:
            inner.set(name, table.args.get(name))
        table.replace(inner)
        return inner

    def renamed(self, node: exp.Expr) -> exp.Expr:
        """Rename the schema of an ordinary table, or of its column, to ``jdbcSchema`` where that differs."""
        schema = node.args.get("db")
        if isinstance(schema, exp.Identifier):
            name = self._meant_name(schema)
            backend = self._model.schemas.get(name, name)
            if backend != name:
                node.set("db", trees.identifier(backend))
                self.refers_to_model = True
        return node

    def _unqualify(self, column: exp.Column) -> None:
        """Shorten ``hr.depts.deptno`` to ``depts.deptno``, of the derived table; rename the schema of other tables."""
        schema, table = column.args.get("db"), column.args.get("table")
        if (
            schema is not None
            and table is not None
            and self._model.find(self._meant_name(schema), self._meant_name(table)) is not None
        ):
            column.set("db", None)
            column.set("catalog", None)
        self.renamed(column)

    def _children(self, node: exp.Expr, hidden: frozenset[str]) -> Iterator[tuple[exp.Expr, frozenset[str]]]:
        """Yield the nodes below, each with the CTE names in its scope."""
        clause = node.args.get("with_")
        inner = hidden
        if isinstance(clause, exp.With):
            names = [self._meant_name(c.args["alias"].this) for c in clause.expressions]
            if clause.args.get("recursive"):  # every member sees all of them
                inner = hidden | frozenset(names)
            for member, name in zip(clause.expressions, names, strict=True):
                yield member.this, inner
                inner = inner | {name}
        for child in node.iter_expressions():
            if child is not clause:
                yield child, inner
