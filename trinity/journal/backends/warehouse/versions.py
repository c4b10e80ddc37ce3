"""Versions of appends to journals in Trinity tables, as Spark's SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable

__all__ = ["newest_version", "version_after"]


def version_after(table: JournalTable, newest: exp.Expr) -> exp.Expr:
    """Return the version after this one; the first one after NULL."""
    if table.version_type == "BIGINT":
        known = exp.Coalesce(this=newest, expressions=[exp.Literal.number(0)])
        return exp.Add(this=known, expression=exp.Literal.number(1))
    tick = exp.Add(this=newest, expression=exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="MICROSECOND")))
    return exp.Anonymous(this="greatest", expressions=[exp.CurrentTimestamp(), tick])


def newest_version(table: JournalTable, key: Sequence[exp.Expr]) -> exp.Expr:
    """Return the newest stored version of a key, deleted or not."""
    same = [exp.EQ(this=trees.column(k, "v"), expression=e.copy()) for k, e in zip(table.key, key, strict=True)]
    source = exp.Table(this=trees.identifier(table.versions_view), alias=exp.TableAlias(this=trees.identifier("v")))
    return exp.Subquery(this=trees.select([exp.Max(this=trees.column(table.version, "v"))], source, same))
