"""The source of a MERGE, persisted for the statement, and what its values tell about the target."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from trinity.engine.changing.equalities import Equality
from trinity.engine.program import Program, When
from trinity.spark_names import Column, DataFrame, F, StorageLevel
from trinity.spi import DataFile, TableDefinition, parse_type

__all__ = ["Source", "held_source"]

SMALL: Final = 2_000_000
"""Most rows of a source whose join values every task can hold: the target is then narrowed before the join."""

FEW: Final = 1000
"""Most rows of a source whose values are compared one by one with the statistics of every file."""

_BOUNDED: Final = frozenset({"tinyint", "smallint", "int", "bigint", "string", "char", "varchar", "decimal", "date"})
"""Types whose values compare in Python as in the files' statistics."""


@dataclass(frozen=True)
class Source:
    """Facts about the source of a statement.

    Attributes:
        rows: number of rows, or None where there is no source.
        bounds: target column -> (smallest, largest) value that ON lets a matched row have.
        values: target columns -> the values that ON lets a matched row have; None when they are too many, or ON has no
            equality that tells them.
        points: target column -> these values, sorted, where they are few.
    """

    rows: int | None = None
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    values: DataFrame | None = None
    points: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def may_touch(self, file: DataFile, columns: Collection[str]) -> bool:
        """Return True when by the file's statistics a row may have one of the values in each of some columns."""
        for column, values in self.points.items():
            known = file.bounds(column) if column in columns else None
            if known is None:
                continue
            if not _any_within(values, *known):
                return False
        return True

    @property
    def empty(self) -> bool:
        """True when there is a source and it has no row."""
        return self.rows == 0


def _any_within(values: Sequence[Any], smallest: Any, largest: Any) -> bool:
    try:
        place = bisect_left(values, smallest)
        return place < len(values) and bool(values[place] <= largest)
    except TypeError:  # bounds of another type tell nothing
        return True


@contextmanager
def held_source(
    program: Program, definition: TableDefinition, equalities: Mapping[str, Equality], files: int
) -> Iterator[Source]:
    """Persist the source's rows for the statement: it is read once, and every use sees the same rows.

    Args:
        program: the statement.
        definition: its target.
        equalities: the equalities of ON that tell which values a target column may have.
        files: number of files of the target; of a single one nothing can be skipped.
    """
    if program.source is None:
        yield Source()
        return
    held = program.source.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield _looked_at(held, program, definition, equalities, files)
    finally:
        held.unpersist()


def _looked_at(
    source: DataFrame, program: Program, definition: TableDefinition, equalities: Mapping[str, Equality], files: int
) -> Source:
    """Count the rows and find the bounds of the values that ON compares, in one pass; collect these where few."""
    whole = any(case.when is When.NOT_MATCHED_BY_SOURCE for case in program.cases)
    values = {} if whole else {c: e.value for c, e in equalities.items()}
    named = source.alias(program.source_alias)
    bounded = [c for c in values if parse_type(definition.column(c).type).name in _BOUNDED]
    known = {c: _within_python(v) if definition.column(c).type == "date" else v for c, v in values.items()}
    wanted = [f(known[c]) for c in bounded for f in (F.min, F.max)]
    found = list(named.agg(F.count(F.lit(1)), *wanted).collect()[0])
    rows = int(found[0])
    bounds = {c: (found[1 + 2 * i], found[2 + 2 * i]) for i, c in enumerate(bounded)}
    joined = named.select(*[v.alias(c) for c, v in values.items()]) if values and rows <= SMALL else None
    few = bool(bounded) and 1 < rows <= FEW and files > 1
    points = _points(named.select(*[known[c].alias(c) for c in bounded])) if few else {}
    return Source(rows, {c: b for c, b in bounds.items() if b[0] is not None}, joined, points)


def _within_python(day: Column) -> Column:
    """Return a date, or the nearest one of the years 1 to 9999: Python has no others, and files no such bounds."""
    first, last = F.expr("DATE '0001-01-01'"), F.expr("DATE '9999-12-31'")
    return F.when(day < first, first).when(day > last, last).otherwise(day)


def _points(values: DataFrame) -> dict[str, list[Any]]:
    rows = values.distinct().collect()
    return {c: sorted({row[c] for row in rows if row[c] is not None}) for c in values.columns}
