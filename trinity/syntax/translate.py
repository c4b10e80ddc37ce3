"""Translation of expressions and queries from other dialects to Spark's, by the types of the tables' columns.

sqlglot translates syntax. The meaning of ``/``, or of a cast to an integer, depends on the operands' types, which are
derived here from the tables' columns. If that is not possible the statement is refused: its meaning never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from trinity.errors import TrinityError
from trinity.syntax.parse import escapes_alike, spark_text
from trinity.syntax.three_valued import as_operand

Types = Callable[[exp.Column], str | None]
"""A function from a column outside of subqueries to its type, as Spark writes it; None for an unknown type."""

TableTypes = Callable[[exp.Table], Mapping[str, str]]
"""A function from a table to: column name in lower case -> type as Spark writes it; empty for an unknown table."""

_INTEGERS: Final = exp.DataType.INTEGER_TYPES
_FLOATS: Final = exp.DataType.FLOAT_TYPES
_DECIMAL: Final = (exp.DType.DECIMAL,)
_TEXT: Final = exp.DataType.TEXT_TYPES
_SAME_TEXT: Final = (*_INTEGERS, *_TEXT, *_DECIMAL, exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.NULL)
"""Types whose values every dialect writes the same way."""


def to_spark_text(tree: exp.Expr, dialect: str, tables: TableTypes, columns: Types | None = None) -> str:
    """Return the text of a tree in Spark's dialect.

    Raises:
        TrinityError: NOT_SUPPORTED if Spark has no counterpart, or if the meaning depends on an unknown type.
    """
    _refuse_unknown(tree, dialect)
    holder = exp.Paren(this=tree.copy())
    if any(isinstance(node, _TYPE_DEPENDENT) for node in tree.walk()):
        _annotate(holder, dialect, tables, columns)
    changing = list(holder.find_all(*_TYPE_DEPENDENT))
    for node in changing:
        node.meta[_ORIGINAL_TEXT] = node.sql(dialect=dialect)
    for node in reversed(changing):  # the innermost node first, since a change may change its type
        for operand in [node.this, node.args.get("expression"), *node.expressions]:
            _retype(operand, dialect)
        adapted = _adapted(node, dialect)
        if adapted is not node:
            node.replace(adapted)
    return spark_text(holder.this, dialect)


_ORIGINAL_TEXT: Final = "written"
_TYPE_DEPENDENT: Final = (exp.Div, exp.IntDiv, exp.Cast, exp.TryCast, exp.Greatest, exp.Least)


# -- types ------------------------------------------------------------------------------------------------


def _annotate(holder: exp.Paren, dialect: str, tables: TableTypes, columns: Types | None) -> None:
    """Set the types of nodes, the innermost query first."""
    for literal in holder.find_all(exp.Literal):
        literal.type = exp.DataType.build("varchar") if literal.is_string else _number_type(literal.name)
    for null in holder.find_all(exp.Null):
        null.type = exp.DataType.build("null")
    for select in reversed(list(holder.find_all(exp.Select))):
        known = _relations(select, tables)
        for column in _columns_outside(exp.Select, select):
            if column.type is None:
                _set_type(column, known)
        _infer(select, dialect)
    if columns is not None:
        for column in _columns_outside(exp.Query, holder):
            kind = columns(column)
            column.type = exp.DataType.build(kind, dialect="spark") if kind else None
    _infer(holder, dialect)


def _columns_outside(kind: type[exp.Expr], root: exp.Expr) -> list[exp.Column]:
    """Return the columns below a node, except within other nodes of a kind. It takes linear time."""
    nodes = root.walk(prune=lambda node: isinstance(node, kind) and node is not root)
    return [node for node in nodes if isinstance(node, exp.Column)]


def _infer(tree: exp.Expr, dialect: str) -> None:
    try:
        annotate_types(tree, dialect=dialect, overwrite_types=False)
    except SqlglotError:  # nodes without a type are refused later, if it matters
        return


def _retype(tree: exp.Expr | None, dialect: str) -> None:
    """Infer missing types again, now that the types of more parts are known."""
    if tree is None or not tree.is_type(exp.DType.UNKNOWN):
        return
    for node in tree.walk():
        if node.is_type(exp.DType.UNKNOWN) and not isinstance(node, exp.Column):
            node.type = None
    _infer(tree, dialect)


def _number_type(text: str) -> exp.DataType:
    if "e" in text.lower():
        return exp.DataType.build("double")
    if "." in text:
        whole, fraction = text.split(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        return exp.DataType.build(f"decimal({max(digits, 1)}, {len(fraction)})", dialect="spark")
    return exp.DataType.build("int" if abs(int(text)) < 2**31 else "bigint")


_Known = Mapping[str, Mapping[str, exp.DataType]]


def _relations(select: exp.Select, tables: TableTypes) -> dict[str, Mapping[str, exp.DataType]]:
    """Return name of a table -> the types of its columns, for each table of a FROM."""
    clause = select.args.get("from_")
    nodes = [clause.this] if clause is not None else []
    nodes += [join.this for join in select.args.get("joins") or []]
    return {node.alias_or_name.lower(): _columns(node, tables) for node in nodes}


def _columns(node: exp.Expr, tables: TableTypes) -> Mapping[str, exp.DataType]:
    if isinstance(node, exp.Subquery):
        return _projections(node.this)
    if not isinstance(node, exp.Table):
        return {}
    ancestor = node.parent
    while ancestor is not None and len(node.parts) == 1:
        for cte in ancestor.args["with_"].expressions if ancestor.args.get("with_") else ():
            if cte.alias.lower() == node.name.lower():
                return {} if cte.args["alias"].columns else _projections(cte.this)
        ancestor = ancestor.parent
    return {name: exp.DataType.build(kind, dialect="spark") for name, kind in tables(node).items()}


def _projections(query: exp.Expr) -> Mapping[str, exp.DataType]:
    if not isinstance(query, exp.Select):
        return {}
    return {p.alias_or_name.lower(): p.type for p in query.selects if p.type is not None}


def _set_type(column: exp.Column, known: _Known) -> None:
    qualifier, name = column.table.lower(), column.name.lower()
    found = [types[name] for alias, types in known.items() if name in types and qualifier in ("", alias)]
    if len(found) == 1:
        column.type = found[0]


# -- meanings ---------------------------------------------------------------------------------------------


def _adapted(node: exp.Expr, dialect: str) -> exp.Expr:
    if isinstance(node, (exp.Greatest, exp.Least)):
        return _greatest_or_least(node) if dialect == "trino" else node
    if isinstance(node, exp.IntDiv):
        if not (node.left.is_type(*_INTEGERS) and node.right.is_type(*_INTEGERS)):
            raise _depends_on_types(node, dialect, "CAST its operands to BIGINT")
        return node
    if isinstance(node, exp.Div):
        return _division(node, dialect)
    return _cast(node, dialect)


def _division(node: exp.Div, dialect: str) -> exp.Expr:
    left, right = node.left, node.right
    if dialect == "duckdb":  # a division of floats, whatever the types
        return _with_type(exp.Div(this=_cast_to(left, "double"), expression=_cast_to(right, "double")), "double")
    if left.is_type(*_INTEGERS) and right.is_type(*_INTEGERS):
        quotient = exp.IntDiv(this=as_operand(left), expression=as_operand(right))
        return _with_type(exp.Paren(this=quotient), "bigint")
    if left.is_type(*_FLOATS) or right.is_type(*_FLOATS):
        return _with_type(exp.Div(this=left.copy(), expression=right.copy()), "double")
    first, second = _precision(left), _precision(right)
    if dialect != "trino" or first is None or second is None:
        raise _depends_on_types(node, dialect, "CAST its operands to DOUBLE or BIGINT")
    (digits, scale), other = first, second[1]
    precision = min(38, digits + other + max(0, other - scale))
    return _cast_to(exp.Div(this=left.copy(), expression=right.copy()), f"decimal({precision}, {max(scale, other)})")


def _precision(side: exp.Expr) -> tuple[int, int] | None:
    """Return (digits, scale) of an exact number; None for other types."""
    kind = side.type
    if kind is None:
        return None
    if kind.is_type(*_INTEGERS):
        return {exp.DType.TINYINT: 3, exp.DType.SMALLINT: 5, exp.DType.BIGINT: 19}.get(kind.this, 10), 0
    if kind.is_type(*_DECIMAL) and len(kind.expressions) == 2:
        digits, scale = (int(p.name) for p in kind.expressions)
        return digits, scale
    return None


def _cast(node: exp.Expr, dialect: str) -> exp.Expr:
    """Translate a cast: Spark truncates fractions where other dialects round, and writes some values differently."""
    source, to = node.this, node.args["to"]
    if to.is_type(*_INTEGERS):
        if source.is_type(*_INTEGERS, *_TEXT, exp.DType.BOOLEAN, exp.DType.NULL):
            return node
        if source.is_type(*_DECIMAL, *_FLOATS):
            even = source.is_type(*_FLOATS) and dialect != "trino"
            rounded = exp.func("RINT" if even else "ROUND", source.copy(), dialect="spark")
            return _with_type(type(node)(this=rounded, to=to.copy()), to)
        raise _depends_on_types(node, dialect, "CAST its operand first")
    return _text_cast(node, dialect) if to.is_type(*_TEXT) else node


def _text_cast(node: exp.Expr, dialect: str) -> exp.Expr:
    source, to = node.this, node.args["to"]
    same = source.is_type(*_SAME_TEXT) or (dialect == "trino" and source.is_type(*_FLOATS))
    if same and not to.expressions:
        return node
    if not source.is_type(*_TEXT) or not to.is_type(exp.DType.VARCHAR) or len(to.expressions) != 1:
        raise _depends_on_types(node, dialect, "write that part in Spark's SQL")
    plain = _cast_to(source, "string")
    if dialect == "duckdb":  # DuckDB ignores the length
        return plain
    cut = exp.Substring(this=plain, start=exp.Literal.number(1), length=to.expressions[0].this.copy())
    return _with_type(cut, "string")


def _greatest_or_least(node: exp.Expr) -> exp.Expr:
    """Translate GREATEST and LEAST: in Trino they are NULL if an argument is NULL, in Spark they ignore NULLs."""
    arguments = [node.this, *node.expressions]
    missing = exp.or_(*[exp.Is(this=a.copy(), expression=exp.Null()) for a in arguments])
    chosen = exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=node.copy())
    return _with_type(chosen, node.type) if node.type is not None else chosen


def _cast_to(side: exp.Expr, kind: str) -> exp.Expr:
    return _with_type(exp.Cast(this=side.copy(), to=exp.DataType.build(kind, dialect="spark")), kind)


def _with_type(node: exp.Expr, kind: str | exp.DataType) -> exp.Expr:
    node.type = exp.DataType.build(kind, dialect="spark")
    return node


def _depends_on_types(node: exp.Expr, dialect: str, advice: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"What '{node.meta[_ORIGINAL_TEXT]}' means in {dialect} depends on types that are not known here, or that "
        f"Spark treats in another way; {advice}.",
    )


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


def _refuse_unknown(tree: exp.Expr, dialect: str) -> None:
    """Refuse syntax that Spark would, or might, understand differently.

    In the dialect ``trino`` known differences are refused; in others everything that is not known to be the same.

    Raises:
        TrinityError: NOT_SUPPORTED naming the refused part.
    """
    for node in tree.walk():
        quantified = isinstance(node, exp.Any | exp.All)
        if dialect != "trino" and not quantified and not isinstance(node, (*_QUERY, *_EXPRESSIONS)):
            raise _refused(node, dialect)
        if quantified and not isinstance(node.this, exp.Query):  # ANY or ALL of an array
            raise _refused(node, dialect)
        if isinstance(node, (exp.Like, exp.ILike)) and not escapes_alike(node, dialect):
            raise _refused(node, dialect)


def _refused(node: exp.Expr, dialect: str) -> TrinityError:
    return TrinityError(
        "NOT_SUPPORTED",
        f"'{node.sql(dialect=dialect)}' of {dialect} has no counterpart in Spark that is known to mean the same; write "
        "that part in Spark's SQL.",
    )
