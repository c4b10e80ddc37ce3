"""Leaves out files whose partition or statistics show that no row can meet a predicate (L9)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import sqlglot
from sqlglot import exp

from trinity.spi import ColumnStats, DataFile, TableDefinition

__all__ = ["prune"]

_Test = Callable[[DataFile], bool]
"""False when no row of the file can meet the predicate."""
_StatsTest = Callable[[ColumnStats], bool]


def prune(
    files: Sequence[DataFile],
    definition: TableDefinition,
    where: str | None,
    columns: Collection[str] | None = None,
    timezone: Callable[[], str] = lambda: "",
) -> list[DataFile]:
    """The files that may hold a row for which ``where`` is true.

    Args:
        files: candidates. Partition values are exact, statistics are bounds; a file without either stays.
        definition: the table, for the columns' types.
        where: Spark SQL over bare column names. AND, OR, comparisons with literals, IN, BETWEEN, IS [NOT] NULL and
            boolean columns are understood; the rest prunes nothing.
        columns: the only columns by which files may be left out; all by default.
        timezone: Spark's session time zone, which timestamps without zone are of; asked only when there is one.
    """
    if not where:
        return list(files)
    known = {c.name.lower(): (c.name, c.type.split("(")[0]) for c in definition.columns}
    if columns is not None:
        known = {name.lower(): known[name.lower()] for name in columns}
    test = _Compiler(known, timezone).test(sqlglot.parse_one(where, dialect="spark"))
    return [f for f in files if test(f)]


def _always(_: DataFile) -> bool:
    return True


@dataclass(frozen=True)
class _Compiler:
    """Turns a predicate into a test of files.

    Attributes:
        known: lower case name -> (name, type without arguments) of the columns that may be used.
        timezone: see :func:`prune`.
    """

    known: dict[str, tuple[str, str]]
    timezone: Callable[[], str]

    def test(self, tree: exp.Expr) -> _Test:
        tree = tree.unnest()
        if isinstance(tree, exp.And | exp.Or):
            left, right = self.test(tree.left), self.test(tree.right)
            if isinstance(tree, exp.And):
                return lambda f: left(f) and right(f)
            return lambda f: left(f) or right(f)
        return self._negated(tree.this.unnest()) if isinstance(tree, exp.Not) else self._simple(tree)

    def _simple(self, tree: exp.Expr) -> _Test:
        if isinstance(tree, exp.Column):
            return self._flag(tree, True)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._on(tree.this, lambda s: s.nulls is None or s.nulls > 0)
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low, high = (self._literal(tree.this, tree.args[part]) for part in ("low", "high"))
            return self._bounded(tree.this, (low, high), lambda s: s.max >= low and s.min <= high)
        if isinstance(tree, exp.In) and tree.expressions:
            values = [self._literal(tree.this, part) for part in tree.expressions]
            return self._bounded(tree.this, values, lambda s: any(s.min <= v <= s.max for v in values))
        return self._comparison(tree)

    def _negated(self, tree: exp.Expr) -> _Test:
        """What stands under a NOT: as much as is of use for partitions."""
        if isinstance(tree, exp.Column):
            return self._flag(tree, False)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._on(tree.this, lambda s: s is not _ALL_NULL)
        if isinstance(tree, exp.EQ):
            return self._comparison(exp.NEQ(this=tree.this, expression=tree.expression))
        if isinstance(tree, exp.In) and tree.expressions:
            values = [self._literal(tree.this, part) for part in tree.expressions]
            return self._bounded(tree.this, values, lambda s: s.min != s.max or s.min not in values)
        return _always

    def _comparison(self, tree: exp.Expr) -> _Test:
        for kind, flipped, test in _OPERATORS:
            if isinstance(tree, kind | flipped):
                sides = (tree.left, tree.right) if isinstance(tree, kind) else (tree.right, tree.left)
                value = self._literal(*sides)
                if value is not None:
                    return self._bounded(sides[0], [value], partial(_compare, test, value))
        return _always

    def _flag(self, column: exp.Column, wanted: bool) -> _Test:
        if self.known.get(column.name.lower(), ("", ""))[1] != "boolean":
            return _always
        return self._bounded(column, [wanted], lambda s: s.min <= wanted <= s.max)

    def _bounded(self, column: exp.Expr, values: Sequence[Any], test: _StatsTest) -> _Test:
        """A comparison, which no NULL meets; ``values`` are what it compares with, None for what is not understood."""
        if any(v is None for v in values):
            return _always

        def checked(stats: ColumnStats) -> bool:
            if stats.min is None or stats.max is None:
                return stats is not _ALL_NULL
            try:
                return test(stats)
            except TypeError:  # bounds of another type than the literal: no knowledge
                return True

        return self._on(column, checked)

    def _on(self, column: exp.Expr, test: _StatsTest) -> _Test:
        if not isinstance(column, exp.Column) or column.name.lower() not in self.known:
            return _always
        name, _ = self.known[column.name.lower()]

        def checked(file: DataFile) -> bool:
            if name in file.partition:
                value = file.partition[name]
                return test(_ALL_NULL if value is None else ColumnStats(value, value, 0))
            return name not in file.stats or test(file.stats[name])

        return checked

    def _literal(self, column: exp.Expr, value: exp.Expr) -> Any:
        """The value in the type of the column's bounds, or None when it is not certain what Spark makes of it."""
        if not isinstance(column, exp.Column) or column.name.lower() not in self.known:
            return None
        _, kind = self.known[column.name.lower()]
        value, cast = value.unnest(), ""
        if isinstance(value, exp.Cast):
            cast, value = value.to.this.name, value.this
            if cast not in _CASTS.get(kind, ()):
                return None
        if isinstance(value, exp.Boolean):
            return bool(value.this) if kind == "boolean" else None
        if isinstance(value, exp.HexString):
            return bytes.fromhex(value.name) if kind == "binary" else None
        convert = _CONVERTERS.get(kind)
        is_text = isinstance(value, exp.Literal) and value.is_string
        if convert is None or not isinstance(value, exp.Literal | exp.Neg) or (is_text and kind == "decimal"):
            return None
        if not is_text and kind not in _NUMBERS:  # Spark compares a text with a number as numbers
            return None
        text = value.name if isinstance(value, exp.Literal) else value.sql()
        if cast == "DATE" and kind != "date" and ":" in text:  # the cast would cut the time
            return None
        try:
            found = convert(text)
            return self._instant(found) if kind == "timestamp" else found
        except (ValueError, InvalidOperation, OverflowError, ZoneInfoNotFoundError):
            return None

    def _instant(self, value: dt.datetime) -> dt.datetime:
        return value if value.tzinfo else value.replace(tzinfo=ZoneInfo(self.timezone()))


