"""Joins: this process computes expressions of both sides as columns, and DuckDB joins by comparing these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.engine.executes import NotLocal
from trinity.engine.expressions import (
    Compiled,
    Refused,
    Scope,
    compile_expression,
    compile_predicate,
    or_refuse,
    together,
)
from trinity.predicates.comparisons import FLIPPED, conjuncts
from trinity.sql.local.aggregates import as_one_value
from trinity.sql.local.relations import Relation, filtered, with_values

_Timezone = Callable[[], str]
_WORDS: Final = {
    ("", ""): "INNER", ("", "INNER"): "INNER", ("", "CROSS"): "CROSS",
    **{(side, outer): side for side in ("LEFT", "RIGHT", "FULL") for outer in ("", "OUTER")},
    **{(side, kind): kind for side in ("", "LEFT") for kind in ("SEMI", "ANTI")},
}  # fmt: skip
"""sqlglot's (side, kind) of a join -> DuckDB's keyword."""
_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
"""Comparison -> DuckDB's operator."""
_FILTERED: Final = {"left": ("INNER", "CROSS", "RIGHT", "SEMI"), "right": ("INNER", "CROSS", "LEFT", "SEMI", "ANTI")}
"""Side -> the joins whose condition on that side alone may filter its rows before the join."""


def word_of(join: exp.Join) -> str | None:
    """Return DuckDB's word for a join; None for one that only Spark knows."""
    return _WORDS.get((join.side, join.kind))


@dataclass(frozen=True)
class On:
    """The condition of a join.

    Attributes:
        pairs: comparisons of both sides: expression of the left rows, DuckDB's operator, expression of the right rows.
        of_left: other conditions on the left rows alone.
        of_right: other conditions on the right rows alone.
        of_both: other conditions on both.
    """

    pairs: list[tuple[Compiled, str, Compiled]]
    of_left: list[Compiled]
    of_right: list[Compiled]
    of_both: list[Compiled]

    @classmethod
    def of(cls, parts: Iterable[exp.Expr], left: Scope, right: Scope, timezone: _Timezone) -> On:
        """Return the condition whose parts are joined by AND. Raises Refused for one that only Spark evaluates."""
        found = cls([], [], [], [])
        for part in _split(parts):
            if (pair := _pair(part, left, right, timezone)) is not None:
                found.pairs.append(pair)
                continue
            side = _side(part, left, right)
            scope, listed = {
                "left": (left, found.of_left),
                "right": (right, found.of_right),
                "both": (Scope([*left.columns, *right.columns]), found.of_both),
            }[side]
            listed.append(_certain(compile_predicate(part, scope, timezone)))
        return found

    @classmethod
    def of_names(cls, names: Iterable[str], left: Scope, right: Scope, timezone: _Timezone) -> On:
        """Return the condition that columns of these names are equal. Raises as :meth:`of`, and COLUMN_NOT_FOUND."""
        sides = [[_certain(compile_expression(_column(name, s), s, timezone)) for s in (left, right)] for name in names]
        pairs = [_compared(one, other, timezone) for one, other in sides]
        return cls([(one, "=", other) for one, other in pairs], [], [], [])

    @classmethod
    def within(cls, parts: Iterable[exp.Expr], left: Scope, right: Scope, timezone: _Timezone) -> On:
        """Return the comparisons of both sides among the parts of a later WHERE; leave out other parts."""
        found = cls([], [], [], [])
        for part in _split(parts):
            try:
                pair = _pair(part, left, right, timezone)
            except Refused:
                continue
            if pair is not None:
                found.pairs.append(pair)
        return found

    def applied(self, word: str, left: Relation, right: Relation) -> tuple[Relation, Relation, str]:
        """Return both sides with the columns that the join compares, and the join in DuckDB's SQL, from its keyword on.

        Raises:
            Refused: for an outer join by a condition of both sides that is no comparison.
        """
        if self.of_both and word not in ("INNER", "CROSS"):
            raise Refused(f"only Spark makes a {word} JOIN by more than comparisons of both sides")
        left, flags = _flagged(left, self.of_left, before=word in _FILTERED["left"])
        right, others = _flagged(right, self.of_right, before=word in _FILTERED["right"])
        left, mine = with_values(left, [value for value, _, _ in self.pairs])
        right, theirs = with_values(right, [value for _, _, value in self.pairs])
        operators = [operator for _, operator, _ in self.pairs]
        compared = [f"{one} {op} {other}" for one, op, other in zip(mine, operators, theirs, strict=True)]
        on = " AND ".join([*compared, *flags, *others])
        if not on and word in ("INNER", "CROSS"):
            return left, right, "CROSS JOIN {1}"
        return left, right, f"{'INNER' if word == 'CROSS' else word} JOIN {{1}} ON {on or 'TRUE'}"


