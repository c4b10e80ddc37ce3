"""Window functions whose values DuckDB computes as Spark does. Their arguments are computed before, as columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import STRING, VOID, Compiled, Refused, Scope, ScopeColumn
from trinity.spi import DataType
from trinity.sql.local.aggregates import aggregate_of, as_one_value
from trinity.sql.local.refusals import refuse_other_clauses
from trinity.sql.local.relations import Relation, new_field, with_values

_INT: Final = DataType("int")
_DOUBLE: Final = DataType("double")
_RANKS: Final[dict[type[exp.Expr], tuple[str, DataType]]] = {
    exp.RowNumber: ("row_number", _INT), exp.Rank: ("rank", _INT), exp.DenseRank: ("dense_rank", _INT),
    exp.PercentRank: ("percent_rank", _DOUBLE), exp.CumeDist: ("cume_dist", _DOUBLE),
}  # fmt: skip
"""Ranking function -> (DuckDB's function, the type in Spark)."""
_SHIFTS: Final[dict[type[exp.Expr], str]] = {exp.Lag: "lag", exp.Lead: "lead"}
_FRAMED: Final = ("count", "sum", "min", "max")
"""DuckDB's aggregate functions that may be window functions here."""
_ENDS: Final[dict[type[exp.Expr], str]] = {exp.FirstValue: "first_value", exp.LastValue: "last_value"}


def ordering(node: exp.Expr) -> tuple[exp.Expr, str]:
    """Return an expression of ORDER BY, and the words after it in DuckDB's SQL. Raises Refused."""
    if not isinstance(node, exp.Ordered) or any(
        value for name, value in node.args.items() if name not in ("this", "desc", "nulls_first")
    ):
        raise Refused(f"only Spark orders by '{node.sql(dialect='spark')}'")
    down, first = bool(node.args.get("desc")), node.args.get("nulls_first")
    nulls = (not down) if first is None else bool(first)
    return node.this, f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls else 'LAST'}"


