"""``journalUniqueKeys``: queries that must find nothing after a statement."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.reading import live_rows
from trinity.journal.tables import JournalTable

__all__ = ["unique_checks"]


def unique_checks(table: JournalTable, dialect: str) -> Iterator[tuple[tuple[str, ...], exp.Query]]:
    """Yield each unique key with a query for values, as text, that two live rows share. NULLs are never equal."""
    for columns in table.unique_keys:
        names: list[exp.Expr] = [trees.column(c) for c in columns]
        known = [exp.Not(this=exp.Is(this=n.copy(), expression=exp.Null())) for n in names]
        text = [trees.cast(n.copy(), "text") for n in names]
        query = trees.select(text, trees.derived(live_rows(table, dialect), "live"), known)
        query.set("group", exp.Group(expressions=names))
        several = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
        query.set("having", exp.Having(this=several))
        yield columns, query.limit(1, copy=False)
