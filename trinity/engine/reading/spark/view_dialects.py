"""Spark SQL in the dialects of merge views: sqlglot's translation, and rules for what sqlglot does not translate.

Each rule changes one kind of node of the tree, and says what is different in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from trinity.syntax.strict_casts import with_strict_casts


def translated(text: str, dialect: str) -> str:
    """Return a Spark query in another dialect, laid out."""
    tree = with_strict_casts(text)
    # from the leaves up, since a rule may move the nodes below its own
    for node in reversed(list(tree.walk())):
        rule = _RULES.get(type(node))
        if rule is not None:
            found = rule(node)
            if found is not node:
                node.replace(found)
    return tree.sql(dialect=dialect, pretty=True)


_ACC: Final = "_trinity_acc"
_ITEM: Final = "_trinity_item"


def _order(node: exp.Struct) -> exp.Expr:
    """Put before each part of a tuple a flag that is false for NULL, which is smallest in Spark, greatest in DuckDB.

    A tuple is a struct of columns under their own names. So are the elements of a list, but these are never compared.
    """
    parts = node.expressions
    columns = [part.expression for part in parts]
    plain = all(isinstance(c, exp.Column) and c.name == p.name for c, p in zip(columns, parts, strict=True))
    if not plain or isinstance(node.parent, exp.ArrayAgg):
        return node
    found = []
    for number, part in enumerate(parts):
        known = exp.Not(this=exp.Is(this=part.expression.copy(), expression=exp.Null()))
        found += [_field(f"_trinity_known_{number}", known), part.copy()]
    return exp.Struct(expressions=found)


def _field(name: str, value: exp.Expr) -> exp.PropertyEQ:
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value)


def _lambda(node: exp.Lambda) -> exp.Expr:
    """Rename the variables of a lambda: DuckDB reads a variable as the column of its name, if there is one."""
    declared = {name.name for name in node.expressions}
    for name in list(node.find_all(exp.Identifier)):
        if name.name in declared and (name.parent is node or _is_variable(name)):
            name.replace(exp.to_identifier(f"_trinity_{name.name}"))
    return node


def _reduce(node: exp.Reduce) -> exp.Expr:
    """Make elements and result of a reduction pairs (result, element): DuckDB's list_reduce has one type for both."""
    merge = node.args["merge"]
    acc, item = merge.expressions
    for name in list(merge.this.find_all(exp.Identifier)):
        if name.name in (acc.name, item.name) and _is_variable(name):
            name.replace(
                exp.Dot(this=name.copy(), expression=exp.to_identifier(_ACC if name.name == acc.name else _ITEM))
            )
    start = node.args["initial"]
    paired = exp.Struct(expressions=[_field(_ACC, start.copy()), _field(_ITEM, item.copy())])
    rows = exp.Transform(this=node.this.copy(), expression=exp.Lambda(this=paired, expressions=[item.copy()]))
    kept = exp.Dot(this=item.copy(), expression=exp.to_identifier(_ITEM))
    step = exp.Struct(expressions=[_field(_ACC, merge.this.copy()), _field(_ITEM, kept)])
    found = exp.Reduce(
        this=rows,
        initial=exp.Struct(expressions=[_field(_ACC, start.copy()), _field(_ITEM, exp.Null())]),
        merge=exp.Lambda(this=step, expressions=[acc.copy(), item.copy()]),
    )
    return exp.Dot(this=exp.Paren(this=found), expression=exp.to_identifier(_ACC))


def _is_variable(name: exp.Identifier) -> bool:
    """Return True when a name is a variable of a lambda, not the name of a field, a column or an argument."""
    parent = name.parent
    if isinstance(parent, exp.Dot):
        return name.arg_key == "this"
    if isinstance(parent, exp.PropertyEQ):
        return name.arg_key == "expression"
    if isinstance(parent, exp.Lambda):
        return name.arg_key == "this"
    return not isinstance(parent, exp.Column | exp.ColumnDef)


def _sort_by_fold_order(node: exp.ArraySort) -> exp.Expr:
    """Sort by the first field, the fold order, which is unique within a key: DuckDB's list_sort takes no comparison."""
    ways = [exp.Literal.string(way) for way in ("ASC", "NULLS FIRST")]
    return exp.func("LIST_SORT", node.this.copy(), *ways)