class Windows:
    """The window functions of a SELECT. The values of each become a column with a field of its own."""

    def __init__(self, compiled: Callable[[exp.Expr, Scope], Compiled], scope: Scope, *, any_order: bool) -> None:
        self._compiled, self._scope, self._any_order = compiled, scope, any_order
        self._inner: list[Compiled] = []
        self._outer: list[tuple[ScopeColumn, str]] = []

    def within(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression with its window functions replaced by their fields. Raises Refused."""

        def replaced(node: exp.Expr) -> exp.Expr:
            return exp.column(self._field(node), quoted=True) if isinstance(node, exp.Window) else node

        return tree.copy().transform(replaced)

    def rows(self, source: Relation) -> Relation:
        """Return the rows with the values of the window functions."""
        rows, fields = with_values(source, self._inner)
        listed = ", ".join(f"{text.format(*fields)} AS {column.field}" for column, text in self._outer)
        columns = (*source.columns, *(column for column, _ in self._outer))
        shown = "".join(f"{column.field}, " for column in source.columns)
        return rows.query().over(f"SELECT {shown}{listed} FROM {{0}}", columns)

    def _field(self, node: exp.Window) -> str:
        refuse_other_clauses(node, "this", "partition_by", "order", "spec", "over")
        clause, function = node.args.get("order"), type(node.this)
        of_order = function in (*_RANKS, *_SHIFTS, exp.Ntile)
        if of_order and (clause is None or node.args.get("spec") is not None):
            raise Refused(f"'{node.sql(dialect='spark')}' takes ORDER BY, and no frame")
        kind, text = self._call(node.this)
        by = ", ".join(self._column_of(part) for part in node.args.get("partition_by") or ())
        order = ", ".join(
            f"{self._column_of(tree)} {words}" for tree, words in map(ordering, clause.expressions if clause else ())
        )
        words = [
            f"PARTITION BY {by}" if by else "",
            f"ORDER BY {order}" if order else "",
            _frame(node.args.get("spec")),
        ]
        field, over = new_field(), f"OVER ({' '.join(filter(None, words))})"
        self._outer.append((ScopeColumn(field, field, kind), text.replace(_OVER, over)))
        return field

    def _call(self, call: exp.Expr) -> tuple[DataType, str]:
        """Return the type of a window function, and its text for DuckDB, with placeholders for window and values."""
        if (rank := _RANKS.get(type(call))) is not None:
            name, kind = rank
            return kind, f"{name}() {_OVER}"
        if isinstance(call, exp.Ntile):
            return _INT, f"ntile({_count(call.this, 1)}) {_OVER}"
        if isinstance(call, exp.Lag | exp.Lead):
            name = _SHIFTS[type(call)]
            value, offset = self._value(call.this), _count(call.args.get("offset") or exp.Literal.number(1), 0)
            default = call.args.get("default")
            if default is None or isinstance(default, exp.Null):
                return value.type, f"{name}({self._added(value)}, {offset}) {_OVER}"
            other = self._value(default)
            if other.type != value.type:
                raise Refused(f"only Spark has {other.type} beside values of {value.type}")
            return value.type, f"{name}({self._added(value)}, {offset}, {self._added(other)}) {_OVER}"
        if isinstance(call, exp.FirstValue | exp.LastValue):
            value = self._value(call.this)
            return value.type, f"{_ENDS[type(call)]}({self._added(value)}) {_OVER}"
        if not isinstance(call, exp.AggFunc):
            raise Refused(f"only Spark evaluates '{call.sql(dialect='spark')}' over a window")
        found = aggregate_of(call, any_order=self._any_order)
        if found.distinct:
            raise Refused("only Spark takes values once over a window")
        if found.function not in _FRAMED:
            raise Refused(f"only Spark computes '{call.sql(dialect='spark')}' over a window")
        arguments = [self._value(argument) for argument in found.arguments]
        kind = found.type_of([argument.type for argument in arguments])
        return kind, found.text([self._added(argument) for argument in arguments], kind, _OVER)

    def _value(self, tree: exp.Expr) -> Compiled:
        value = self._compiled(tree, self._scope)
        if value.type == VOID:
            raise Refused(f"only Spark evaluates '{tree.sql(dialect='spark')}' over a window")
        return Compiled.over(STRING, value.run, value) if value.type.name == "char" else value

    def _column_of(self, tree: exp.Expr) -> str:
        """Return the placeholder for the field of an expression of PARTITION BY or ORDER BY."""
        value = self._value(tree)
        as_one_value(value.type)
        return self._added(value)

    def _added(self, value: Compiled) -> str:
        self._inner.append(value)
        return f"{{{len(self._inner) - 1}}}"


_OVER: Final = "OVER ()"


def _count(tree: exp.Expr, least: int) -> int:
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.name.isdigit() or int(tree.name) < least:
        raise Refused(f"only Spark evaluates '{tree.sql(dialect='spark')}' as a number of rows")
    return int(tree.name)


def _frame(spec: exp.Expr | None) -> str:
    """Return a frame in DuckDB's SQL. Raises Refused for one whose bounds are calculated."""
    if spec is None:
        return ""
    refuse_other_clauses(spec, "kind", "start", "start_side", "end", "end_side")
    bounds = [_bound(spec, "start"), _bound(spec, "end") if spec.args.get("end") else "CURRENT ROW"]
    return f"{spec.text('kind')} BETWEEN {' AND '.join(bounds)}"


def _bound(spec: exp.Expr, end: str) -> str:
    bound, side = spec.args[end], spec.text(f"{end}_side")
    if isinstance(bound, str):
        return f"{bound} {side}".strip()
    if spec.text("kind") != "ROWS":
        raise Refused("only Spark has a RANGE of calculated bounds")
    return f"{_count(bound, 0)} {side}"
