"""The source of a MERGE in Spark, persisted for the statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trinity.engine.changing.plan import Equality, StatementPlan
from trinity.engine.changing.source import FEW, SourceStatistics
from trinity.engine.values.spark.assignment import check_assignable, types_of
from trinity.spark.remote import is_remote
from trinity.spark.texts import as_stored
from trinity.spark.types import spark_type
from trinity.spark_names import Column, DataFrame, F, StorageLevel
from trinity.spi import INTEGERS, parse_type
from trinity.spi import Column as TableColumn
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_DIGITS: Final = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))
"""Integer type -> the number of decimal digits of its largest value."""
_FITTING: Final = {"float": INTEGERS[:2], "double": (*INTEGERS[:3], "float")}
"""Floating-point type -> the types that it represents exactly."""


@dataclass(frozen=True)
class SparkEquality(Equality):
    """The value that ON requires of a target column, in the column's type; NULL where that type has no such value."""

    value: Column


def compared(spark: SparkSession, plan: StatementPlan) -> dict[str, SparkEquality]:
    """Return by column the equalities of ON that determine the column's possible values."""
    program, definition, equalities = plan.program, plan.splits.definition, plan.facts.equalities
    if program.source is None or not equalities:
        return {}
    source = program.source.alias(program.source_alias)
    columns = [definition.column(name) for name in equalities]
    values = [F.expr(tree.sql(dialect="spark")) for tree in equalities.values()]
    given = [kind.simpleString() for kind in types_of(source, values)]
    common = [spark_type(column.type) for column in columns]
    if given != common:
        target = spark.range(0).select(*[F.lit(None).cast(spark_type(c.type)).alias(c.name) for c in columns])
        alias = program.target_alias
        common = _common_types(target.alias(alias).join(source), [_column(alias, c) for c in columns], values)
    found = {}
    for column, value, kind, shared in zip(columns, values, given, common, strict=True):
        own = spark_type(column.type)
        if _determines(own, kind, shared):
            cut = parse_type(column.type).name == "varchar"  # blanks beyond its length, which ON compares
            stored = (shared == own or {kind, own} <= _DIGITS.keys()) and not cut
            same = _in_type(value, kind, own)
            found[column.name] = SparkEquality(equalities[column.name], stored, kind == own, _padded(same, column))
    return found


def _padded(value: Column, column: TableColumn) -> Column:
    return as_stored(value, column) if parse_type(column.type).name == "char" else value


def _in_type(value: Column, kind: str, wanted: str) -> Column:
    """Return a value in another type, NULL where no value of that type equals it. Types are written as in Spark."""
    if kind == wanted:
        return value
    found = value.try_cast(wanted)
    return F.when(found == value, found)


def _column(alias: str, column: TableColumn) -> Column:
    return F.col(f"{quoted(alias)}.{quoted(column.name)}")


def _common_types(rows: DataFrame, columns: Sequence[Column], values: Sequence[Column]) -> list[str]:
    """Return the types in which Spark compares columns with expressions by ``=``; empty where it does not use ``=``.

    With Spark Connect, which does not tell the types, all are empty.
    """
    if is_remote(rows):
        return [""] * len(columns)
    analysed = rows.select(*[column == value for column, value in zip(columns, values, strict=True)])
    conditions = analysed._jdf.queryExecution().analyzed().projectList()
    return [_compared_type(conditions.apply(index).child()) for index in range(len(columns))]


def _compared_type(condition: Any) -> str:
    if condition.getClass().getSimpleName() != "EqualTo":
        return ""
    return str(condition.left().dataType().simpleString())


def _determines(own: str, given: str, common: str) -> bool:
    """Return True when a comparison in a common type determines the value in the column's own type."""
    if given != own and given.startswith("string"):  # several texts stand for one number or time
        return False
    if own == common:
        return True
    if own in _DIGITS and common in _DIGITS:  # the common type is the wider
        return True
    return own in _FITTING.get(common, ()) or _holds(common, own)


