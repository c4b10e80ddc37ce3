"""RETURNING of a change in a Trinity table's journal: a query over the rows that its commit has appended."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.binding import generate_sql
from trinity.journal.returning import expand, of_target
from trinity.journal.tables import JournalTable


@dataclass(frozen=True)
class Returning:
    """The RETURNING clause of one change.

    Attributes:
        query: the query over the table's ``returned_view``.
        rows: condition of the appended rows in that view; it leaves out the tombstones of keys that an UPDATE changed.
    """

    query: str
    rows: str


def returning_of(tree: exp.DML, table: JournalTable, alias: exp.Identifier) -> Returning | None:
    """Return the RETURNING clause of a change whose references have been replaced already; None without one.

    Raises:
        TrinityError: COLUMN_NOT_FOUND; NOT_SUPPORTED for columns of other tables, and for a MERGE that both deletes
            rows and moves keys.
    """
    others = _others(tree)
    wanted = expand(tree, table, alias, others)
    if wanted is None:
        return None
    if not all(of_target(e, table, alias) for e in wanted):
        if not others:
            raise TrinityError("COLUMN_NOT_FOUND", f"RETURNING names a column that {table} lacks.")
        raise TrinityError("NOT_SUPPORTED", f"RETURNING reads the columns of {table} alone, not those of other tables.")
    source = exp.Table(this=trees.identifier(table.returned_view), alias=exp.TableAlias(this=alias.copy()))
    return Returning(generate_sql(trees.select(wanted, source), "spark"), generate_sql(_rows(tree, table), "spark"))


def _others(tree: exp.DML) -> list[exp.Expr]:
    found = tree.args.get("using") or []
    if tree.args.get("from_") is not None:
        found = tree.args["from_"].this
    return list(found) if isinstance(found, list) else [found]


def _rows(tree: exp.DML, table: JournalTable) -> exp.Expr:
    new = exp.Is(this=trees.column(table.subsequent), expression=exp.Null())
    if isinstance(tree, exp.Delete):
        return exp.Not(this=new)
    if isinstance(tree, exp.Merge):
        actions = [when.args["then"] for when in tree.args["whens"].expressions]
        if any(str(a.name).upper() == "DELETE" for a in actions if not isinstance(a, exp.DML)):
            if any(isinstance(a, exp.Update) and _sets_key(a, table) for a in actions):
                raise TrinityError(
                    "NOT_SUPPORTED", f"RETURNING of a MERGE INTO {table} that deletes rows and sets the key; do either."
                )
            return exp.true()
    return new


def _sets_key(node: exp.Update, table: JournalTable) -> bool:
    assigned = [e.this for e in node.expressions if isinstance(e, exp.EQ)]
    return any(trees.folded(c.this) in table.key for a in assigned for c in a.find_all(exp.Column))
