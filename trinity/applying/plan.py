"""The history of a row, made of its events (SCD type 2): versions, each from one event to the next that ends it.

Each row of the target is an event, under its key and its sequence. One event of each version is shown. The others are
kept as rows that no read returns, since a late event may need them:

- an event that changed no tracked column has the row kind :attr:`~trinity.merge.row_kinds.StoredKind.HIDDEN`;
- an event that deleted a missing row is a deleted row that ends where it starts.

A delete that ended a version is its ``__END_AT``. So the rows of a key hold all its events, in whatever order they
came. The versions are computed anew from them and from the events of the batch: by Spark
(:mod:`trinity.applying.spark`), or in this process (:mod:`trinity.applying.local`), in files of the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

from trinity.applying.arguments import END_AT, START_AT, ApplyArguments
from trinity.engine.appending.append import append_derived
from trinity.engine.reading.plan import FoldPlan
from trinity.merge.spec import merge_spec
from trinity.spi import (
    Column,
    CommitResult,
    ReadScope,
    SplitSource,
    TableDefinition,
    TableHandle,
    TransactionId,
    parse_type,
)
from trinity.target import Target

SEQUENCE: Final = "_trinity_sequence"
"""The sequence of an event, in the type of the target's START_AT."""
DELETE: Final = "_trinity_delete"
"""BOOLEAN: whether the event deletes its row."""
WHERE: Final = "apply_changes"
"""Name of the operation that assigns the events' values to columns, for messages."""


class Rank(IntEnum):
    """Source of an event. Among equal sequences the highest rank wins, then the latest arrival."""

    ENDED = 0
    """The end of a shown version; the event itself may be lost."""
    BEGAN = 1
    """The start of a shown version; the event itself may be lost."""
    STORED = 2
    """A row of the target."""
    NEW = 3


@dataclass(frozen=True)
class HistoryPlan:
    """A plan by which events become versions of rows, in one version of a target.

    Attributes:
        table: the target.
        splits: the version of the target.
        arguments: the arguments of ``apply_changes``; their columns are the target's, apart from case.
    """

    table: Target
    splits: SplitSource
    arguments: ApplyArguments

    @property
    def definition(self) -> TableDefinition:
        """The target's definition."""
        return self.splits.definition

    @property
    def at(self) -> TableHandle:
        """The target's handle, pinned to the version."""
        return self.table.handle.pinned(self.splits.version, self.definition.id)

    @cached_property
    def key(self) -> list[str]:
        """The columns that identify a row; each row has versions."""
        return [self.definition.column(name).name for name in self.arguments.keys]

    @cached_property
    def bounded(self) -> list[Column]:
        """The key columns by whose bounds files may be left out."""
        columns = map(self.definition.column, self.key)
        return [column for column in columns if parse_type(column.type).is_ordered_in_statistics]

    @property
    def start(self) -> str:
        """The target's name of the column :data:`START_AT`."""
        return self.definition.column(START_AT).name

    @property
    def end(self) -> str:
        """The target's name of the column :data:`END_AT`."""
        return self.definition.column(END_AT).name

    @cached_property
    def identity(self) -> list[str]:
        """Columns that identify an event among those of its key."""
        names = (START_AT,) if self.arguments.by_start else self.arguments.sequence
        return [self.definition.column(name).name for name in names]

    @cached_property
    def assigned(self) -> dict[str, Column]:
        """Column of the events -> the target's column for it."""
        found = {name: self.definition.column(name) for name in self.arguments.columns}
        if self.arguments.by_start:
            found[self.arguments.sequence[0]] = self.definition.column(START_AT)
        return found

    @cached_property
    def values(self) -> list[Column]:
        """All columns but the two of the interval."""
        return [c for c in self.definition.visible if c.name not in (self.start, self.end)]

    @cached_property
    def tracked(self) -> list[Column]:
        """The columns whose change begins a version."""
        return [self.definition.column(name) for name in self.arguments.tracked]

    def cleared(self, column: Column) -> bool:
        """Return True for a column that is NULL in deletes."""
        return column.nullable and column.name not in self.key

    def touched(self, bounds: Mapping[str, tuple[Any, Any]] | None) -> FoldPlan:
        """Return the fold of the files that may hold versions of the events' rows.

        ``bounds`` are those of the events' keys; None for no events.
        """
        within = ReadScope(bounds=bounds or {})
        files = tuple(f for f in self.splits.files if bounds is not None and within.concerns(f))
        return FoldPlan.of(replace(self.splits, files=files), merge_spec(self.definition))

    def append(
        self, rows: Any, bounds: Mapping[str, tuple[Any, Any]] | None, txn: TransactionId | None
    ) -> CommitResult:
        """Append changed rows of the target, unless another commit has changed the same rows since (L7)."""
        return append_derived(self.table, rows, self.at, self.splits, txn, bounds)
