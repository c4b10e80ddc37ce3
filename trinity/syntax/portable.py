"""Parts of other dialects that mean the same in Spark."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError

__all__ = ["refuse_unknown"]

_QUERY: Final = (
    exp.Alias, exp.CTE, exp.Distinct, exp.Exists, exp.From, exp.Group, exp.Having, exp.Identifier, exp.Join,
    exp.Limit, exp.Order, exp.Ordered, exp.Select, exp.SetOperation, exp.Star, exp.Subquery, exp.Table,
    exp.TableAlias, exp.Tuple, exp.Values, exp.Where, exp.With,
)  # fmt: skip
_EXPRESSIONS: Final = (
    exp.Abs, exp.Add, exp.And, exp.Avg, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Coalesce, exp.Column,
    exp.Concat, exp.Count, exp.CurrentDate, exp.CurrentTimestamp, exp.DPipe, exp.DataType, exp.DataTypeParam,
    exp.Div, exp.EQ, exp.Escape, exp.GT, exp.GTE, exp.Greatest, exp.ILike, exp.If, exp.In, exp.IntDiv, exp.Is,
    exp.LT, exp.LTE, exp.Least, exp.Length, exp.Like, exp.Literal, exp.Lower, exp.Max, exp.Min, exp.Mod, exp.Mul,
    exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.Or, exp.Paren, exp.Sub,
    exp.Sum, exp.Upper, exp.Var,
)  # fmt: skip


def refuse_unknown(tree: exp.Expr, dialect: str) -> None:
    """Refuse what Spark would understand in another way, or might.

    Args:
        tree: an expression or a query.
        dialect: its dialect. Of ``trino`` only known differences are refused; of others all that is not known to be
            the same.

    Raises:
        TrinityError: NOT_SUPPORTED naming the refused part.
    """
    for node in tree.walk():
        quantified = isinstance(node, exp.Any | exp.All)
        if dialect != "trino" and not quantified and not isinstance(node, (*_QUERY, *_EXPRESSIONS)):
            raise _refused(node, dialect)
        if quantified and not isinstance(node.this, exp.Query):  # of an array
            raise _refused(node, dialect)
        if isinstance(node, (exp.Like, exp.ILike)) and not _same_pattern(node, dialect):
            raise _refused(node, dialect)


def _same_pattern(node: exp.Expr, dialect: str) -> bool:
    """Return True when a pattern means the same in Spark: a backslash escapes only in Spark and PostgreSQL."""
    if dialect == "postgres" or isinstance(node.parent, exp.Escape):
        return True
    pattern = node.expression
    return isinstance(pattern, exp.Literal) and "\\" not in pattern.name


def _refused(node: exp.Expr, dialect: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"'{node.sql(dialect=dialect)}' of {dialect} has no counterpart in Spark that is known to mean the same; write "
        "that part in Spark's SQL.",
    )
