"""Predicates on key and partition columns that may be applied before the fold (L9).

Spark cannot push a filter through the full outer join of a merged read. So predicates are taken from the query's WHERE
here. They are only a hint: the query keeps its WHERE.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.spi import TableDefinition
from trinity.syntax.quoting import quoted
from trinity.syntax.spark_tree import conjuncts
from trinity.syntax.types import type_text

__all__ = ["key_predicate"]

_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def key_predicate(node: exp.Table, definition: TableDefinition) -> str | None:
    """Return the comparisons of this table's key and partition columns with literals in the query's WHERE.

    Args:
        node: the table's place in the tree of a query in Spark's dialect.
        definition: the table.

    Returns:
        Spark SQL of comparisons over bare column names, joined by AND; or None.
    """
    select = _plain_source(node)
    if select is None or not (definition.keyed or definition.partition_by):
        return None
    where = select.args.get("where")
    if not isinstance(where, exp.Where):
        return None
    columns = _Columns(node, definition, alone=_is_alone(select))
    found = [text for part in conjuncts(where.this) if (text := _comparison(part, columns))]
    return " AND ".join(found) or None


def _plain_source(node: exp.Table) -> exp.Select | None:
    """Return the SELECT whose rows include this table's rows unchanged, or None."""
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
    """Return True when joins after a table can fill its columns with NULLs."""
    return any(j.side in ("RIGHT", "FULL") for j in later)


def _is_alone(select: exp.Select) -> bool:
    return not select.args.get("joins") and not select.args.get("laterals")


class _Columns:
    """Recognises the key and partition columns of one table in a query."""

    def __init__(self, node: exp.Table, definition: TableDefinition, alone: bool) -> None:
        self.known = {k.lower() for k in (*definition.primary_key, *definition.partition_columns)}
        self.qualifier = node.alias_or_name.lower()
        self.alone = alone

    def name(self, side: exp.Expr) -> str | None:
        """Return the bare quoted name of such a column, or None for anything else."""
        if not isinstance(side, exp.Column) or side.args.get("db") or side.name.lower() not in self.known:
            return None
        mine = side.table.lower() == self.qualifier if side.table else self.alone
        return quoted(side.name) if mine else None


def _comparison(part: exp.Expr, columns: _Columns) -> str | None:
    if isinstance(part, exp.Between):
        return _between(part, columns)
    if isinstance(part, exp.In):
        return _membership(part, columns)
    if isinstance(part, exp.Is) or (isinstance(part, exp.Not) and isinstance(part.this, exp.Is)):
        return _null_test(part, columns)
    operator = _OPERATORS.get(type(part))
    if operator is None:
        return None
    left = columns.name(part.this) or _literal(part.this)
    right = columns.name(part.expression) or _literal(part.expression)
    one_column = bool(columns.name(part.this)) != bool(columns.name(part.expression))
    return f"{left} {operator} {right}" if left and right and one_column else None


def _between(part: exp.Between, columns: _Columns) -> str | None:
    column, low, high = columns.name(part.this), _literal(part.args["low"]), _literal(part.args["high"])
    usable = column and low and high and not part.args.get("symmetric")
    return f"{column} BETWEEN {low} AND {high}" if usable else None


def _membership(part: exp.In, columns: _Columns) -> str | None:
    column = columns.name(part.this)
    values = [_literal(v) for v in part.expressions]
    if not column or not values or None in values or part.args.get("query") or part.args.get("unnest"):
        return None
    return f"{column} IN ({', '.join(v for v in values if v)})"


def _null_test(part: exp.Is | exp.Not, columns: _Columns) -> str | None:
    test = part.this if isinstance(part, exp.Not) else part
    column = columns.name(test.this)
    if not column or not isinstance(test.expression, exp.Null):
        return None
    return f"{column} IS {'NOT ' if isinstance(part, exp.Not) else ''}NULL"


def _literal(value: exp.Expr) -> str | None:
    """Return Spark's text of a literal, or None for anything whose text is ambiguous."""
    if isinstance(value, exp.Paren):
        return _literal(value.this)
    if isinstance(value, exp.Neg):
        inner = _literal(value.this)
        return f"-{inner}" if inner and inner[0].isdigit() else None
    if isinstance(value, exp.Boolean):
        return "TRUE" if value.this else "FALSE"
    if isinstance(value, exp.Literal):
        return _literal_text(value)
    if isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal) and isinstance(value.to, exp.DataType):
        return _cast(value)
    return None


def _literal_text(value: exp.Literal) -> str | None:
    if value.is_string:
        return f"'{value.name}'" if re.fullmatch(r"[^'\\\x00-\x1f]*", value.name) else None
    return str(value.name) if re.fullmatch(r"\d+(\.\d*)?([eE][+-]?\d+)?", value.name) else None


def _cast(value: exp.Cast) -> str | None:
    inner = _literal_text(value.this)
    try:
        return f"CAST({inner} AS {type_text(value.to, 'spark')})" if inner else None
    except TrinityError:
        return None
