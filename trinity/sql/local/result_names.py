"""The names that Spark gives to columns of a SELECT without an alias: the expressions, as Spark prints them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp

from trinity.engine.expressions import Refused, ScopeColumn
from trinity.errors import TrinityError
from trinity.syntax.as_written import AsWritten, tree_as_written
from trinity.syntax.parse import WRITTEN, tokenize


def column_name(node: exp.Expr, columns: Sequence[ScopeColumn]) -> str:
    """Return the name that Spark gives a column of a SELECT. Raises Refused for an expression not printed here.

    Args:
        node: the expression of the SELECT list, as it was parsed.
        columns: the columns that the expression may name.
    """
    if isinstance(node, exp.Alias):
        if not isinstance(node.args["alias"], exp.Identifier):
            raise Refused("an alias names several columns")
        return node.alias
    text = str(node.meta.get(WRITTEN, ""))
    if isinstance(node, exp.Column) and "+" not in text:
        return node.name
    try:
        tree = tree_as_written(text, exp.Condition)
        if isinstance(tree, exp.Cast) and not tree.args.get("safe") and isinstance(tree.this, exp.Column):
            return tree.this.name
        if not _keeps_signs(tree, tokenize(text)):
            raise _Unprintable
        return _Printer(columns).text(tree)
    except (_Unprintable, TrinityError):
        what = text or node.sql(dialect="spark")
        raise Refused(f"'{what}' has no name; write AS after it") from None


class _Unprintable(Exception):
    """An expression that this process does not print as Spark does."""


class _Printer:
    """A printer of expressions as Spark's ``toPrettySQL`` prints them: operators in parentheses, no implicit casts.

    Args:
        columns: the columns that expressions may name.
    """

    def __init__(self, columns: Sequence[ScopeColumn]) -> None:
        self._types = {column.name.lower(): column.type.name for column in columns}
        self._tables = {column.qualifier.lower() for column in columns if column.qualifier}

    def text(self, node: exp.Expr) -> str:
        """Return the text. Raises _Unprintable."""
        if type(node) in _OPERATORS:
            return self._operator(node)
        if (printed := _PRINTED.get(type(node))) is None:
            raise _Unprintable
        return printed(self, node)

    def _operator(self, node: exp.Expr) -> str:
        sides = [node.this, node.expression]
        if isinstance(node, _ARITHMETIC) and any(map(self._may_be_time, sides)):
            raise _Unprintable  # Spark prints arithmetic of days and intervals as functions
        if isinstance(node, _COMPARISONS) and any(_is_fraction(side) for side in sides):
            raise _Unprintable  # Spark rounds the number to the type of the other side
        found = f"({self.text(node.this)} {_OPERATORS[type(node)]} {self.text(node.expression)})"
        return f"(NOT {found})" if isinstance(node, exp.NEQ) else found

    def _may_be_time(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            return self._types.get(node.name.lower(), "date").startswith(("date", "time", "interval"))
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in _OF_NUMBERS:
            return False
        return any(map(self._may_be_time, node.iter_expressions()))

    def column(self, node: exp.Expr) -> str:
        """Return a column's name. Refuse a struct's field, for which Spark prints the struct, too."""
        table = node.text("table").lower()
        if node.args.get("db") or node.name.lower() not in self._types or (table and table not in self._tables):
            raise _Unprintable
        return node.name

    def literal(self, node: exp.Expr) -> str:
        """Return a literal's text. Refuse numbers not written like 12 or 1.5, which Spark prints in another form."""
        if not node.args["is_string"] and not node.name.replace(".", "", 1).isdigit():
            raise _Unprintable
        return node.name

    def negated(self, node: exp.Expr) -> str:
        """Return the text of a negation: ``-1`` for a number, else ``(- a)``."""
        inner = self.text(node.this)
        return f"-{inner}" if isinstance(node.this, exp.Literal) else f"(- {inner})"

    def negation(self, node: exp.Expr) -> str:
        """Return the text of a NOT."""
        if isinstance(node.this, exp.Is):
            return self.null_test(node.this, "IS NOT NULL")
        return f"(NOT {self.text(node.this)})"

    def null_test(self, node: exp.Expr, words: str = "IS NULL") -> str:
        """Return the text of IS NULL, or of IS NOT NULL."""
        if not isinstance(node.expression, exp.Null):
            raise _Unprintable
        return f"({self.text(node.this)} {words})"

    def membership(self, node: exp.Expr) -> str:
        """Return the text of IN with a list."""
        if not node.expressions or any(_is_fraction(value) for value in node.expressions):
            raise _Unprintable
        return f"({self.text(node.this)} IN ({self._list(node.expressions)}))"

    def between(self, node: exp.Expr) -> str:
        """Return the text of BETWEEN."""
        return f"between({self._list([node.this, node.args['low'], node.args['high']])})"

    def like(self, node: exp.Expr) -> str:
        """Return the text of LIKE."""
        if set(node.args) - {"this", "expression", "negate"}:
            raise _Unprintable
        found = f"{self.text(node.this)} LIKE {self.text(node.expression)}"
        return f"(NOT {found})" if node.args.get("negate") else found

    def case(self, node: exp.Expr) -> str:
        """Return the text of CASE. Spark prints ``CASE a WHEN 1`` as ``CASE WHEN (a = 1)``."""
        value, otherwise = node.this, node.args.get("default")
        found = ["CASE"]
        for branch in node.args["ifs"]:
            condition = branch.this if value is None else exp.EQ(this=value.copy(), expression=branch.this.copy())
            found.append(f"WHEN {self.text(condition)} THEN {self.text(branch.args['true'])}")
        found += [] if otherwise is None else [f"ELSE {self.text(otherwise)}"]
        return " ".join([*found, "END"])

    def choice(self, node: exp.Expr) -> str:
        """Return the text of the function if."""
        parts = [node.this, node.args["true"], node.args.get("false") or exp.Null()]
        return f"(IF({self._list(parts)}))"

    def cast(self, node: exp.Expr) -> str:
        """Return the text of a CAST. Refuse a literal's: sqlglot parses ``DATE '...'`` and ``12L`` as such, too."""
        if node.args.get("safe") or isinstance(node.this, exp.Literal):
            raise _Unprintable
        return f"CAST({self.text(node.this)} AS {node.args['to'].sql(dialect=AsWritten).upper()})"

    def whole(self, node: exp.Expr) -> str:
        """Return the text of floor and ceil, which Spark prints in capitals."""
        if any(value for key, value in node.args.items() if key != "this"):
            raise _Unprintable
        return f"{type(node).__name__.upper()}({self.text(node.this)})"

    def call(self, node: exp.Expr) -> str:
        """Return the text of a call whose name and arguments Spark prints as they are written."""
        name, operands = str(node.this).lower(), node.expressions
        if name not in _CALLED or not operands:
            raise _Unprintable
        if name == "count" and isinstance(operands[0], exp.Star):
            return "count(1)"
        if name in ("isnull", "isnotnull"):
            return f"({self._list(operands)} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
        if name == "round" and len(operands) == 1:
            operands = [*operands, exp.Literal.number(0)]
        distinct = isinstance(operands[0], exp.Distinct)
        values = operands[0].expressions if distinct else operands
        return f"{_CALLED[name]}({'DISTINCT ' if distinct else ''}{self._list(values)})"

    def filtered(self, node: exp.Expr) -> str:
        """Return the text of an aggregate function with FILTER."""
        return f"{self.text(node.this)} FILTER (WHERE {self.text(node.expression.this)})"

    def _list(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(map(self.text, nodes))


def _keeps_signs(tree: exp.Expr, tokens: Sequence[Token]) -> bool:
    """Return False if sqlglot dropped a unary plus, or read ``NOT a IS NULL`` as ``a IS NOT NULL``."""
    kinds = [token.token_type for token in tokens]
    tests = sum(isinstance(node.this, exp.Is) for node in tree.find_all(exp.Not))
    return kinds.count(TokenType.PLUS) == len(list(tree.find_all(exp.Add))) and tests == list(pairwise(kinds)).count(
        (TokenType.IS, TokenType.NOT)
    )


def _is_fraction(node: exp.Expr) -> bool:
    node = node.unnest().this if isinstance(node.unnest(), exp.Neg) else node.unnest()
    return isinstance(node, exp.Literal) and not node.args["is_string"] and not node.name.isdigit()


_OPERATORS: Final[Mapping[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.NEQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "AND", exp.Or: "OR",
}  # fmt: skip
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_PRINTED: Final[Mapping[type[exp.Expr], Callable[[_Printer, exp.Expr], str]]] = {
    exp.Paren: lambda printer, node: printer.text(node.this),
    exp.Column: _Printer.column, exp.Literal: _Printer.literal, exp.Null: lambda *_: "NULL",
    exp.Boolean: lambda _, node: "true" if node.this else "false",
    exp.Neg: _Printer.negated, exp.Not: _Printer.negation, exp.Is: _Printer.null_test, exp.In: _Printer.membership,
    exp.Between: _Printer.between, exp.Like: _Printer.like, exp.Case: _Printer.case, exp.If: _Printer.choice,
    exp.Anonymous: _Printer.call, exp.Filter: _Printer.filtered, exp.TryCast: _Printer.cast, exp.Floor: _Printer.whole,
    exp.Ceil: _Printer.whole,
}  # fmt: skip
_CALLED: Final[Mapping[str, str]] = {
    **{name: name for name in (
        "count", "sum", "avg", "mean", "min", "max", "count_if", "bool_or", "bool_and", "every", "some", "stddev",
        "stddev_samp", "stddev_pop", "std", "variance", "var_samp", "var_pop", "collect_list", "collect_set", "max_by",
        "min_by", "coalesce", "nvl", "ifnull", "nullif", "upper", "ucase", "lower", "lcase", "length", "char_length",
        "left", "right", "concat", "concat_ws", "replace", "abs", "greatest", "least", "year", "month", "day",
        "dayofmonth", "hour", "minute", "second", "datediff", "date_format", "reverse", "repeat", "startswith",
        "endswith", "contains", "isnull", "isnotnull", "round", "date_add", "date_sub", "quarter", "last_day",
        "add_months", "date_trunc", "trunc", "to_date", "instr", "size", "array", "element_at", "array_contains",
    )},
    "array_agg": "collect_list", "sqrt": "SQRT", "sign": "sign",
}  # fmt: skip
"""Function, in lower case -> its name in Spark's text. Spark prints the arguments of these as they are written."""
_OF_NUMBERS: Final = frozenset(
    {"count", "count_if", "length", "char_length", "year", "month", "day", "dayofmonth", "hour", "minute", "second",
     "quarter", "datediff", "instr", "size"}
)  # fmt: skip
"""Functions that return numbers, whatever the types of their arguments."""
