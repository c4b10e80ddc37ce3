"""MergeSpec: what a keyed table's options mean, parsed and checked once for every format (V1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from trinity.merge.functions import FieldFunction, aggregate_function, folded_value_stands
from trinity.spi import CARRIED, ROW_KIND

__all__ = ["MergeEngine", "MergeSpec", "SequenceGroup"]


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
class MergeSpec:
    """The rules by which the row versions of a keyed table fold (docs/semantics.md).

    Attributes:
        key: primary key columns (K1).
        ordering: watermark columns, compared left to right; empty: arrival alone (U1, U2).
        descending: True when the smallest ordering value is the freshest (U8); NULL still loses (K3).
        tombstone: the column that marks a deleted row (U3).
        tombstone_value: the text that means deleted, for a string column.
        row_kind: the column with +I, -U, +U, -D (U8).
        hidden_row_kind: True when deletes are marked in :data:`~trinity.spi.ROW_KIND` (U6).
        ignore_delete: True when retracts are dropped (D1).
        tombstone_retention_ms: how long compaction keeps a tombstone, or None for ever (U4).
        tombstone_rows: True when compaction keeps tombstones with all their columns, watermark or not.
        buckets: fixed number of buckets of the base, or None to choose by size.
        engine: the merge engine.
        groups: sequence groups, of ``partial-update`` (G1).
        functions: column -> its aggregate function, of columns that have one (A3, E1).
        remove_on_delete: True when a -D deletes the row and a -U is ignored (D3).
        remove_on_group: those of ``groups`` in which a -D that is not older deletes the row (D5).
    """

    key: tuple[str, ...]
    ordering: tuple[str, ...] = ()
    descending: bool = False
    tombstone: str | None = None
    tombstone_value: str | None = None
    row_kind: str | None = None
    hidden_row_kind: bool = False
    ignore_delete: bool = False
    tombstone_retention_ms: int | None = None
    tombstone_rows: bool = False
    buckets: int | None = None
    engine: MergeEngine = MergeEngine.DEDUPLICATE
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, FieldFunction] = field(default_factory=dict)
    remove_on_delete: bool = False
    remove_on_group: tuple[SequenceGroup, ...] = ()

    @property
    def by_column(self) -> bool:
        """:attr:`MergeEngine.by_column` of the table's engine."""
        return self.engine.by_column

    @property
    def statistics(self) -> tuple[str, ...]:
        """Columns whose bounds are worth keeping for every file."""
        marks = [c for c in (self.row_kind, ROW_KIND, CARRIED) if c and self.by_column]
        # their bounds tell a fold how few bits it needs
        sequences = [c for group in self.groups for c in group.sequence]
        summed = [c for c, function in self.functions.items() if function.name == "sum"]
        return tuple(dict.fromkeys((*self.key, *self.ordering, *marks, *sequences, *summed)))

    @property
    def folds_retracts(self) -> bool:
        """True when retracts may be among the folded rows: they exist, are not dropped, and delete no whole row."""
        return self.row_kind is not None and not self.ignore_delete and not self.remove_on_delete

    @property
    def keeps_tombstones(self) -> bool:
        """True when compaction moves tombstones to the sidecar: older rows may lose to them, or an option asks."""
        return not self.by_column and bool(self.ordering or self.tombstone_rows)

    @property
    def may_need_sidecar(self) -> bool:
        """True when compaction may move rows to the sidecar.

        For engines that fold by column these are row versions, hard deletes to which late rows lose, and keys that
        have retracts alone.
        """
        if not self.by_column:
            return self.keeps_tombstones
        return self.keeps_history or bool(self.ordering) or bool(self.row_kind)

    @property
    def sidecar_columns(self) -> tuple[str, ...]:
        """Columns that a tombstone needs in order to go on beating older rows (U4)."""
        marks = [c for c in (self.tombstone, self.row_kind, ROW_KIND if self.hidden_row_kind else None) if c]
        return tuple(dict.fromkeys((*self.key, *self.ordering, *marks)))

    @property
    def keeps_history(self) -> bool:
        """True when compaction keeps row versions in addition to the folded rows, since late rows need them (E3)."""
        stands = all(folded_value_stands(f) for f in self.functions.values())
        if self.engine is MergeEngine.PARTIAL_UPDATE:
            return bool(self.ordering) or not stands
        return self.by_column and bool(self.ordering) and (self.remove_on_delete or not stands)

    @property
    def folds_without_order(self) -> bool:
        """True when the fold does not depend on the arrival of the rows: every column commutes."""
        if self.engine is not MergeEngine.AGGREGATION or self.ordering or self.row_kind:
            return False
        found = (aggregate_function(f.name) for f in self.functions.values())
        return all(f is not None and f.commutes for f in found)

    def group_of(self, column: str) -> SequenceGroup | None:
        """Return the group that protects a column or is ordered by it, if any."""
        return next((g for g in self.groups if column in g.columns), None)

    def ignores_retracts(self, column: str, group: SequenceGroup | None) -> bool:
        """Return True for the row kind, and for a partial-update column in no group: they follow no retract (D4)."""
        return column == self.row_kind or (self.engine is MergeEngine.PARTIAL_UPDATE and group is None)
