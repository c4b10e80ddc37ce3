"""UPDATE and DELETE: an append of the newest live rows that the WHERE selects, changed or marked as deleted."""

from __future__ import annotations

from sqlglot import exp

from trinity.journal import tree_parts as trees
from trinity.journal.assignments import assignments
from trinity.journal.changes import Action, Changes
from trinity.journal.locks import Lock, is_locked, lock_of
from trinity.journal.reading import VERSION, live_rows
from trinity.journal.returning import expand, of_target
from trinity.journal.tables import JournalTable
from trinity.journal.versions import next_version
from trinity.journal.writing import Names, RewrittenChange, append


def update(node: exp.Update, table: JournalTable, alias: exp.Identifier, dialect: str, names: Names) -> RewrittenChange:
    """Rewrite an UPDATE; references to other tables have been replaced already."""
    values = assignments(node.expressions, table, dialect)
    others = [node.args["from_"].this.copy()] if node.args.get("from_") is not None else []
    found = _selected_rows(node, table, alias, dialect, others)
    lock = _lock(found, table, alias)
    setting_unique = any(c in values for u in table.unique_keys for c in u)
    returning = _returning(node, table, alias, others)
    direct = returning is not None and not (values.keys() & set(table.key))
    if setting_unique or values.keys() & set(table.key):
        lock = Lock(table)
    if not direct:
        return _general(node, found, lock, table, alias, Action("U", None, values), names)
    written = [values.get(c.name) or trees.column(c.name, alias) for c in table.written]
    if others:
        written = [trees.typed_for(value, c) for value, c in zip(written, table.written, strict=True)]
    version = next_version(table, trees.column(VERSION, alias))
    columns = [*(c.name for c in table.written), table.version]
    body = _append(found, lock, table, alias, columns, [*written, version], returning or [])
    return RewrittenChange(body, lock, unique=table if setting_unique else None)


def delete(node: exp.Delete, table: JournalTable, alias: exp.Identifier, dialect: str, names: Names) -> RewrittenChange:
    """Rewrite a DELETE; references to other tables have been replaced already."""
    others = [o.copy() for o in node.args.get("using") or []]
    found = _selected_rows(node, table, alias, dialect, others)
    lock = _lock(found, table, alias)
    returning = _returning(node, table, alias, others)
    if returning is None:
        return _general(node, found, lock, table, alias, Action("D", None, {}), names)
    columns = [c.name for c in table.written]
    version = next_version(table, trees.column(VERSION, alias))
    values = [*(trees.column(c, alias) for c in columns), version, version.copy()]
    body = _append(found, lock, table, alias, [*columns, table.version, table.subsequent], values, returning)
    return RewrittenChange(body, lock)


def _selected_rows(
    node: exp.Update | exp.Delete, table: JournalTable, alias: exp.Identifier, dialect: str, others: list[exp.Expr]
) -> exp.Select:
    """Return a query of the live rows that the statement selects, with the tables that it joins; each row once."""
    found = trees.select([], trees.derived(live_rows(table, dialect, versioned=True), alias))
    for other in others:
        found.append("joins", exp.Join(this=other, kind="CROSS"))
    if (where := node.args.get("where")) is not None:
        found.set("where", where.copy())
    if others:
        found.set("distinct", exp.Distinct(on=exp.Tuple(expressions=[trees.column(k, alias) for k in table.key])))
    if (clause := node.args.get("with_")) is not None:
        found.set("with_", clause.copy())
    return found


def _lock(found: exp.Select, table: JournalTable, alias: exp.Identifier) -> Lock:
    return lock_of(table, found, [trees.column(k, alias) for k in table.key], [found])


def _returning(
    node: exp.Update | exp.Delete, table: JournalTable, alias: exp.Identifier, others: list[exp.Expr]
) -> list[exp.Expr] | None:
    """Return RETURNING for the append itself; empty without one, None when it reads other tables."""
    if (clause := node.args.get("returning")) is None:
        return []
    found = expand(clause, table, alias, others)
    return found if all(of_target(e, table, alias) for e in found) else None


def _append(
    found: exp.Select,
    lock: Lock,
    table: JournalTable,
    alias: exp.Identifier,
    columns: list[str],
    values: list[exp.Expr],
    returning: list[exp.Expr],
) -> exp.Insert:
    query = found.copy()
    query.set("expressions", values)
    query.set("with_", None)
    if lock.keys is not None:
        query.where(is_locked(table, [trees.column(k, alias) for k in table.key]), copy=False)
    return append(table, columns, query, returning, alias if returning else None)


def _general(
    node: exp.Update | exp.Delete,
    found: exp.Select,
    lock: Lock,
    table: JournalTable,
    alias: exp.Identifier,
    action: Action,
    names: Names,
) -> RewrittenChange:
    """Rewrite by a list of changes: for changed keys, and for RETURNING over other tables."""
    base = found.copy()
    base.set("with_", None)
    if lock.keys is not None:
        base.where(is_locked(table, [trees.column(k, alias) for k in table.key]), copy=False)
    clause = node.args.get("returning")
    others = [join.this for join in found.args.get("joins") or []]
    wanted = expand(clause, table, alias, others) if clause is not None else None
    return Changes(table, alias, base, [action]).build(lock, names, wanted)
