"""The functions that this process evaluates, by the kinds of node that sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow.compute as pc
from sqlglot import exp

from trinity.engine.expressions import (
    arithmetic,
    comparisons,
    conditional,
    dates,
    logic,
    rounding,
    texts,
    time_patterns,
    timestamps,
)
from trinity.engine.expressions.node import Compiled, Refused
from trinity.hidden import HIDDEN_PREFIX

_Build = Callable[..., Compiled]
"""Compiles a call. It takes the zone, then the compiled arguments; None stands for an optional one that is missing."""

_IGNORED: Final = frozenset({"safe", "coalesce", "flatten", "ignore_nulls", "null_if_pos_overflow"})
"""Arguments of sqlglot's nodes that are no operands, but tell how other dialects mean the function."""

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
    exp.RegexpLike: (("this", "expression"), lambda _, value, pattern: texts.matches(value, pattern)),
    exp.RegexpExtract: (
        ("this", "expression", "group"),
        lambda _, value, pattern, group: texts.extracted(value, pattern, group),
    ),
    exp.RegexpReplace: (
        ("this", "expression", "replacement"),
        lambda _, value, pattern, by: texts.replaced_matches(value, pattern, by),
    ),
    exp.StartsWith: (("this", "expression"), lambda _, value, other: texts.starts_with(value, other)),
    exp.EndsWith: (("this", "expression"), lambda _, value, other: texts.ends_with(value, other)),
    exp.Contains: (("this", "expression"), lambda _, value, other: texts.part_of(value, other)),
    exp.Replace: (("this", "expression", "replacement"), lambda _, value, old, new: texts.replaced(value, old, new)),
    exp.Substring: (("this", "start", "length?"), lambda _, value, start, count: texts.substring(value, start, count)),
    exp.Left: (("this", "expression"), lambda _, value, count: texts.left(value, count)),
    exp.Right: (("this", "expression"), lambda _, value, count: texts.right(value, count)),
    exp.Upper: (("this",), lambda _, value: texts.upper(value)),
    exp.Lower: (("this",), lambda _, value: texts.lower(value)),
    exp.ILike: (("this", "expression"), lambda _, value, pattern: texts.like(value, pattern, any_case=True)),
    exp.Repeat: (("this", "times"), lambda _, value, count: texts.repeated(value, count)),
    exp.Reverse: (("this",), lambda _, value: texts.reversed_text(value)),
    exp.StrPosition: (("this", "substr"), lambda _, value, part: texts.position_of(value, part)),
    exp.SplitPart: (
        ("this", "delimiter", "part_index"),
        lambda _, value, delimiter, number: texts.part_split(value, delimiter, number),
    ),
    exp.ConcatWs: (("expressions*",), lambda zone, separator, *values: texts.joined(separator, values, zone)),
    exp.BitLength: (("this",), lambda _, value: texts.size_in_bytes(value, 8)),
    exp.Round: (("this", "decimals?"), lambda _, value, places: rounding.rounded(value, places)),
    exp.Floor: (("this", "decimals?"), lambda zone, value, places: rounding.whole_floor(value, places, zone)),
    exp.Ceil: (("this", "decimals?"), lambda zone, value, places: rounding.whole_ceiling(value, places, zone)),
    exp.Sqrt: (("this",), lambda zone, value: arithmetic.square_root(value, zone)),
    exp.Sign: (("this",), lambda zone, value: arithmetic.sign(value, zone)),
    exp.IsNan: (("this",), lambda _, value: comparisons.is_nan(value)),
    exp.AddMonths: (("this", "expression"), lambda zone, value, number: timestamps.months_after(value, number, zone)),
    exp.LastDay: (("this",), lambda zone, value: dates.last_day(value, zone)),
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
"""Kind of node -> (names of its operands, what compiles the call). ``*`` marks a list, ``?`` an optional operand."""

MEAN: Final = f"{HIDDEN_PREFIX}mean"
"""The name of an internal function, which returns the average of DECIMAL values from their sum and their count."""

NAMED: Final[Mapping[str, _Build]] = {
    "isnull": lambda _, value: logic.is_null(value),
    "isnotnull": lambda _, value: logic.negated(logic.is_null(value)),
    "bround": lambda _, value, places=None: rounding.rounded(value, places, to_even=True),
    "btrim": lambda _, value: texts.trimmed(value, "BOTH"),
    "octet_length": lambda _, value: texts.size_in_bytes(value),
    "date_format": lambda zone, value, pattern: time_patterns.text_of_time(value, pattern, zone),
    "date_trunc": lambda zone, unit, value: timestamps.cut_time(value, unit, zone),
    "trunc": lambda zone, value, unit: timestamps.cut_date(value, unit, zone),
    "to_date": lambda zone, value, pattern: time_patterns.date_of_text(value, pattern, zone),
    "to_timestamp": lambda zone, value, pattern: time_patterns.time_of_text(value, pattern, zone),
    MEAN: lambda _, total, count: arithmetic.mean(total, count),
    "weekday": lambda zone, value: dates.weekday(value, zone),
}
"""Name -> what compiles the call, for functions that have no kind of node in sqlglot."""


def arguments(tree: exp.Expr, names: tuple[str, ...], compiled: Callable[[exp.Expr], Compiled]) -> list[Any]:
    """Compile the operands of a function, in the order of ``names``. Raises Refused for missing and other arguments."""
    if isinstance(tree, exp.Concat) and not tree.args.get("safe"):
        raise Refused("only Spark reads texts side by side as one")
    if isinstance(tree, exp.DPipe) and isinstance(tree.expression, exp.Add | exp.Sub):
        # Spark's || + and - are of one level: it joins before it adds, where sqlglot adds first
        raise Refused(f"'{tree.expression.sql(dialect='spark')}' is an operand of || without parentheses")
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
        raise Refused.of(tree)
    return found
