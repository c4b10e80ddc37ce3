"""The result of rewriting one INSERT, UPDATE, DELETE or MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.locks import Lock
from trinity.journal.tables import JournalTable


@dataclass
class Names:
    """Unique names for the CTEs of a statement."""

    count: int = 0

    def new(self, what: str) -> str:
        """Return the next name for a CTE that does ``what``."""
        self.count += 1
        return f"_trinity_{what}_{self.count}"


@dataclass(frozen=True)
class RewrittenChange:
    """One rewritten data-modifying statement.

    Attributes:
        body: an INSERT into the journal, or a query over ``members``.
        lock: the keys to lock before the statement.
        members: further members for the outermost WITH, before the body.
        counted: True when the body is a query of one value, the number of rows.
        unique: the table whose unique keys are checked afterwards, or None.
    """

    body: exp.Expr
    lock: Lock
    members: tuple[exp.CTE, ...] = ()
    counted: bool = False
    unique: JournalTable | None = None


def append(
    table: JournalTable,
    columns: Sequence[str],
    query: exp.Query,
    returning: Sequence[exp.Expr] = (),
    alias: exp.Identifier | None = None,
) -> exp.Insert:
    """Return ``INSERT INTO journal AS alias (columns) query RETURNING returning``."""
    target = trees.journal(table)
    if alias is not None:
        target.set("alias", exp.TableAlias(this=alias.copy()))
    schema = exp.Schema(this=target, expressions=[trees.identifier(c) for c in columns])
    found = exp.Insert(this=schema, expression=query)
    if returning:
        found.set("returning", exp.Returning(expressions=list(returning)))
    return found
