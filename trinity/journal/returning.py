"""RETURNING: the rows after the statement, without the version columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable


def expand(
    tree: exp.Expr, table: JournalTable, alias: exp.Identifier, others: Sequence[exp.Expr] = ()
) -> list[exp.Expr] | None:
    """Return the expressions of RETURNING, with ``*`` expanded: the target's columns, other tables as whole rows.

    None without RETURNING. ``others`` are the other items of FROM or USING, or a MERGE's source; a MERGE's ``*`` has
    their columns before the target's.

    Raises:
        TrinityError: NOT_SUPPORTED for ``*`` over a join whose columns are merged, or over a table without a name.
    """
    if (clause := tree.args.get("returning")) is None:
        return None
    found: list[exp.Expr] = []
    name = trees.folded(alias)
    own: list[exp.Expr] = [trees.column(c.name, alias) for c in table.visible]
    for node in clause.expressions:
        if isinstance(node, exp.Star):
            rows = [_row_of(n) for n in _names(others)]
            found += [*rows, *own] if isinstance(tree, exp.Merge) else [*own, *rows]
        elif not isinstance(node, exp.Column) or not isinstance(node.this, exp.Star):
            found.append(node.copy())
        elif trees.folded(node.args["table"]) == name:
            found += own
        else:
            found.append(_row_of(node.args["table"]))
    return [node.copy() for node in found]


def _row_of(name: exp.Identifier) -> exp.Expr:
    """Return ``(name).*``: in PostgreSQL a table's name is its whole row, a column of ``_trinity_changed``."""
    return exp.Dot(this=exp.Paren(this=exp.Column(this=name.copy())), expression=exp.Star())


def _names(others: Sequence[exp.Expr]) -> Iterator[exp.Identifier]:
    for other in others:
        alias = other.args.get("alias")
        name = alias.this if alias is not None else other.this
        joins = other.args.get("joins") or []
        if not isinstance(name, exp.Identifier) or any(j.args.get("using") or j.args.get("method") for j in joins):
            raise TrinityError(
                "NOT_SUPPORTED",
                "RETURNING * over a NATURAL or USING join, or a table without a name; list the columns.",
            )
        yield name
        yield from _names([join.this for join in joins])


def of_target(node: exp.Expr, table: JournalTable, alias: exp.Identifier) -> bool:
    """Return True when an expression of RETURNING reads only the target's columns.

    Raises:
        TrinityError: COLUMN_NOT_FOUND for a version column, NOT_SUPPORTED for the whole row as one value.
    """
    name, alone = trees.folded(alias), True
    for column in node.find_all(exp.Column):
        if not isinstance(column.this, exp.Identifier) or column.find_ancestor(exp.Select):
            continue
        qualifier, own = column.args.get("table"), trees.folded(column.this)
        if qualifier is not None and trees.folded(qualifier) != name:
            alone = False
        elif own in (table.version, table.subsequent):
            table.visible_column(own)
        elif qualifier is None and own not in {c.name for c in table.visible}:
            if own == name:
                raise TrinityError("NOT_SUPPORTED", f"RETURNING {own}: a row as one value is not supported.")
            alone = False
    return alone