def _holds(common: str, own: str) -> bool:
    """Return True when a DECIMAL holds all numbers of another exact type."""
    if not common.startswith("decimal") or not (own in _DIGITS or own.startswith("decimal")):
        return False
    precision, scale = parse_type(common).arguments
    digits, fraction = (_DIGITS[own], 0) if own in _DIGITS else parse_type(own).arguments
    return precision - scale >= digits - fraction and scale >= fraction


SMALL: Final = 2_000_000
"""Most rows of a source whose join values are broadcast to every task, to narrow the target before the join."""


@dataclass(frozen=True)
class SparkSource(SourceStatistics):
    """Facts about the source of a statement, and the values of target columns that a matched row can have by ON.

    ``values`` is None when they are too many, or ON has no equality that determines them.
    """

    values: DataFrame | None = None


@contextmanager
def persisted_source(plan: StatementPlan, equalities: Mapping[str, SparkEquality]) -> Iterator[SparkSource]:
    """Persist the source's rows for the statement: it is read once, and every use sees the same rows."""
    if plan.program.source is None:
        yield SparkSource()
        return
    rows = plan.program.source.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield _examine(rows, plan, equalities)
    finally:
        rows.unpersist()


def _examine(source: DataFrame, plan: StatementPlan, equalities: Mapping[str, SparkEquality]) -> SparkSource:
    """Count the rows, and find the bounds of the values that ON compares, in one pass. Collect the values if few.

    They serve to skip files, so that for a target of one file they are not collected.
    """
    definition = plan.splits.definition
    values = {} if plan.needs_all_rows else {c: e.value for c, e in equalities.items()}
    named = source.alias(plan.program.source_alias)
    bounded = [c for c in values if parse_type(definition.column(c).type).is_ordered_in_statistics]
    known = {c: bounding(v, definition.column(c)) for c, v in values.items()}
    wanted = [f(known[c]) for c in bounded for f in (F.min, F.max)]
    found = list(named.agg(F.count(F.lit(1)), *wanted).collect()[0])
    rows = int(found[0])
    bounds = {c: (found[1 + 2 * i], found[2 + 2 * i]) for i, c in enumerate(bounded)}
    joined = named.select(*[v.alias(c) for c, v in values.items()]) if values and rows <= SMALL else None
    few = bool(bounded) and 1 < rows <= FEW and len(plan.splits.files) > 1
    points = _points(named.select(*[known[c].alias(c) for c in bounded])) if few else {}
    return SparkSource(rows, {c: b for c, b in bounds.items() if b[0] is not None}, points, joined)


def bounding(value: Column, column: TableColumn) -> Column:
    """Return a value for bounds: a date of the years 1 to 9999, for Python has no other years, nor have files' bounds.

    Another date becomes the nearest one.
    """
    if column.type != "date":
        return value
    first, last = F.expr("DATE '0001-01-01'"), F.expr("DATE '9999-12-31'")
    return F.when(value < first, first).when(value > last, last).otherwise(value)


def _points(values: DataFrame) -> dict[str, list[Any]]:
    rows = values.distinct().collect()
    return {c: sorted({row[c] for row in rows if row[c] is not None}) for c in values.columns}


def key_frame(frame: DataFrame, columns: Sequence[TableColumn], table: str) -> DataFrame:
    """Return the distinct keys of a frame in storage form. It may have the key columns in upper or lower case.

    Raises:
        TrinityError: TYPE_MISMATCH for keys of a type that cannot be assigned.
    """
    given = {c.lower(): c for c in frame.columns}
    return frame.select(*[_key_column(frame, given[c.name.lower()], c, table) for c in columns]).distinct()


def _key_column(frame: DataFrame, name: str, column: TableColumn, table: str) -> Column:
    """Return a key column in storage form (K2). A key that its type cannot hold becomes NULL, which no row has."""
    given, kind = frame[quoted(name)], frame.schema[name].dataType
    check_assignable(kind, column, table, "The keys to delete")
    return as_stored(_in_type(given, kind.simpleString(), spark_type(column.type)), column).alias(column.name)