def _shifted_left(node: exp.BitwiseLeftShift) -> exp.Expr:
    """Multiply instead of a shift to the left: DuckDB shifts no negative number. Its sums do not wrap (HUGEINT)."""
    power = exp.Literal.number(2 ** int(node.expression.name))
    return exp.Paren(this=exp.Mul(this=node.this.copy(), expression=power))


def _shifted_right(node: exp.BitwiseRightShift) -> exp.Expr:
    """Put a shift to the right in parentheses: a function in Spark, it is an operator in DuckDB that binds weakly."""
    return exp.Paren(this=node.copy())


def _distinct(node: exp.ArrayDistinct) -> exp.Expr:
    """Remove duplicates from a list, and keep its order, which DuckDB's list_distinct loses."""
    values, element, number = node.this, exp.to_identifier("_trinity_e"), exp.to_identifier("_trinity_i")
    first = exp.func("LIST_POSITION", values.copy(), element.copy())
    keeps = exp.Lambda(this=exp.EQ(this=first, expression=number.copy()), expressions=[element, number])
    return exp.func("LIST_FILTER", values.copy(), keeps)


def _position(node: exp.ArrayPosition) -> exp.Expr:
    """Return the position in an array, 0 for a missing value as Spark has it; DuckDB's own is NULL."""
    found = exp.func("LIST_POSITION", node.this.copy(), node.expression.copy())
    return exp.Coalesce(this=found, expressions=[exp.Literal.number(0)])


def _slice(node: exp.ArraySlice) -> exp.Expr:
    """Replace Spark's length of a slice by DuckDB's end. Of a list that is too short both return what there is."""
    start, length = node.args["start"], node.args["end"]
    end = exp.Sub(this=exp.Add(this=exp.paren(start), expression=exp.paren(length)), expression=exp.Literal.number(1))
    return exp.ArraySlice(this=node.this.copy(), start=start.copy(), end=end)


def _product(node: exp.SafeMultiply) -> exp.Expr:
    return exp.func("TRY", exp.Mul(this=exp.paren(node.this), expression=exp.paren(node.expression)))


def _quotient(node: exp.SafeDivide) -> exp.Expr:
    """Divide DECIMALs, where the quotient is whole, as HUGEINT: DuckDB divides DECIMALs as DOUBLE."""
    one, other = node.this, node.expression
    if not (isinstance(other, exp.Cast) and other.to.is_type("decimal")):
        return exp.func("TRY", exp.Div(this=exp.paren(one), expression=exp.paren(other)))
    whole = [exp.cast(part.copy(), "HUGEINT", dialect="duckdb") for part in (one, other)]
    return exp.func("TRY", exp.IntDiv(this=whole[0], expression=whole[1]))


def _at_end(node: exp.ArgMax | exp.ArgMin) -> exp.Expr:
    """Use the functions of DuckDB that keep rows whose value is NULL: its ARG_MAX and ARG_MIN leave them out."""
    name = "ARG_MAX_NULL" if isinstance(node, exp.ArgMax) else "ARG_MIN_NULL"
    return exp.Anonymous(this=name, expressions=[node.this.copy(), node.expression.copy()])


def _inline(node: exp.Inline) -> exp.Expr:
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
    return exp.Anonymous(this="UNNEST", expressions=[node.this.copy(), depth])


def _named(node: exp.Anonymous) -> exp.Expr:
    name = _NAMES.get(node.name.lower())
    return exp.Anonymous(this=name, expressions=node.expressions) if name else node


_NAMES: Final[Mapping[str, str]] = {"raise_error": "ERROR", "try_sum": "SUM"}
"""Spark's function -> DuckDB's. DuckDB's SUM raises an error where Spark's try_sum returns NULL."""

_RULES: Final[Mapping[type[exp.Expr], Callable[..., exp.Expr]]] = {
    exp.Anonymous: _named,
    exp.ArgMax: _at_end,
    exp.ArgMin: _at_end,
    exp.ArrayDistinct: _distinct,
    exp.ArrayPosition: _position,
    exp.ArraySlice: _slice,
    exp.ArraySort: _sort_by_fold_order,
    exp.BitwiseLeftShift: _shifted_left,
    exp.BitwiseRightShift: _shifted_right,
    exp.Inline: _inline,
    exp.Lambda: _lambda,
    exp.Reduce: _reduce,
    exp.SafeDivide: _quotient,
    exp.SafeMultiply: _product,
    exp.Struct: _order,
}
