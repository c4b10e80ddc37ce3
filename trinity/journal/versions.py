"""Versions of appends. All rows of a statement with the same key get the same version.

So the journal's unique index over key and version refuses a second live row of a key: an INSERT of a live key gets the
version of the live row, and two rows of one statement get the same version.
"""

from __future__ import annotations

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable


def next_version(table: JournalTable, newest: exp.Expr) -> exp.Expr:
    """Return the version after a key's newest one.

    CURRENT_TIMESTAMP would be wrong, as it is the transaction's start: a second statement would repeat a version, and a
    transaction that began earlier would write a version that is never read. Clocks that step back do no harm.
    """
    if table.version_type == "BIGINT":
        return exp.Add(this=newest, expression=exp.Literal.number(1))
    tick = exp.Add(this=newest, expression=trees.cast(exp.Literal.string("1 microsecond"), "interval"))
    return exp.Greatest(this=_now(table), expressions=[tick])


def inserted_version(
    table: JournalTable, version: exp.Expr, subsequent: exp.Expr, leaves: exp.Expr | None = None
) -> exp.Expr:
    """Return the version of an inserted row.

    ``version`` is the newest version of its key, NULL for a new key; ``subsequent`` is the subsequent version beside
    it, NULL if that row is live. ``leaves`` is the condition that the same statement deletes or moves the live row.
    """
    free: exp.Expr = exp.Not(this=exp.Is(this=subsequent, expression=exp.Null()))
    if leaves is not None:
        free = exp.or_(free, leaves, copy=False)
    version_of_key = exp.Case(ifs=[exp.If(this=free, true=next_version(table, version.copy()))], default=version)
    first = exp.Literal.number(1) if table.version_type == "BIGINT" else _now(table)
    return exp.Coalesce(this=version_of_key, expressions=[first])


def fail_where(value: exp.Expr, again: exp.Expr) -> exp.Expr:
    """Return the value, which fails with PostgreSQL's error 21000 (cardinality violation) where ``again`` holds.

    Only a subquery of two rows raises this error.
    """
    two = exp.Values(
        expressions=[exp.Tuple(expressions=[exp.Boolean(this=True)]), exp.Tuple(expressions=[exp.Boolean(this=False)])],
        alias=exp.TableAlias(this=trees.identifier("twice"), columns=[trees.identifier("hit")]),
    )
    fails = exp.Subquery(this=trees.select([trees.column("hit", "twice")], two))
    refused = exp.and_(again, fails, copy=False)
    return exp.Case(ifs=[exp.If(this=refused, true=exp.Null())], default=value)


def _now(table: JournalTable) -> exp.Expr:
    return trees.cast(exp.Anonymous(this="statement_timestamp"), table.version_column.type)
