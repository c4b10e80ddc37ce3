"""The source of a MERGE in Spark, persisted for the statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from trinity.engine.changing.source import FEW, Source, is_bounded, reads_all
from trinity.engine.changing.spark.equalities import SparkEquality
from trinity.engine.program import Program
from trinity.spark_names import Column, DataFrame, F, StorageLevel
from trinity.spi import TableDefinition

__all__ = ["SparkSource", "persisted_source"]

SMALL: Final = 2_000_000
"""Most rows of a source whose join values every task can hold: the target is then narrowed before the join."""


@dataclass(frozen=True)
class SparkSource(Source):
    """Facts about the source of a statement.

    Attributes:
        values: target columns -> the values that ON lets a matched row have; None when they are too many, or ON has no
            equality that tells them.
    """

    values: DataFrame | None = None


@contextmanager
def persisted_source(
    program: Program, definition: TableDefinition, equalities: Mapping[str, SparkEquality], files: int
) -> Iterator[SparkSource]:
    """Persist the source's rows for the statement: it is read once, and every use sees the same rows.

    Args:
        program: the statement.
        definition: its target.
        equalities: the equalities of ON that tell which values a target column may have.
        files: number of files of the target; of a single one nothing can be skipped.
    """
    if program.source is None:
        yield SparkSource()
        return
    rows = program.source.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield _examine(rows, program, definition, equalities, files)
    finally:
        rows.unpersist()


def _examine(
    source: DataFrame,
    program: Program,
    definition: TableDefinition,
    equalities: Mapping[str, SparkEquality],
    files: int,
) -> SparkSource:
    """Count the rows and find the bounds of the values that ON compares, in one pass; collect these where few."""
    values = {} if reads_all(program) else {c: e.value for c, e in equalities.items()}
    named = source.alias(program.source_alias)
    bounded = [c for c in values if is_bounded(definition, c)]
    known = {c: _within_python(v) if definition.column(c).type == "date" else v for c, v in values.items()}
    wanted = [f(known[c]) for c in bounded for f in (F.min, F.max)]
    found = list(named.agg(F.count(F.lit(1)), *wanted).collect()[0])
    rows = int(found[0])
    bounds = {c: (found[1 + 2 * i], found[2 + 2 * i]) for i, c in enumerate(bounded)}
    joined = named.select(*[v.alias(c) for c, v in values.items()]) if values and rows <= SMALL else None
    few = bool(bounded) and 1 < rows <= FEW and files > 1
    points = _points(named.select(*[known[c].alias(c) for c in bounded])) if few else {}
    return SparkSource(rows, {c: b for c, b in bounds.items() if b[0] is not None}, points, joined)


def _within_python(day: Column) -> Column:
    """Return a date, or the nearest one of the years 1 to 9999: Python has no others, and files no such bounds."""
    first, last = F.expr("DATE '0001-01-01'"), F.expr("DATE '9999-12-31'")
    return F.when(day < first, first).when(day > last, last).otherwise(day)


def _points(values: DataFrame) -> dict[str, list[Any]]:
    rows = values.distinct().collect()
    return {c: sorted({row[c] for row in rows if row[c] is not None}) for c in values.columns}
