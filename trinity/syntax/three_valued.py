"""IN, ANY and ALL of a subquery as values: TRUE, FALSE or NULL, as in SQL (M1).

Spark turns such a predicate into a join. That is right, and fast, in a filter, where only TRUE lets a row pass.
Elsewhere NULL differs from FALSE, and the join loses the difference: there the predicate is written out as CASE.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.errors import TrinityError
from trinity.syntax.sql_text import tree_of


class Use(Enum):
    """The place where an expression stands: a JOIN's ON, a filter, or a value.

    It decides whether NULL may become FALSE.
    """

    FILTER = "filter"
    JOIN = "join"
    VALUE = "value"


_NEGATED: Final[dict[type[exp.Expr], type[exp.Binary]]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip
_RANDOM: Final = frozenset({"rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle"})
_ROWS: Final = "_trinity_rows"


@deep_recursion()
def three_valued_text(text: str, use: Use) -> str:
    """Return an expression in Spark's dialect, with predicates written out as CASE if its use needs that.

    Raises:
        TrinityError: as :func:`three_valued`.
    """
    tree = tree_of(text)
    return text if tree is None else three_valued(tree, text, use, exp.Condition)


def three_valued(tree: exp.Expr, text: str, use: Use = Use.VALUE, kind: type[exp.Expr] | None = None) -> str:
    """Return a query or expression, with predicates written out as CASE if their use needs that; else its text.

    Args:
        tree: its tree, in Spark's dialect.
        text: its text.
        use: the use of an expression; it does not matter for a query.
        kind: ``exp.Condition`` for an expression, None for a query.

    Raises:
        TrinityError: NOT_SUPPORTED for a random function in a predicate, which would be evaluated more than once.
    """
    from trinity.syntax.as_written import tree_as_written, written

    if not any(_subquery_of(node) is not None for node in tree.find_all(exp.In, *_NEGATED)):
        return text
    holder = exp.Alias(this=tree_as_written(text, kind))
    _name_columns(holder)
    changed = _without_quantifiers(holder)
    # the innermost predicate first, since a predicate around it copies the new tree
    for node in reversed(list(holder.find_all(exp.In, *_NEGATED))):
        if (query := _subquery_of(node)) is not None and not _is_filter(node, holder, use):
            _refuse_random(node)
            node.replace(_as_case(node, query))
            changed = True
    return written(holder.this) if changed else text


def _name_columns(holder: exp.Expr) -> None:
    """Give columns of a SELECT that change an alias: their text as it was written."""
    from trinity.syntax.as_written import written

    for select in holder.find_all(exp.Select):
        for column in select.expressions:
            if not isinstance(column, exp.Alias) and column.find(exp.In, *_NEGATED) is not None:
                column.replace(exp.alias_(column.copy(), written(column), quoted=True))


def _without_quantifiers(holder: exp.Expr) -> bool:
    """Replace ``= ANY`` by IN, ``op ALL`` by a negated ANY, and VALUES by a query; return whether anything changed."""
    found = False
    for node in reversed(list(holder.find_all(exp.In, *_NEGATED))):
        query = _subquery_of(node)
        if query is None or (isinstance(node, exp.In) and node.args.get("query")):
            continue
        found = True
        negated = not isinstance(node, exp.In) and _quantifier(node.expression) == "all"
        kind = exp.EQ if isinstance(node, exp.In) else _NEGATED[type(node)] if negated else type(node)
        plain: exp.Expr = kind(this=node.this, expression=exp.Any(this=query))
        if kind is exp.EQ:
            plain = exp.In(this=node.this, query=query)
        node.replace(exp.Not(this=exp.Paren(this=plain)) if negated else plain)
    return found


def _subquery_of(node: exp.Expr) -> exp.Subquery | None:
    """Return the subquery of an IN, an ANY or an ALL; None for other nodes."""
    if isinstance(node, exp.In):
        query = node.args.get("query") or (node.expressions[0] if len(node.expressions) == 1 else None)
    else:
        quantified = node.expression
        word = _quantifier(quantified)
        query = quantified.expressions[0] if word and quantified.expressions else quantified.this if word else None
    values = query.unnest() if isinstance(query, exp.Subquery) else query
    if isinstance(values, exp.Values):
        return exp.Subquery(this=exp.select("*").from_(values.copy()))
    if isinstance(node, exp.In) and node.expressions:  # a scalar subquery
        return None
    if isinstance(query, exp.Subquery):
        return query
    return exp.Subquery(this=query) if isinstance(query, exp.Query) else None


def _quantifier(node: exp.Expr) -> str:
    """Return the word ``any`` or ``all`` of an operand; empty for any other operand."""
    if isinstance(node, exp.Any | exp.All):
        return node.key
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:  # ANY of VALUES, or of ((query))
        return {"some": "any"}.get(word := node.name.lower(), word if word in ("any", "all") else "")
    return ""


def _is_filter(node: exp.Expr, holder: exp.Expr, use: Use) -> bool:
    """Return True when NULL has the effect of FALSE where the predicate stands, so that Spark's join is right."""
    if not isinstance(node, exp.In):
        return False  # Spark has no ANY
    outer = _outside_parentheses(node)
    negated = isinstance(outer.parent, exp.Not)
    if negated:
        assert outer.parent is not None
        outer = _outside_parentheses(outer.parent)
    while isinstance(outer.parent, exp.And | exp.Or | exp.Paren) and outer.parent is not holder:
        outer = outer.parent
    above = outer.parent
    if negated and _within_join(outer, holder, use):  # there Spark's join would make TRUE of NULL
        return False
    if above is holder:
        return use is not Use.VALUE
    if isinstance(above, exp.If):
        searched = not isinstance(above.parent, exp.Case) or above.parent.this is None
        return searched and above.this is outer
    filtering = isinstance(above, exp.Where) and not isinstance(above.parent, exp.Filter)
    return filtering or isinstance(above, exp.Having | exp.Join)