def _flagged(rows: Relation, conditions: Sequence[Compiled], *, before: bool) -> tuple[Relation, list[str]]:
    """Return the rows of one side for which the conditions hold; or all rows, with a flag column per condition."""
    if not before:
        return with_values(rows, conditions)
    for condition in conditions:
        rows = filtered(rows, condition)
    return rows, []


def _split(parts: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that AND joins; split BETWEEN into two comparisons."""
    for part in parts:
        if isinstance(part, exp.Between) and not part.args.get("symmetric"):
            yield exp.GTE(this=part.this.copy(), expression=part.args["low"].copy())
            yield exp.LTE(this=part.this.copy(), expression=part.args["high"].copy())
        else:
            yield from conjuncts(part)


def _pair(part: exp.Expr, left: Scope, right: Scope, timezone: _Timezone) -> tuple[Compiled, str, Compiled] | None:
    """Return (left value, operator, right value) of a comparison of both sides; None for another condition."""
    operator = type(part)
    if operator not in _OPERATORS or not all(side.find(exp.Column) for side in (part.this, part.expression)):
        return None
    sides = [_side(side, left, right) for side in (part.this, part.expression)]
    if sides not in (["left", "right"], ["right", "left"]):
        return None
    mine, theirs = part.this, part.expression
    if sides[0] == "right":
        operator, mine, theirs = FLIPPED[operator], theirs, mine
    one, other = (
        _certain(compile_expression(tree, scope, timezone)) for tree, scope in ((mine, left), (theirs, right))
    )
    one, other = _compared(one, other, timezone)
    return one, _OPERATORS[operator], other


def _column(name: str, scope: Scope) -> exp.Expr:
    column = scope.find("", name)
    return exp.column(column.name, table=column.qualifier or None, quoted=True)


def _side(tree: exp.Expr, left: Scope, right: Scope) -> str:
    """Return the side of a join whose columns an expression names: left, right or both.

    Raises:
        Refused: for an expression without columns, or with a column that neither or each side has.
    """
    columns = list(tree.find_all(exp.Column))
    of_left, of_right = ([scope.has(c.text("table"), c.name) for c in columns] for scope in (left, right))
    if not columns or not all(one != other for one, other in zip(of_left, of_right, strict=True)):
        raise Refused(f"only Spark joins by '{tree.sql(dialect='spark')}'")
    return "left" if all(of_left) else "right" if all(of_right) else "both"


def _compared(one: Compiled, other: Compiled, timezone: _Timezone) -> tuple[Compiled, Compiled]:
    """Return both sides of a comparison, cast to one type. Raises Refused for types that only Spark compares."""
    as_one_value(one.type)
    as_one_value(other.type)
    if one.type == other.type:
        return one, other
    if one.type.name == other.type.name == "char":
        raise Refused(f"only Spark joins {one.type} with {other.type}")
    one, other = together([one, other], timezone)
    as_one_value(one.type)
    return one, other


def _certain(found: Compiled | NotLocal) -> Compiled:
    """Return an expression of a join. Raises Refused for one that may fail: which rows it sees depends on the plan."""
    if or_refuse(found).may_fail:
        raise Refused("only Spark joins by an expression that may fail")
    return or_refuse(found)
