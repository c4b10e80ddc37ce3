"""Predicates on key and partition columns that may be applied before the fold (L9).

Spark cannot push a filter through the full outer join of a merged read, so this module takes predicates from the
query's WHERE. They are only a hint: the query keeps its WHERE.
"""

from __future__ import annotations

from sqlglot import exp

from trinity.predicates.comparisons import Comparison, bare, conjuncts
from trinity.predicates.literals import PlainLiteral
from trinity.spi import TableDefinition


def key_predicate(node: exp.Table, definition: TableDefinition) -> exp.Expr | None:
    """Return the comparisons in WHERE of a table's key and partition columns with literals, joined by AND; or None."""
    select = _plain_source(node)
    if select is None or not (definition.keyed or definition.partition_by):
        return None
    where = select.args.get("where")
    if not isinstance(where, exp.Where):
        return None
    columns = _Columns(node, definition, alone=not (select.args.get("joins") or select.args.get("laterals")))
    found = [bare(part) for part in conjuncts(where.this) if columns.compares(part)]
    return exp.and_(*found) if found else None


def _plain_source(node: exp.Table) -> exp.Select | None:
    """Return the SELECT whose WHERE sees this table's rows unchanged; None if there is none."""
    holder = node.parent
    select = holder.parent if holder is not None else None
    alias = node.args.get("alias")
    renamed = isinstance(alias, exp.TableAlias) and alias.columns
    changed = any(node.args.get(k) for k in ("pivots", "sample", "joins", "laterals")) or renamed
    if not isinstance(select, exp.Select) or changed or select.args.get("pivots"):
        return None
    joins = select.args.get("joins") or []
    if isinstance(holder, exp.From):
        return None if _null_extended(joins) else select
    if not isinstance(holder, exp.Join) or holder.kind in ("SEMI", "ANTI") or holder.side in ("LEFT", "FULL"):
        return None
    return None if _null_extended(joins[joins.index(holder) :]) else select


def _null_extended(later: list[exp.Join]) -> bool:
    """Return whether joins after a table can fill its columns with NULLs."""
    return any(j.side in ("RIGHT", "FULL") for j in later)


class _Columns:
    """The key and partition columns of one table, to be recognised in a query.

    ``alone`` is True if the query reads no other table, so that bare names are this table's.
    """

    def __init__(self, node: exp.Table, definition: TableDefinition, alone: bool) -> None:
        self.known = {k.lower() for k in (*definition.primary_key, *definition.partition_columns)}
        self.qualifier = node.alias_or_name.lower()
        self.alone = alone

    def compares(self, part: exp.Expr) -> bool:
        """Return True for a comparison of one of the columns with literals."""
        found = Comparison.of(part)
        if found is None or not self._has(found.column):
            return False
        literals = [PlainLiteral.of(value) for value in found.values]
        certain = all(literal is not None and literal.is_certain for literal in literals)
        return certain and (not found.negated or found.operator is exp.Is)

    def _has(self, column: exp.Column) -> bool:
        is_own = column.table.lower() == self.qualifier if column.table else self.alone
        return is_own and not column.args.get("db") and column.name.lower() in self.known
