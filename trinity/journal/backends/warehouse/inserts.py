"""INSERT into a journal in a Trinity table: a MERGE, which refuses live keys and keys given twice (M4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.conflicts import NTH, conflicting_key
from trinity.journal.tables import JournalColumn, JournalTable

_NEW: Final = "new"
_PROPOSED: Final = "excluded"
"""PostgreSQL's name for the new row in ON CONFLICT."""
_GIVEN_ORDER: Final = "_trinity_given_order"


def insert(node: exp.Insert, table: JournalTable) -> exp.Merge:
    """Rewrite INSERT without ON CONFLICT, as a MERGE ON FALSE.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, CONSTRAINT_VIOLATION, DUPLICATE_COLUMN_NAME, SYNTAX_ERROR.
    """
    columns = _columns(node, table)
    given = trees.derived(_query(node, columns, table), _NEW, [trees.identifier(c.name) for c in columns])
    when = exp.When(matched=False, then=_row(_NEW, columns, table))
    return exp.Merge(this=_target(node), using=given, on=exp.false(), whens=exp.Whens(expressions=[when]))


def on_conflict(node: exp.Insert, table: JournalTable) -> tuple[exp.Merge, exp.Update | None]:
    """Rewrite INSERT … ON CONFLICT: rows with a free key are inserted; for others the live row is updated, or stays.

    Returns:
        the MERGE, and the UPDATE within it, which does not set the version yet; None for DO NOTHING.

    Raises:
        TrinityError: as :func:`insert`; SYNTAX_ERROR, INVALID_ARGUMENTS for columns that are no key.
    """
    conflict: exp.OnConflict = node.args["conflict"]
    key = conflicting_key(conflict, table)
    columns = _columns(node, table)
    on = key or table.key
    proposed = _numbered_rows(_query(node, columns, table), columns, table, on)
    twice = exp.GT(this=trees.column(NTH, _PROPOSED), expression=exp.Literal.number(1))
    row = _row(_PROPOSED, list(table.visible), table)
    changing: exp.Update | None = None
    if "UPDATE" not in conflict.args["action"].name.upper():
        others = table.unique_keys if key is None else ()
        free = [exp.Not(this=twice), *(exp.Not(this=_is_live(table, u)) for u in others)]
        whens = [exp.When(matched=False, condition=exp.and_(*free, copy=False), then=row)]
    else:
        if key is None:
            raise TrinityError("SYNTAX_ERROR", "ON CONFLICT DO UPDATE needs the columns that conflict.")
        where = conflict.args.get("where")
        changing = exp.Update(expressions=[e.copy() for e in conflict.expressions])
        matched = exp.When(matched=True, condition=where.this.copy() if where is not None else None, then=changing)
        values: exp.Tuple = row.expression
        values.set("expressions", [*values.expressions[:-1], _fail_on_second(values.expressions[-1], twice, table)])
        whens = [matched, exp.When(matched=False, then=row)]
    same = trees.equal(on, trees.alias_name(_target(node)), _PROPOSED)
    return exp.Merge(this=_target(node), using=proposed, on=same, whens=exp.Whens(expressions=whens)), changing


def inserting(columns: Sequence[str], values: Sequence[exp.Expr]) -> exp.Insert:
    """Return ``INSERT (columns) VALUES (values)`` of a WHEN clause."""
    return exp.Insert(
        this=exp.Tuple(expressions=[trees.column(c) for c in columns]), expression=exp.Tuple(expressions=list(values))
    )


def _target(node: exp.Insert) -> exp.Table:
    target: exp.Table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    return target


def _columns(node: exp.Insert, table: JournalTable) -> list[JournalColumn]:
    """Return the columns that an INSERT fills, after checking that all key columns are among them."""
    if not isinstance(node.this, exp.Schema):
        return list(table.visible)
    columns = [table.visible_column(trees.folded(c)) for c in node.this.expressions]
    names = [c.name for c in columns]
    if missing := [k for k in table.key if k not in names]:
        raise TrinityError("CONSTRAINT_VIOLATION", f"INSERT INTO {table} leaves out key column '{missing[0]}'.")
    if duplicates := [n for n in names if names.count(n) > 1]:
        raise TrinityError("DUPLICATE_COLUMN_NAME", f"INSERT INTO {table} names column '{duplicates[0]}' twice.")
    return columns


def _query(node: exp.Insert, columns: Sequence[JournalColumn], table: JournalTable) -> exp.Query:
    """Return the rows as a query, with the expression of each DEFAULT."""
    source = node.expression
    query = source.unnest() if isinstance(source, exp.Subquery) else source
    if isinstance(query, exp.Values):
        for row in query.expressions:
            given = zip(row.expressions, columns, strict=False)  # the engine refuses another number of values
            values = [trees.default_of(c, "spark") if trees.is_default(v) else v for v, c in given]
            row.set("expressions", [*values, *row.expressions[len(columns) :]])
        query = trees.select([exp.Star()], query)
    if not isinstance(query, exp.Query):
        raise TrinityError("SYNTAX_ERROR", f"INSERT INTO {table} has no rows: give VALUES or a query.")
    if node.args.get("with_") is not None:
        query.set("with_", node.args["with_"])
    return query


def _row(source: str, columns: Sequence[JournalColumn], table: JournalTable) -> exp.Insert:
    """Return the INSERT of a new row; its version is the last value."""
    version = version_after(table, newest_version(table, [trees.column(k, source) for k in table.key]))
    values = [*(trees.column(c.name, source) for c in columns), version]
    return inserting([*(c.name for c in columns), table.version], values)


def _is_live(table: JournalTable, columns: tuple[str, ...]) -> exp.Exists:
    """Return a condition that is true when a live row has the new row's values of a unique key."""
    same = trees.equal(columns, "other", _PROPOSED)
    return trees.exists(trees.journal(table, "other"), [same])


def _numbered_rows(
    query: exp.Query, columns: Sequence[JournalColumn], table: JournalTable, on: tuple[str, ...]
) -> exp.Subquery:
    """Return the rows with all columns, each numbered among those with the same values of ``on``."""
    names = [c.name for c in columns]
    values = [
        trees.column(c.name, "given")
        if c.name in names
        else exp.alias_(trees.default_of(c, "spark"), trees.identifier(c.name))
        for c in table.visible
    ]
    row_number = exp.alias_(exp.Anonymous(this="monotonically_increasing_id"), _GIVEN_ORDER)
    given = trees.derived(query, "given", [trees.identifier(n) for n in names])
    placed = trees.derived(trees.select([*values, row_number], given), "placed")
    nth = exp.Window(
        this=exp.RowNumber(),
        partition_by=[trees.column(c, "placed") for c in on],
        order=exp.Order(expressions=[exp.Ordered(this=trees.column(_GIVEN_ORDER, "placed"))]),
    )
    every = [trees.column(c.name, "placed") for c in table.visible]
    return trees.derived(trees.select([*every, exp.alias_(nth, NTH)], placed), _PROPOSED)


def _fail_on_second(version: exp.Expr, twice: exp.Expr, table: JournalTable) -> exp.Expr:
    """Return the version of a new row, which fails for a second row of its key."""
    message = (
        f"MERGE_TARGET_ROW_MULTIPLE_MATCHES: INSERT INTO {table}: ON CONFLICT DO UPDATE would change a row a second "
        "time; give each key once."
    )
    fails = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(message)])
    return exp.Case(ifs=[exp.If(this=twice.copy(), true=fails)], default=version)


def version_after(table: JournalTable, newest: exp.Expr) -> exp.Expr:
    """Return the version that follows ``newest``; the first version if that is NULL."""
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
