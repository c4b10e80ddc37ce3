"""Facts about the source of a MERGE: which target rows its values can match."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from trinity.predicates.comparisons import ValueSet
from trinity.spi import DataFile

FEW: Final = 1000
"""Most rows of a source whose values are compared one by one with the statistics of every file."""


@dataclass(frozen=True)
class SourceStatistics:
    """Facts about the source of a statement.

    Attributes:
        rows: number of rows, or None where there is no source.
        bounds: target column -> (smallest, largest) value that a matched row can have by ON.
        points: target column -> the values that a matched row can have by ON, sorted, where they are few.
    """

    rows: int | None = None
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    points: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def may_touch(self, file: DataFile, columns: Collection[str]) -> bool:
        """Return True unless the file's statistics rule out that a row has one of the values in each column."""
        known = ((values, file.bounds(column)) for column, values in self.points.items() if column in columns)
        return all(bounds is None or ValueSet(listed=values).meets(*bounds) for values, bounds in known)

    @property
    def empty(self) -> bool:
        """True when there is a source and it has no row."""
        return self.rows == 0
