"""UPDATE and DELETE: an append of the newest live rows that the WHERE selects, changed or marked as deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class _Selected:
    """The live rows that a statement selects, with the tables that it joins; each row once."""

    node: exp.Update | exp.Delete
    table: JournalTable
    alias: exp.Identifier
    others: Sequence[exp.Expr]
    rows: exp.Select
    lock: Lock

    @classmethod
    def of(
        cls,
        node: exp.Update | exp.Delete,
        table: JournalTable,
        alias: exp.Identifier,
        dialect: str,
        others: Sequence[exp.Expr],
    ) -> _Selected:
        found = trees.select([], trees.derived(live_rows(table, dialect, versioned=True), alias))
        for other in others:
            found.append("joins", exp.Join(this=other, kind="CROSS"))
        if (where := node.args.get("where")) is not None:
            found.set("where", where.copy())
        key = [trees.column(k, alias) for k in table.key]
        if others:
            found.set("distinct", exp.Distinct(on=exp.Tuple(expressions=key)))
        if (clause := node.args.get("with_")) is not None:
            found.set("with_", clause.copy())
        return cls(node, table, alias, others, found, lock_of(table, found, key, [found]))

    def returning(self) -> list[exp.Expr] | None:
        """Return the expressions of RETURNING: empty without RETURNING, None if they read other tables' columns."""
        found = self._returning() or []
        return found if all(of_target(e, self.table, self.alias) for e in found) else None

    def append(self, columns: list[str], values: list[exp.Expr], returning: list[exp.Expr]) -> exp.Insert:
        """Return the append of the rows with new values."""
        query = self._locked_rows()
        query.set("expressions", values)
        return append(self.table, columns, query, returning, self.alias if returning else None)

    def change(self, action: Action, names: Names) -> RewrittenChange:
        """Rewrite by a list of changes: for changed keys, and for RETURNING over other tables."""
        changes = Changes(self.table, self.alias, self._locked_rows(), [action])
        return changes.build(self.lock, names, self._returning())

    def _returning(self) -> list[exp.Expr] | None:
        return expand(self.node, self.table, self.alias, self.others)

    def _locked_rows(self) -> exp.Select:
        found = self.rows.copy()
        found.set("with_", None)
        if self.lock.keys is not None:
            found.where(is_locked(self.table, [trees.column(k, self.alias) for k in self.table.key]), copy=False)
        return found


def update(node: exp.Update, table: JournalTable, alias: exp.Identifier, dialect: str, names: Names) -> RewrittenChange:
    """Rewrite an UPDATE; references to other tables have been replaced already."""
    values = assignments(node.expressions, table, dialect)
    others = [node.args["from_"].this.copy()] if node.args.get("from_") is not None else []
    found = _Selected.of(node, table, alias, dialect, others)
    setting_unique = any(c in values for u in table.unique_keys for c in u)
    moves = not values.keys().isdisjoint(table.key)
    if setting_unique or moves:
        found = replace(found, lock=Lock(table))
    returning = found.returning()
    if returning is None or moves:
        return found.change(Action("U", None, values), names)
    written = [values.get(c.name) or trees.column(c.name, alias) for c in table.written]
    if others:
        written = [trees.typed_for(value, c) for value, c in zip(written, table.written, strict=True)]
    version = next_version(table, trees.column(VERSION, alias))
    body = found.append([*(c.name for c in table.written), table.version], [*written, version], returning)
    return RewrittenChange(body, found.lock, unique=table if setting_unique else None)


def delete(node: exp.Delete, table: JournalTable, alias: exp.Identifier, dialect: str, names: Names) -> RewrittenChange:
    """Rewrite a DELETE; references to other tables have been replaced already."""
    found = _Selected.of(node, table, alias, dialect, [o.copy() for o in node.args.get("using") or []])
    returning = found.returning()
    if returning is None:
        return found.change(Action("D", None, {}), names)
    columns = [c.name for c in table.written]
    version = next_version(table, trees.column(VERSION, alias))
    values = [*(trees.column(c, alias) for c in columns), version, version.copy()]
    return RewrittenChange(found.append([*columns, table.version, table.subsequent], values, returning), found.lock)
