"""The SET list of an UPDATE, as one value for each column."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable


def assignments(nodes: Iterable[exp.Expr], table: JournalTable, dialect: str) -> dict[str, exp.Expr]:
    """Return column -> new value, over the old row.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME; NOT_SUPPORTED for a part of a column.
    """
    found: dict[str, exp.Expr] = {}
    for node in nodes:
        for name, value in _pairs(node, table):
            column = table.visible_column(name)
            if column.name in found:
                raise TrinityError("DUPLICATE_COLUMN_NAME", f"UPDATE {table} sets column '{name}' twice.")
            if column.generated and trees.is_default(value):
                continue
            if column.generated:
                raise TrinityError("INVALID_ARGUMENTS", f"Column '{name}' of {table} is generated; it cannot be set.")
            found[column.name] = trees.default_of(column, dialect) if trees.is_default(value) else value.copy()
    return found


def _pairs(node: exp.Expr, table: JournalTable) -> list[tuple[str, exp.Expr]]:
    target, value = (node.this, node.expression) if isinstance(node, exp.EQ) else (None, None)
    if isinstance(target, exp.Paren):
        target = exp.Tuple(expressions=[target.this])
    if isinstance(target, exp.Tuple) and value is not None:
        names = [_name(c, table) for c in target.expressions]
        return list(zip(names, _parts(value, len(names), table), strict=True))
    if target is None or value is None:
        raise TrinityError("SYNTAX_ERROR", f"UPDATE {table}: '{node.sql(dialect='postgres')}' is no assignment.")
    return [(_name(target, table), value)]


def _name(node: exp.Expr, table: JournalTable) -> str:
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"UPDATE {table}: '{node.sql(dialect='postgres')}' is no column; set the whole column.",
        )
    return trees.folded(node.this)


def _parts(value: exp.Expr, count: int, table: JournalTable) -> list[exp.Expr]:
    """Split ``(1, 2)``, ``ROW(1, 2)`` or a subquery of several columns into one expression for each column."""
    if isinstance(value, exp.Paren) and count == 1:
        return [value.this]
    row = isinstance(value, exp.Tuple) or (isinstance(value, exp.Anonymous) and str(value.name).upper() == "ROW")
    if row and len(value.expressions) == count:
        return list(value.expressions)
    query = value.this if isinstance(value, exp.Subquery) else value
    if isinstance(query, exp.Query):
        return [_one_column(query, i, count) for i in range(count)]
    raise TrinityError(
        "NOT_SUPPORTED", f"UPDATE {table}: assign {count} columns from a row or a SELECT of {count} columns."
    )


def _one_column(query: exp.Query, index: int, count: int) -> exp.Expr:
    """Return a subquery that selects one column of a query of ``count`` columns."""
    names = [trees.identifier(f"c{i}") for i in range(count)]
    return exp.Subquery(
        this=trees.select([trees.column(f"c{index}", "row_")], trees.derived(query.copy(), "row_", names))
    )
