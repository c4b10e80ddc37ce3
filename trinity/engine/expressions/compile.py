"""Compiles expressions of Spark SQL. The table ``_KINDS`` lists the kinds of expressions that are evaluated here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from sqlglot import exp

from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.engine.expressions import (
    arithmetic,
    casts,
    comparisons,
    conditional,
    dates,
    literals,
    logic,
    nested,
    subqueries,
    texts,
    timestamps,
)
from trinity.engine.expressions.functions import FUNCTIONS, NAMED, arguments
from trinity.engine.expressions.node import BOOLEAN, VOID, Compiled, Refused, Scope, ScopeColumn, refusals_as_values
from trinity.engine.writing.casts import cast_array
from trinity.errors import TrinityError
from trinity.predicates.comparisons import conjuncts
from trinity.syntax.parse import expression_tree


def local_tree(text: str) -> exp.Expr | NotLocal:
    """Return the tree of an expression of Spark SQL; if it cannot be parsed here, why it is left to Spark."""
    try:
        return expression_tree(text)
    except TrinityError as error:
        if error.code != "SYNTAX_ERROR":
            raise
        return NotLocal(f"it cannot be parsed here: {error.message}", error)


@deep_recursion()
@refusals_as_values
def compile_expression(
    expression: str | exp.Expr, scope: Scope, timezone: Callable[[], str] = lambda: "UTC"
) -> Compiled | NotLocal:
    """Compile an expression, or return why only Spark evaluates it.

    ``timezone`` returns the session's zone; it is called only where the zone matters.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, INVALID_ARGUMENTS for an ambiguous name.
    """
    tree = local_tree(expression) if isinstance(expression, str) else expression
    if isinstance(tree, NotLocal):
        return tree
    return _Compiler(scope, timezone).compiled(tree)


def compile_predicate(
    expression: str | exp.Expr, scope: Scope, timezone: Callable[[], str] = lambda: "UTC"
) -> Compiled | NotLocal:
    """Compile a condition. Arguments and errors as for :func:`compile_expression`.

    Raises:
        TrinityError: TYPE_MISMATCH for an expression of another type than BOOLEAN.
    """
    found = compile_expression(expression, scope, timezone)
    if isinstance(found, NotLocal) or found.type == BOOLEAN:
        return found
    if found.type == VOID:
        return logic.as_boolean(found)
    text = expression if isinstance(expression, str) else expression.sql(dialect="spark")
    raise TrinityError("TYPE_MISMATCH", f"The condition '{text}' is of type {found.type}, and is to be BOOLEAN.")


@dataclass(frozen=True)
class _Compiler:
    scope: Scope
    timezone: Callable[[], str]

    def compiled(self, tree: exp.Expr) -> Compiled:
        tree = tree.unnest()
        if tree.args.get("negate"):  # NOT LIKE
            return logic.negated(self.compiled(_without_not(tree)))
        compile_kind = _KINDS.get(type(tree))
        if compile_kind is None:
            raise Refused.of(tree)
        found = compile_kind(self, tree)
        return found if compile_kind in _LITERALS else replace(found, literal=False)

    def operand(self, tree: exp.Expr) -> Compiled:
        """Compile an operand. Raises Refused for a condition without parentheses, which Spark may group differently."""
        if isinstance(tree, _CONDITIONS):
            raise Refused(f"'{tree.sql(dialect='spark')}' is an operand without parentheses")
        return self.compiled(tree)

    # -- the kinds ----------------------------------------------------------------------------------------

    def column(self, tree: exp.Expr) -> Compiled:
        assert isinstance(tree, exp.Column)
        if not all(isinstance(part, exp.Identifier) for part in tree.parts):
            raise Refused(f"'{tree.sql(dialect='spark')}' is no column of its own")
        first, *further = self.scope.from_table([part.name for part in tree.parts])
        if further and self.scope.has(first, further[0]):
            found = self.scope.find(first, further.pop(0))
        elif further and not self.scope.has("", first):  # no such column: find raises the error
            found = self.scope.find(first, further[0])
        else:
            found = self.scope.find("", first)
        return reduce(nested.field, further, self._of_rows(found))

    def field(self, tree: exp.Expr) -> Compiled:
        if not isinstance(tree.expression, exp.Identifier):
            raise Refused.of(tree)
        return nested.field(self.operand(tree.this), tree.expression.name)

    def item(self, tree: exp.Expr) -> Compiled:
        if tree.args.get("offset") or len(tree.expressions) != 1:
            raise Refused.of(tree)
        return nested.item(self.operand(tree.this), self.operand(tree.expressions[0]))

    def struct(self, tree: exp.Expr) -> Compiled:
        if not all(isinstance(part, exp.PropertyEQ) for part in tree.expressions):
            raise Refused("only Spark names the fields of a struct")
        return nested.struct(
            [part.name for part in tree.expressions], [self.compiled(part.expression) for part in tree.expressions]
        )

    def array(self, tree: exp.Expr) -> Compiled:
        return nested.array([self.compiled(part) for part in tree.expressions], self.timezone)

    def sequence(self, tree: exp.Expr) -> Compiled:
        first, last, step = (tree.args.get(part) for part in ("start", "end", "step"))
        days = timestamps.days_of(step) if step is not None else None
        parts = [part for part in (first, last, step if days is None else None) if part is not None]
        if tree.args.get("is_end_exclusive"):
            raise Refused.of(tree)
        return nested.sequence([self.operand(part) for part in parts], days, self.timezone)

    def map_of(self, tree: exp.Expr) -> Compiled:
        keys, values = (list(map(self.compiled, tree.args[part].expressions)) for part in ("keys", "values"))
        return nested.map_of(keys, values, self.timezone)

    @staticmethod
    def _of_rows(found: ScopeColumn) -> Compiled:
        if found.type == VOID:
            return literals.constant(VOID, None)
        kind = found.type.to_arrow()
        where = f"column '{found.name}'"
        return Compiled(
            found.type,
            lambda rows: cast_array(rows.column(found.field), kind, where, "UTC"),
            frozenset({found.field}),
            column=True,
        )

    def literal(self, tree: exp.Expr) -> Compiled:
        return literals.literal(tree)

    def sign(self, tree: exp.Expr) -> Compiled:
        number = isinstance(tree.this, exp.Literal) and not tree.this.is_string
        return literals.literal(tree) if number else arithmetic.negated(self.operand(tree.this))

    def cast(self, tree: exp.Expr) -> Compiled:
        if tree.args.get("safe") or tree.args.get("format"):
            raise Refused.of(tree)
        kind = literals.type_of(tree)
        value = tree.this.unnest()
        if isinstance(value, exp.Literal | exp.Null | exp.Neg):
            try:
                return literals.typed_literal(tree, kind, self.timezone)
            except Refused:
                typed = not isinstance(tree, exp.TryCast)  # a literal as DATE '2024-1-31' is no CAST
                suffixed = kind.is_floating and not value.is_string  # 1e40F has the tree of CAST(1e40 AS FLOAT)
                if (typed or suffixed) and not isinstance(value, exp.Neg):
                    raise
        found = casts.cast(self.operand(tree.this), kind, self.timezone)
        return literals.certain(found) if found.constant else found

    def arithmetic(self, tree: exp.Expr) -> Compiled:
        if isinstance(tree, exp.Add | exp.Sub):
            if (interval := timestamps.interval_of(tree.expression)) is not None:
                wanted = interval.negated() if isinstance(tree, exp.Sub) else interval
                return timestamps.later(self.operand(tree.this), wanted, self.timezone)
            if isinstance(tree, exp.Add) and (interval := timestamps.interval_of(tree.this)) is not None:
                return timestamps.later(self.operand(tree.expression), interval, self.timezone)
        left, right = self.operand(tree.this), self.operand(tree.expression)
        if left.type.name == "date" and isinstance(tree, exp.Add | exp.Sub):
            return dates.days_after(left, right, self.timezone, before=isinstance(tree, exp.Sub))
        return arithmetic.arithmetic(type(tree), left, right, self.timezone)

    def days_after(self, tree: exp.Expr) -> Compiled:
        days = tree.expression
        before = isinstance(days, exp.Mul) and days.expression == exp.Neg(this=exp.Literal.number(1))
        if tree.text("unit").upper() != "DAY":
            raise Refused.of(tree)
        number = self.operand(days.this if before else days)
        return dates.days_after(self.compiled(tree.this), number, self.timezone, before=before)

    def function(self, tree: exp.Expr) -> Compiled:
        names, build = FUNCTIONS[type(tree)]
        return build(self.timezone, *arguments(tree, names, self.operand))

    def present(self, tree: exp.Expr) -> Compiled:
        if (
            self.scope.is_stored_expression
            or tree.args.get("this")
            or self.scope.has("", tree.key.replace("current", "current_"))
        ):
            raise Refused.of(tree)
        now = timestamps.now()
        return now if isinstance(tree, exp.CurrentTimestamp) else dates.as_date(now, self.timezone)

    def named(self, tree: exp.Expr) -> Compiled:
        if tree.name.lower() == "now" and not tree.expressions:
            return self.present(exp.CurrentTimestamp())
        build = NAMED.get(tree.name.lower())
        if build is None:
            raise Refused.of(tree)
        try:
            return build(self.timezone, *map(self.operand, tree.expressions))
        except TypeError as error:  # the function takes another number of arguments
            raise Refused.of(tree) from error

    def part(self, tree: exp.Expr) -> Compiled:
        function = _PARTS.get(tree.name.upper())
        if function is None:
            raise Refused.of(tree)
        return self.function(function(this=tree.expression.copy()))

    def padded(self, tree: exp.Expr) -> Compiled:
        names = ("this", "expression", "fill_pattern?")
        bare = exp.Pad(**{name: part for name, part in tree.args.items() if name != "is_left"})
        return texts.padded(*arguments(bare, names, self.operand), before=bool(tree.args.get("is_left")))

    def escape(self, tree: exp.Expr) -> Compiled:
        if not isinstance(tree.this, exp.Like | exp.ILike) or not isinstance(tree.expression, exp.Literal):
            raise Refused.of(tree)
        if tree.this.args.get("negate"):
            return logic.negated(
                self.escape(exp.Escape(this=_without_not(tree.this), expression=tree.expression.copy()))
            )
        value, pattern, escape = (self.operand(t) for t in (tree.this.this, tree.this.expression, tree.expression))
        return texts.like(value, pattern, str(escape.value), any_case=isinstance(tree.this, exp.ILike))

    def second_value(self, tree: exp.Expr) -> Compiled:
        known = exp.Not(this=exp.Is(this=tree.this.copy(), expression=exp.Null()))
        return self._chosen([(known, tree.args["true"])], tree.args.get("false"))

    def trim(self, tree: exp.Expr) -> Compiled:
        if tree.expression is not None and tree.args.get("expression"):
            raise Refused("only Spark trims other characters than blanks")
        return texts.trimmed(self.operand(tree.this), tree.text("position").upper())

    def case(self, tree: exp.Expr) -> Compiled:
        subject = tree.this
        cases = [
            (exp.EQ(this=subject.copy(), expression=case.this.copy()) if subject else case.this, case.args["true"])
            for case in tree.args["ifs"]
        ]
        return self._chosen(cases, tree.args.get("default"))

    def if_(self, tree: exp.Expr) -> Compiled:
        return self._chosen([(tree.this, tree.args["true"])], tree.args.get("false"))

    def _chosen(self, cases: Sequence[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None) -> Compiled:
        compiled = [(self.compiled(condition), self.compiled(value)) for condition, value in cases]
        return conditional.chosen(compiled, self.compiled(otherwise) if otherwise else None, self.timezone)

    def comparison(self, tree: exp.Expr) -> Compiled:
        left, right = self.operand(tree.this), self.operand(tree.expression)
        return comparisons.comparison(comparisons.OPERATORS[type(tree)], left, right, self.timezone)

    def between(self, tree: exp.Expr) -> Compiled:
        if tree.args.get("symmetric"):
            raise Refused("only Spark evaluates BETWEEN SYMMETRIC")
        value, low, high = (self.operand(tree.args[part]) for part in ("this", "low", "high"))
        return comparisons.between(value, low, high, self.timezone)

    def _rows(self, query: exp.Expr) -> subqueries.Rows:
        """Return the rows of a subquery SELECT * FROM n [WHERE key = x AND …], where n names rows of the scope."""
        tables, select = list(query.find_all(exp.Table)), query.unnest().copy()
        rows = self.scope.queries.get(tables[0].name) if len(tables) == 1 else None
        where = select.args.pop("where", None)
        if rows is None or select != exp.select("*").from_(tables[0].name):
            raise Refused.of(query)
        parts = list(conjuncts(where.this)) if where is not None else []
        keys = [(self.operand(part.expression), part.this.name) for part in parts]
        return subqueries.Rows(rows, keys, self.timezone)

    def value(self, tree: exp.Expr) -> Compiled:
        return subqueries.only_value(self._rows(tree))

    def exists(self, tree: exp.Expr) -> Compiled:
        return subqueries.exists(self._rows(tree.this))

    def among(self, tree: exp.Expr) -> Compiled:
        if (query := tree.args.get("query")) is not None:
            return subqueries.among_rows(self.operand(tree.this), self._rows(query))
        if not tree.expressions or any(isinstance(e, exp.Query | exp.Subquery) for e in tree.expressions):
            raise Refused("only Spark evaluates IN of a query")
        values = [self.compiled(e) for e in tree.expressions]
        return comparisons.among(self.operand(tree.this), values, self.timezone)

    def is_(self, tree: exp.Expr) -> Compiled:
        value, what = self.operand(tree.this), tree.expression
        if isinstance(what, exp.Null):
            return logic.is_null(value)
        if isinstance(what, exp.Boolean):
            return logic.is_true(value, wanted=bool(what.this))
        raise Refused.of(tree)

    def and_(self, tree: exp.Expr) -> Compiled:
        return reduce(logic.both, [self.compiled(part) for part in tree.flatten()])

    def or_(self, tree: exp.Expr) -> Compiled:
        return reduce(logic.either, [self.compiled(part) for part in tree.flatten()])

    def not_(self, tree: exp.Expr) -> Compiled:
        return logic.negated(self.compiled(tree.this))


def _without_not(tree: exp.Expr) -> exp.Expr:
    found = tree.copy()
    found.set("negate", None)
    return found


_CONDITIONS: Final = (
    *comparisons.OPERATORS, exp.Between, exp.In, exp.Is, exp.Not, exp.And, exp.Or, exp.Like, exp.ILike, exp.Escape,
    exp.RegexpLike,
)  # fmt: skip
"""Kinds that need parentheses as operands."""

_LITERALS: Final = (_Compiler.literal, _Compiler.sign)
"""Methods that compile literals. As DECIMAL, a literal has the digits written, any other constant those of its type."""

_PARTS: Final[dict[str, type[exp.Func]]] = {
    "YEAR": exp.Year, "YEARS": exp.Year, "QUARTER": exp.Quarter, "MONTH": exp.Month, "MONTHS": exp.Month,
    "DAY": exp.Day, "DAYS": exp.Day, "DOY": exp.DayOfYear, "DAYOFWEEK": exp.DayOfWeek, "WEEK": exp.WeekOfYear,
    "HOUR": exp.Hour, "HOURS": exp.Hour, "MINUTE": exp.Minute, "MINUTES": exp.Minute,
}  # fmt: skip
"""Field of EXTRACT -> the function that returns it."""

_KINDS: Final[dict[type[exp.Expr], Callable[[_Compiler, exp.Expr], Compiled]]] = {
    exp.Column: _Compiler.column,
    exp.Dot: _Compiler.field,
    exp.Bracket: _Compiler.item,
    exp.Struct: _Compiler.struct,
    exp.Array: _Compiler.array,
    exp.VarMap: _Compiler.map_of,
    exp.GenerateSeries: _Compiler.sequence,
    exp.Literal: _Compiler.literal,
    exp.Neg: _Compiler.sign,
    exp.Boolean: _Compiler.literal,
    exp.Null: _Compiler.literal,
    exp.HexString: _Compiler.literal,
    exp.Cast: _Compiler.cast,
    exp.TryCast: _Compiler.cast,
    **dict.fromkeys(comparisons.OPERATORS, _Compiler.comparison),
    exp.Between: _Compiler.between,
    exp.In: _Compiler.among,
    exp.Select: _Compiler.value,
    exp.Exists: _Compiler.exists,
    exp.Is: _Compiler.is_,
    exp.And: _Compiler.and_,
    exp.Or: _Compiler.or_,
    exp.Not: _Compiler.not_,
    **dict.fromkeys(arithmetic.OPERATORS, _Compiler.arithmetic),
    exp.Case: _Compiler.case,
    exp.If: _Compiler.if_,
    exp.Trim: _Compiler.trim,
    exp.TsOrDsAdd: _Compiler.days_after,
    exp.Anonymous: _Compiler.named,
    exp.CurrentDate: _Compiler.present,
    exp.CurrentTimestamp: _Compiler.present,
    exp.Extract: _Compiler.part,
    exp.Pad: _Compiler.padded,
    exp.Escape: _Compiler.escape,
    exp.Nvl2: _Compiler.second_value,
    **dict.fromkeys(FUNCTIONS, _Compiler.function),
}
"""Kind of expression -> the method that compiles it. All other kinds are left to Spark."""
