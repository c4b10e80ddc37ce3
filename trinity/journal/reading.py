"""Reads of a journalled table: the newest version of each key, unless that is a deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.tables import JournalTable

VERSION: Final = "_trinity_version"
"""The version column's name in rewritten writes, which users cannot use."""


def live_rows(
    table: JournalTable, dialect: str, as_of: exp.Version | None = None, versioned: bool = False
) -> exp.Select:
    """Return a query of the rows that users see.

    PostgreSQL reads an index over key and version backwards, other dialects use a window. ``versioned`` adds the
    version as :data:`VERSION`.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version of the wrong kind.
    """
    wanted: list[exp.Expr] = [trees.column(c.name) for c in table.visible]
    if versioned:
        wanted.append(exp.alias_(trees.column(table.version), VERSION))
    if table.merged:  # reads of Trinity's tables are merged, without deleted keys
        return trees.select(wanted, _merged_source(table, as_of))
    alive = exp.Is(this=trees.column(table.subsequent), expression=exp.Null())
    past = _not_younger(table, as_of)
    if dialect == "postgres":
        return trees.select(wanted, trees.derived(_distinct_on(table, past), "newest"), [alive])
    newest = exp.EQ(this=trees.column(table.version), expression=trees.column("last_version_number"))
    return trees.select(wanted, trees.derived(_windowed(table, past), "newest"), [newest, alive])


def latest_of_key(table: JournalTable, key: Sequence[exp.Expr]) -> exp.Select:
    """Return a query of a key's newest version, deleted or not, by a lookup in the index over key and version."""
    same = [
        exp.EQ(this=trees.column(k, "j"), expression=trees.cast(value, table.column(k).declared))
        for k, value in zip(table.key, key, strict=True)
    ]
    found = trees.select(
        [trees.column(table.version, "j"), trees.column(table.subsequent, "j")], trees.journal(table, "j"), same
    )
    return found.order_by(trees.descending(trees.column(table.version, "j")), copy=False).limit(1, copy=False)


def _distinct_on(table: JournalTable, past: list[exp.Expr]) -> exp.Select:
    columns = [trees.column(c.name) for c in table.columns]
    found = trees.select(columns, trees.journal(table), past)
    found.set("distinct", exp.Distinct(on=exp.Tuple(expressions=[trees.column(k) for k in table.key])))
    # all descending: the order of an index over (key, version), read backwards
    order = [trees.descending(trees.column(c)) for c in (*table.key, table.version)]
    return found.order_by(*order, copy=False)


def _windowed(table: JournalTable, past: list[exp.Expr]) -> exp.Select:
    highest = exp.Window(
        this=exp.Max(this=trees.column(table.version)), partition_by=[trees.column(k) for k in table.key]
    )
    columns: list[exp.Expr] = [trees.column(c.name) for c in table.columns]
    return trees.select([*columns, exp.alias_(highest, "last_version_number")], trees.journal(table), past)


def _not_younger(table: JournalTable, as_of: exp.Version | None) -> list[exp.Expr]:
    if as_of is None:
        return []
    if as_of.args.get("kind") != "AS OF":
        raise TrinityError("NOT_SUPPORTED", f"Table {table}: the past is read by AS OF only.")
    wanted = "VERSION" if table.version_type == "BIGINT" else "TIMESTAMP"
    if as_of.this != wanted:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table {table} has versions of type {table.version_type}: read its past by FOR {wanted} AS OF.",
        )
    limit = trees.typed_for(as_of.expression.copy(), table.version_column)
    return [exp.LTE(this=trees.column(table.version), expression=limit)]


def _merged_source(table: JournalTable, as_of: exp.Version | None) -> exp.Table:
    source = trees.journal(table)
    if as_of is not None:
        source.set("version", as_of.copy())
    return source
