"""Aggregate functions whose values DuckDB computes as Spark does, bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import DOUBLE, FLOATS, TEXTS, WHOLE, Refused
from trinity.spi import DataType
from trinity.sql.local.rewrites import EXACT_SUM

__all__ = ["BIGINT", "Aggregate", "aggregate_of", "as_one_value"]

BIGINT: Final = DataType("bigint")
_ORDERED: Final = (*WHOLE, "decimal", "string", "char", "varchar", "date", "timestamp", "timestamp_ntz", "boolean")
"""Types that have one value for what compares equal, and no other order in DuckDB."""
_MOST_DIGITS: Final = 28
"""Digits of the widest DECIMAL whose sum is sure to have 38, which is what Spark makes of it."""


@dataclass(frozen=True)
class Aggregate:
    """One call of an aggregate function.

    Attributes:
        function: DuckDB's function.
        argument: the expression that it takes; None for the rows themselves.
        distinct: whether it takes each value once.
        name: the name that Spark gives the column; None where that is not known.
        exact: whether it sums whole numbers in DOUBLE, whose order does not matter.
    """

    function: str
    argument: exp.Expr | None
    distinct: bool
    name: str | None
    exact: bool = False

    def type_of(self, argument: DataType | None) -> DataType:
        """Return the type of its values in Spark, by that of its argument. Raises Refused."""
        if self.function == "count":
            if self.distinct and argument is not None:
                as_one_value(argument)
            return BIGINT
        assert argument is not None
        if self.function in ("min", "max"):
            as_one_value(argument)
            return DataType("string") if argument.name in TEXTS else argument
        if argument.name in WHOLE:
            return BIGINT
        if argument.name == "decimal" and argument.arguments[0] <= _MOST_DIGITS:
            precision, scale = argument.arguments
            return DataType("decimal", (precision + 10, scale))
        if argument.name in FLOATS and self.exact:
            return DOUBLE
        if argument.name in FLOATS:
            raise Refused(f"the sum of {argument} depends on the order of the rows")
        raise Refused(f"only Spark computes {self.function} of {argument}")

    def text(self, field: str, kind: DataType, over: str = "") -> str:
        """Return its text in DuckDB's SQL: of a field, as a type, over a window."""
        inner = field if self.argument is not None else "*"
        call = f"{self.function}({'DISTINCT ' if self.distinct else ''}{inner}) {over}".strip()
        return f"CAST({call} AS BIGINT)" if kind == BIGINT and self.function == "sum" else call


_FUNCTIONS: Final[dict[type[exp.Expr], str]] = {exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max"}


def aggregate_of(node: exp.AggFunc) -> Aggregate:
    """Return the call of an aggregate function. Raises Refused for one that only Spark computes."""
    function = _FUNCTIONS.get(type(node))
    taken, further = node.this, [k for k, v in node.args.items() if v and k not in ("this", "big_int")]
    if function is None or further or isinstance(node.parent, exp.Filter | exp.WithinGroup):
        raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'")
    distinct = isinstance(taken, exp.Distinct)
    if distinct:
        if len(taken.expressions) != 1 or taken.args.get("on"):
            raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'")
        taken = taken.expressions[0]
    if function == "count" and (isinstance(taken, exp.Star) or (isinstance(taken, exp.Literal) and not distinct)):
        return Aggregate("count", None, False, "count(1)")
    name = f"{function}({'DISTINCT ' if distinct else ''}{taken.name})" if isinstance(taken, exp.Column) else None
    return Aggregate(function, taken, distinct, name, bool(node.meta.get(EXACT_SUM)))


def as_one_value(kind: DataType) -> None:
    """Refuse a type of which Spark takes different values for one (0.0 and -0.0), or that has parts."""
    if kind.name not in _ORDERED:
        raise Refused(f"only Spark tells which values of {kind} are the same")
