"""INSERT with ON CONFLICT: rows with a free key are inserted; for other rows the live row is updated, or stays."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.assignments import assignments
from trinity.journal.changes import Action, Changes
from trinity.journal.locks import is_locked
from trinity.journal.reading import VERSION, live_rows
from trinity.journal.returning import expand
from trinity.journal.sources import Computed, source_of
from trinity.journal.tables import JournalTable
from trinity.journal.writing import Names, RewrittenChange

_NEW: Final = "excluded"
NTH: Final = "_trinity_nth"
"""The number of a proposed row among those of its key, from 1."""


def insert_on_conflict(
    node: exp.Insert, table: JournalTable, alias: exp.Identifier, dialect: str, computed: Computed, names: Names
) -> RewrittenChange:
    """Rewrite INSERT … ON CONFLICT; references in its source have been replaced already."""
    conflict: exp.OnConflict = node.args["conflict"]
    updating = "UPDATE" in conflict.args["action"].name.upper()
    columns = conflicting_key(conflict, table)
    if columns is None and updating:
        raise TrinityError("SYNTAX_ERROR", "ON CONFLICT DO UPDATE needs the columns that conflict.")
    source = source_of(node, table, dialect, computed, whole=True)
    lock = source.lock(_NEW, node, table)
    on = columns or table.key
    base = trees.select([], _numbered_within_key(source.as_table("given"), table, on))
    if lock.keys is not None and not source.constant:
        base.where(is_locked(table, [trees.column(k, _NEW) for k in table.key]), copy=False)
    base.append("joins", _live_join(table, alias, on, dialect))
    absent = exp.Is(this=trees.column(VERSION, alias), expression=exp.Null())
    again = exp.GT(this=trees.column(NTH, _NEW), expression=exp.Literal.number(1))
    inserting = {c.name: trees.column(c.name, _NEW) for c in table.written}
    if updating:
        where = conflict.args.get("where")
        present = exp.Not(this=absent.copy())
        matched = exp.and_(present, where.this.copy()) if where is not None else present
        changing = assignments(conflict.expressions, table, dialect)
        actions = [Action("U", matched, changing), Action("I", absent, inserting)]
        changes = Changes(table, alias, base, actions, again)
    else:
        free = [absent, exp.Not(this=exp.paren(again)), *_other_unique(table, columns, dialect)]
        changes = Changes(table, alias, base, [Action("I", exp.and_(*free, copy=False), inserting)])
    return changes.build(lock, names, expand(node, table, alias))


def conflicting_key(conflict: exp.OnConflict, table: JournalTable) -> tuple[str, ...] | None:
    """Return the key that ON CONFLICT names, in the table's order; None when it names none."""
    if (constraint := conflict.args.get("constraint")) is not None:
        if trees.folded(constraint) in (f"{table.name}_pkey", f"{table.journal}_pkey"):
            return table.key
        raise TrinityError("NOT_SUPPORTED", f"ON CONFLICT ON CONSTRAINT {constraint.name}: name the columns instead.")
    given = conflict.args.get("conflict_keys") or []
    if not given:
        return None
    if conflict.args.get("index_predicate") is not None:
        raise TrinityError(
            "NOT_SUPPORTED", f"ON CONFLICT … WHERE on {table}: a journalled table has no partial indexes."
        )
    inner = [k.this if isinstance(k, exp.Ordered) else k for k in given]
    wanted = {trees.folded(k.this) if isinstance(k, exp.Column) else k.sql() for k in inner}
    for key in (table.key, *table.unique_keys):
        if set(key) == wanted:
            return key
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"ON CONFLICT ({', '.join(sorted(wanted))}): {table} has no such key; it has ({', '.join(table.key)})"
        + "".join(f" and ({', '.join(u)})" for u in table.unique_keys)
        + ".",
    )


def _numbered_within_key(source: exp.Expr, table: JournalTable, on: tuple[str, ...]) -> exp.Subquery:
    """Number the new rows within their key."""
    keys = [trees.cast(trees.column(c, "given"), table.column(c).declared) for c in on]
    nth = exp.Window(this=exp.RowNumber(), partition_by=keys)
    return trees.derived(trees.select([trees.all_of("given"), exp.alias_(nth, NTH)], source), _NEW)


def _live_join(table: JournalTable, alias: exp.Identifier, on: tuple[str, ...], dialect: str) -> exp.Join:
    """Join the live row of a new row's key. PostgreSQL pushes a condition on the key into the lateral subquery."""
    rows = trees.derived(live_rows(table, dialect, versioned=True), "live")
    same = [
        exp.EQ(this=trees.column(c, "live"), expression=trees.cast(trees.column(c, _NEW), table.column(c).declared))
        for c in on
    ]
    return trees.join_lateral(trees.select([trees.all_of("live")], rows, same), alias)


def _other_unique(table: JournalTable, columns: tuple[str, ...] | None, dialect: str) -> list[exp.Expr]:
    """Return the conditions that all unique keys are free, which count when ON CONFLICT names no columns."""
    if columns is not None:
        return []
    found: list[exp.Expr] = []
    for unique in table.unique_keys:
        same = trees.equal(unique, "other", _NEW)
        rows = trees.derived(live_rows(table, dialect), "other")
        found.append(exp.Not(this=trees.exists(rows, [same])))
    return found
