"""Parts of a merge engine: the engine itself, sequence groups, functions of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["FieldFunction", "MergeEngine", "SequenceGroup"]


class MergeEngine(str, Enum):
    """The way in which the row versions of a key become one row: ``merge-engine``."""

    DEDUPLICATE = "deduplicate"
    """The freshest version, whole (U1)."""
    PARTIAL_UPDATE = "partial-update"
    """Column by column, group by group (P1, G1-G7)."""
    AGGREGATION = "aggregation"
    """Every column by its function (E1)."""
    FIRST_ROW = "first-row"
    """The first version that arrived, whole (E2)."""

    @property
    def by_column(self) -> bool:
        """True when the folded row takes each column from where its rule says (P1, G6, E1)."""
        return self in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)


@dataclass(frozen=True)
class SequenceGroup:
    """Columns that are versioned together (G1-G7).

    Attributes:
        sequence: columns compared left to right, NULL smallest.
        protected: the columns that follow them.
    """

    sequence: tuple[str, ...]
    protected: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The sequence and the protected columns."""
        return (*self.sequence, *self.protected)


@dataclass(frozen=True)
class FieldFunction:
    """The aggregate function of a column (A1-A5).

    Attributes:
        name: its name in :mod:`trinity.merge.functions`.
        ignore_retract: True when a retract leaves the column as it is.
        options: its other options, such as ``list-agg-delimiter``.
    """

    name: str
    ignore_retract: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
