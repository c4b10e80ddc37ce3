"""RETURNING: the rows as the statement left them, without the version columns."""

from __future__ import annotations

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import trees
from trinity.journal.tables import JournalTable

__all__ = ["expand", "of_target"]


def expand(clause: exp.Returning, table: JournalTable, alias: exp.Identifier, alone: bool) -> list[exp.Expr]:
    """The expressions of RETURNING, with ``*`` written out.

    Args:
        clause: the clause.
        table: the target.
        alias: the target's name in the statement.
        alone: there is no other table that ``*`` would show.

    Raises:
        TrinityError: NOT_SUPPORTED for ``*`` over other tables.
    """
    found: list[exp.Expr] = []
    name = trees.folded(alias)
    for node in clause.expressions:
        is_star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
        if not is_star:
            found.append(node.copy())
        elif (isinstance(node, exp.Star) and alone) or (
            isinstance(node, exp.Column) and trees.folded(node.args["table"]) == name
        ):
            found += [trees.column(c.name, alias) for c in table.visible]
        else:
            raise TrinityError("NOT_SUPPORTED", "RETURNING * over other tables is not supported; list the columns.")
    return found


def of_target(node: exp.Expr, table: JournalTable, alias: exp.Identifier) -> bool:
    """Whether an expression of RETURNING reads nothing but the target's columns.

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