def _outside_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node


def _within_join(outer: exp.Expr, holder: exp.Expr, use: Use) -> bool:
    above = outer.parent
    while above is not None and above is not holder and not isinstance(above, exp.Query):
        if isinstance(above, exp.Join):
            return True
        above = above.parent
    return above is holder and use is Use.JOIN


def _refuse_random(node: exp.Expr) -> None:
    for function in node.find_all(exp.Func, exp.TableSample):
        name = function.name if isinstance(function, exp.Anonymous) else function.key
        if isinstance(function, exp.TableSample) or name.lower() in _RANDOM:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"'{node.sql(dialect='spark')}' is used as a value, for which its subquery is read more than once, and "
                f"{name.lower()} gives other rows each time; write the rows to a table first.",
            )


def _as_case(node: exp.Expr, query: exp.Subquery) -> exp.Expr:
    """Return a predicate as CASE: TRUE if it is TRUE, NULL if it is NULL, else FALSE.

    The subquery's columns get names that occur nowhere else, so that they hide no other column.
    """
    value = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    parts = value.expressions if isinstance(value, exp.Tuple) else [value]
    names = [exp.column(exp.to_identifier(f"{_ROWS}_{n}", quoted=True)) for n in range(len(parts))]
    if isinstance(node, exp.In):
        true: exp.Expr = exp.In(this=node.this.copy(), query=query.copy())
    else:
        true = _exists(query, names, type(node)(this=as_operand(value), expression=names[0].copy()))
    found = exp.Case().when(true, exp.true())
    for unknown in _null_conditions(node, query, parts, names):
        found = found.when(unknown, exp.null())
    return exp.Paren(this=found.else_(exp.false()))


def _null_conditions(
    node: exp.Expr, query: exp.Subquery, parts: list[exp.Expr], names: list[exp.Column]
) -> list[exp.Expr]:
    """Return the conditions under which a predicate that is not TRUE is NULL."""
    if isinstance(node, exp.In) and len(parts) == 1:  # no comparison is needed, only tests for NULL
        null_value = exp.Is(this=as_operand(parts[0]), expression=exp.Null())
        return [
            exp.And(this=null_value, expression=_exists(query, names, None)),
            _exists(query, names, exp.Is(this=names[0].copy(), expression=exp.Null())),
        ]
    kind = exp.EQ if isinstance(node, exp.In) else type(node)
    same = [kind(this=as_operand(p), expression=n.copy()) for p, n in zip(parts, names, strict=True)]
    return [_exists(query, names, exp.Is(this=exp.Paren(this=exp.and_(*same)), expression=exp.Null()))]


def as_operand(value: exp.Expr) -> exp.Expr:
    """Return a copy of an expression, in parentheses if an operator beside it could bind to a part of it."""
    simple = isinstance(value, exp.Column | exp.Literal | exp.Paren | exp.Func | exp.Subquery)
    return value.copy() if simple else exp.Paren(this=value.copy())


def _exists(query: exp.Subquery, names: list[exp.Column], condition: exp.Expr | None) -> exp.Expr:
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True), columns=[n.this.copy() for n in names])
    rows = exp.Subquery(this=query.this.copy(), alias=alias)
    select = exp.select("1").from_(rows)
    return exp.Exists(this=select if condition is None else select.where(condition))