_ALL_NULL: Final = ColumnStats(None, None, 1)
"""Stands for a partition of NULL."""


def _compare(test: Callable[[ColumnStats, Any], bool], value: Any, stats: ColumnStats) -> bool:
    return test(stats, value)


_OPERATORS: Final[tuple[tuple[Any, Any, Callable[[ColumnStats, Any], bool]], ...]] = (
    (exp.EQ, exp.EQ, lambda s, v: s.min <= v <= s.max),
    (exp.NullSafeEQ, exp.NullSafeEQ, lambda s, v: s.min <= v <= s.max),
    (exp.NEQ, exp.NEQ, lambda s, v: s.min != v or s.max != v),
    (exp.LT, exp.GT, lambda s, v: s.min < v),
    (exp.LTE, exp.GTE, lambda s, v: s.min <= v),
    (exp.GT, exp.LT, lambda s, v: s.max > v),
    (exp.GTE, exp.LTE, lambda s, v: s.max >= v),
)
"""(operator with the column on its left, the same with the column on its right, may a file meet it)."""

_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "decimal"})
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?",
)


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?\s*\d+", text):
        raise ValueError(text)
    return int(text.replace(" ", ""))


def _exact(text: str) -> Decimal:
    if not re.fullmatch(r"-?\s*\d*\.?\d*", text):  # with an exponent it is a double
        raise ValueError(text)
    return Decimal(text.replace(" ", ""))


def _date(text: str) -> dt.date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def _timestamp(text: str) -> dt.datetime:
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(text)
    whole = text if ":" in text else f"{text} 00:00:00"
    fraction = re.search(r"\.\d+", whole)
    if fraction:  # Python 3.10 takes three or six digits only
        whole = whole.replace(fraction[0], fraction[0].ljust(7, "0"))
    return dt.datetime.fromisoformat(whole.replace("Z", "+00:00"))


def _clock(text: str) -> dt.datetime:
    found = _timestamp(text)
    if found.tzinfo:
        raise ValueError(text)
    return found


_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _whole),
    # floats are left out: their bounds say nothing of NaN, which is above every number (K3)
    **dict.fromkeys(("string", "varchar", "char"), str),
    "decimal": _exact,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _clock,
}
_INTEGER_CASTS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_ZONED_CASTS: Final = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ")
_CASTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _INTEGER_CASTS),
    **dict.fromkeys(("string", "varchar", "char"), ("TEXT",)),
    "date": ("DATE",),
    "timestamp": _ZONED_CASTS,
    "timestamp_ntz": (*_ZONED_CASTS, "TIMESTAMPNTZ"),
}
"""Type of a column -> casts (names of sqlglot's types) that leave a literal's text as it is."""
