"""The functions that this process evaluates, by the kinds of node that sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.expressions import arithmetic, conditional, dates, logic, texts
from trinity.engine.expressions.node import Compiled, Refused

__all__ = ["FUNCTIONS", "NAMED", "arguments"]

_Timezone = Callable[[], str]
_Build = Callable[..., Compiled]
"""Takes the zone, then the arguments; None for an optional one that is not given."""

_IGNORED: Final = frozenset({"safe", "coalesce", "ignore_nulls", "unit", "position", "is_left"})
"""What is no operand: how other dialects mean the function, or what is asked for by itself."""

FUNCTIONS: Final[Mapping[type[exp.Expr], tuple[tuple[str, ...], _Build]]] = {
    exp.Abs: (("this",), lambda _, value: arithmetic.absolute(value)),
    exp.Coalesce: (("this", "expressions*"), lambda zone, *values: conditional.coalesced(values, zone)),
    exp.Nullif: (("this", "expression"), lambda zone, value, other: conditional.null_if(value, other, zone)),
    exp.Greatest: (
        ("this", "expressions*"),
        lambda zone, *values: conditional.extreme(pc.max_element_wise, values, zone),
    ),
    exp.Least: (
        ("this", "expressions*"),
        lambda zone, *values: conditional.extreme(pc.min_element_wise, values, zone),
    ),
    exp.Concat: (("expressions*",), lambda zone, *values: texts.concatenated(values, zone)),
    exp.DPipe: (("this", "expression"), lambda zone, *values: texts.concatenated(values, zone)),
    exp.Length: (("this",), lambda _, value: texts.length(value)),
    exp.Like: (("this", "expression"), lambda _, value, pattern: texts.like(value, pattern)),
    exp.StartsWith: (("this", "expression"), lambda _, value, other: texts.starts_with(value, other)),
    exp.EndsWith: (("this", "expression"), lambda _, value, other: texts.ends_with(value, other)),
    exp.Contains: (("this", "expression"), lambda _, value, other: texts.part_of(value, other)),
    exp.Replace: (("this", "expression", "replacement"), lambda _, value, old, new: texts.replaced(value, old, new)),
    exp.Substring: (("this", "start", "length?"), lambda _, value, start, count: texts.substring(value, start, count)),
    exp.Left: (("this", "expression"), lambda _, value, count: texts.left(value, count)),
    exp.TsOrDsToDate: (("this",), lambda zone, value: dates.as_date(value, zone)),
    exp.DateDiff: (("this", "expression"), lambda zone, end, start: dates.days_between(end, start, zone)),
    **{
        kind: (("this",), lambda zone, value, kind=kind: dates.date_part(kind, value, zone))
        for kind in dates.DATE_PARTS
    },
    **{
        kind: (("this",), lambda zone, value, kind=kind: dates.time_part(kind, value, zone))
        for kind in dates.TIME_PARTS
    },
}
"""Kind -> (its operands, ``*`` a list of them, ``?`` one that may lack; the function of them)."""

NAMED: Final[Mapping[str, _Build]] = {
    "isnull": lambda _, value: logic.is_null(value),
    "isnotnull": lambda _, value: logic.negated(logic.is_null(value)),
}
"""Functions that sqlglot knows by name alone."""


def arguments(tree: exp.Expr, names: tuple[str, ...], compiled: Callable[[exp.Expr], Compiled]) -> list[Any]:
    """Return the operands of a function. Raises Refused for others than it should have."""
    if isinstance(tree, exp.Concat) and not tree.args.get("safe"):
        raise Refused("only Spark reads texts side by side as one")
    given = {name: value for name, value in tree.args.items() if value not in (None, []) and name not in _IGNORED}
    found = list[Any]()
    for name in names:
        value = given.pop(name.rstrip("*?"), None)
        if value is None and name[-1] not in "*?":
            raise Refused(f"'{tree.sql(dialect='spark')}' lacks an argument")
        if name[-1] == "*":
            found += [compiled(part) for part in value or ()]
        else:
            found.append(None if value is None else compiled(value))
    if given:
        raise Refused(f"only Spark evaluates '{tree.sql(dialect='spark')}'")
    return found
