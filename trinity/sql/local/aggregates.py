"""Aggregate functions whose values DuckDB computes as Spark does.

The values are equal to the last bit, except for those that depend on the order of the rows, in Spark as here: sums of
FLOAT and DOUBLE, and values computed from them. These are computed only with ``engine="local"`` (L1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import DOUBLE, VOID, Refused
from trinity.spi import DataType
from trinity.sql.local.rewrites import EXACT_SUM

BIGINT: Final = DataType("bigint")
_MOST_DIGITS: Final = 28
"""Precision of the widest DECIMAL whose sum fits Spark's type of the sum: ten digits more, at most 38."""


@dataclass(frozen=True)
class Aggregate:
    """One call of an aggregate function.

    Attributes:
        function: DuckDB's function.
        arguments: the expressions that it takes; none for ``count(*)``.
        distinct: whether it takes each value once.
        exact: whether it sums whole numbers as DOUBLE, so that the order of the rows does not matter.
        any_order: whether a value that depends on the order of the rows is allowed.
    """

    function: str
    arguments: Sequence[exp.Expr]
    distinct: bool
    exact: bool = False
    any_order: bool = False

    def type_of(self, arguments: Sequence[DataType]) -> DataType:
        """Return Spark's type of the call for arguments of these types. Raises Refused if only Spark computes it."""
        if VOID in arguments:
            raise Refused(f"only Spark computes {self.function} of a NULL without type")
        if self.function == "count":
            if self.distinct and arguments:
                as_one_value(arguments[0])
            return BIGINT
        argument = DataType("string") if arguments[0].is_text else arguments[0]
        if self.function in ("min", "max"):
            as_one_value(argument)
            return argument
        if self.function in _BY:
            as_one_value(arguments[1])
            if argument.nested and argument.has_floating:
                raise Refused(f"DuckDB's {_BY[self.function]} makes -0.0 within {argument} 0.0")
            return argument
        if self.function == "list":
            if self.distinct:
                as_one_value(argument)
                if argument.is_floating:
                    raise Refused(f"only Spark tells which of 0.0 and -0.0 stands for both in a set of {argument}")
            return DataType("array", (), (argument,))
        if self.function in _OF_ORDER.values():
            return DOUBLE
        if argument.is_integer:
            return BIGINT
        if argument.name == "decimal" and argument.arguments[0] <= _MOST_DIGITS:
            precision, scale = argument.arguments
            return DataType("decimal", (precision + 10, scale))
        if argument.is_floating and (self.exact or self.any_order):
            return DOUBLE
        if argument.is_floating:
            raise Refused(f"the sum of {argument} depends on the order of the rows; engine='local' computes it here")
        raise Refused(f"only Spark computes {self.function} of {argument}")

    def text(self, fields: Sequence[str], kind: DataType, over: str = "") -> str:
        """Return the call in DuckDB's SQL.

        Args:
            fields: the columns with the values of the arguments.
            kind: the type of the call.
            over: the OVER clause of a window function; empty for an aggregate.
        """
        inner, once = "".join(fields[:1]) or "*", "DISTINCT " if self.distinct else ""
        if self.function in _BY:
            return f"{_BY[self.function]}({inner}, {fields[1]})"
        if self.function == "list":
            return f"COALESCE(list({once}{inner}) FILTER (WHERE {inner} IS NOT NULL), [])"
        inner = f"CAST({inner} AS DOUBLE)" if kind == DOUBLE and self.function == "sum" else inner
        call = f"{self.function}({once}{inner}) {over}".strip()
        return f"CAST({call} AS BIGINT)" if kind == BIGINT and self.function == "sum" else call


_BY: Final = {"max_by": "arg_max_null", "min_by": "arg_min_null"}
"""Spark's function of the row with the largest or smallest value -> DuckDB's variant that also returns NULL."""
_FUNCTIONS: Final[dict[type[exp.Expr], str]] = {
    exp.Count: "count", exp.Sum: "sum", exp.Min: "min", exp.Max: "max", exp.ArrayAgg: "list",
    exp.ArrayUniqueAgg: "list", exp.ArgMax: "max_by", exp.ArgMin: "min_by",
}  # fmt: skip


_OF_ORDER: Final[dict[type[exp.Expr], str]] = {
    exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp", exp.VariancePop: "var_pop",
}  # fmt: skip
"""Functions of numbers as DOUBLE whose last digits depend on the order of the rows."""


def aggregate_of(node: exp.AggFunc, *, any_order: bool) -> Aggregate:
    """Return the call of an aggregate function. Raises Refused for one that only Spark computes.

    ``any_order`` allows values that depend on the order of the rows.
    """
    function, by = _FUNCTIONS.get(type(node)), node.args.get("expression")
    if function is None and any_order:
        function = _OF_ORDER.get(type(node))
    taken, known = node.this, ("this", "big_int", "nulls_excluded", "expression" if function in _BY else "")
    further = [name for name, value in node.args.items() if value and name not in known]
    why = _WHY_NOT if type(node) in _OF_ORDER and not any_order else ""
    if function is None or further or isinstance(node.parent, exp.Filter | exp.WithinGroup):
        raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'{why}")
    distinct = isinstance(taken, exp.Distinct)
    if distinct:
        if len(taken.expressions) != 1 or taken.args.get("on"):
            raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'")
        taken = taken.expressions[0]
    if function == "count" and not distinct and (taken == exp.Star() or isinstance(taken, exp.Literal)):
        return Aggregate("count", (), False)
    if function in _OF_ORDER.values():
        if distinct:
            raise Refused(f"only Spark computes '{node.sql(dialect='spark')}'")
        return Aggregate(function, [exp.cast(taken.copy(), "DOUBLE")], False)
    arguments, distinct = [taken] if by is None else [taken, by], distinct or isinstance(node, exp.ArrayUniqueAgg)
    return Aggregate(function, arguments, distinct, bool(node.meta.get(EXACT_SUM)), any_order)


_WHY_NOT: Final = ", whose last digits depend on the order of the rows; engine='local' computes it here"


def as_one_value(kind: DataType) -> None:
    """Refuse a type whose values DuckDB may compare in another way than Spark, such as a struct or an array."""
    if not (kind.is_number or kind.is_text or kind.is_datetime or kind.name == "boolean"):
        raise Refused(f"only Spark tells which values of {kind} are the same")
