"""The join of a statement's target with its source in Arrow: by equality, or of every row with every row (M1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.expressions import Compiled
from trinity.engine.program import When
from trinity.merge.kernels.keys import Keys

_PAIRS_AT_ONCE: Final = 100_000
Joined = tuple[When, pa.RecordBatch]
"""Rows of a join, and the kind of WHEN clause that applies to them."""


@dataclass(frozen=True)
class _Equal:
    """The equalities of ON.

    Attributes:
        on: the compared columns of the target.
        keys: the distinct values in the source.
        order: indices of the source's rows, grouped by key.
        edges: positions in ``order`` at which the rows of each key begin; those of the next key begin where they end.
    """

    on: tuple[str, ...]
    keys: Keys
    order: np.ndarray
    edges: np.ndarray

    def indexes(self, target: pa.RecordBatch) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of target and source rows that have equal values, in the target's order."""
        compared = pa.Table.from_arrays([_as_bigint(target.column(name)) for name in self.on], names=list(self.on))
        numbers = self.keys.numbers(compared)
        found = np.flatnonzero(numbers >= 0)
        first, counts = self.edges[numbers[found]], np.diff(self.edges)[numbers[found]]
        indexes = np.repeat(found, counts)
        within = np.arange(len(indexes)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield indexes, self.order[np.repeat(first, counts) + within]


@dataclass(frozen=True)
class Join:
    """The join of pages of the target with all rows of the source.

    Attributes:
        equal: the equalities of ON; None without any: each row of the target is then joined with each of the source.
        residual: ON without its equalities.
        matched: True for source rows that have matched; set as pages are joined.
        kinds: the kinds of the statement's WHEN clauses.
        once: True when a target row is emitted once, however many source rows match it (M2).
    """

    rows: pa.RecordBatch
    equal: _Equal | None
    residual: Compiled | None
    matched: np.ndarray
    kinds: frozenset[When]
    once: bool

    @classmethod
    def of(
        cls, rows: pa.RecordBatch, values: pa.Table, residual: Compiled | None, kinds: frozenset[When], *, once: bool
    ) -> Join:
        """Return the join with a source.

        ``values`` has, for each target column in an equality of ON, the value that it must equal, by source row. The
        other arguments are attributes of the class.
        """
        matched = np.zeros(rows.num_rows, bool)
        if not values.num_columns:
            return cls(rows, None, residual, matched, kinds, once)
        keys, numbers = Keys.of(values, values.column_names)
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
        return cls(rows, _Equal(tuple(values.column_names), keys, order, edges), residual, matched, kinds, once)

    @property
    def fields(self) -> frozenset[str]:
        """The columns that ON reads."""
        on = self.equal.on if self.equal is not None else ()
        return frozenset(on) | (self.residual.fields if self.residual is not None else frozenset())

    def joined(self, target: pa.RecordBatch) -> Iterator[Joined]:
        """Yield the joined rows of a page of the target."""
        found = np.zeros(target.num_rows, bool)
        equal = self.equal
        for indexes, mine in equal.indexes(target) if equal is not None else self._all_indexes(target.num_rows):
            pairs = _side_by_side(target.take(as_arrow(indexes)), self.rows.take(as_arrow(mine)))
            if self.residual is not None:
                holds = pc.fill_null(self.residual.evaluate(pairs), False)
                pairs, those = pairs.filter(holds), as_numpy(holds)
                indexes, mine = indexes[those], mine[those]
            self.matched[mine] = found[indexes] = True
            if self.once:
                pairs = pairs.filter(as_arrow(np.diff(indexes, prepend=-1) != 0))
            if When.MATCHED in self.kinds and pairs.num_rows:
                yield When.MATCHED, pairs
        if When.NOT_MATCHED_BY_SOURCE in self.kinds:
            alone = target.filter(as_arrow(~found))
            yield When.NOT_MATCHED_BY_SOURCE, _side_by_side(alone, _nulls(self.rows.schema, alone.num_rows))

    def _all_indexes(self, target: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield pairs for a cross join, some target rows at a time."""
        own = self.rows.num_rows
        count = max(1, _PAIRS_AT_ONCE // max(1, own))
        for first in range(0, target, count):
            indexes = np.arange(first, min(first + count, target))
            yield np.repeat(indexes, own), np.tile(np.arange(own), len(indexes))

    def unmatched(self, target: pa.Schema) -> Iterator[Joined]:
        """Yield the source rows that no target row matched. To be called after all pages of the target are joined."""
        if When.NOT_MATCHED in self.kinds and not self.matched.all():
            rows = self.rows.take(as_arrow(np.flatnonzero(~self.matched)))
            yield When.NOT_MATCHED, _side_by_side(_nulls(target, rows.num_rows), rows)


def _as_bigint(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _side_by_side(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    fields: Sequence[pa.Field] = [*one.schema, *other.schema]
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema(fields))


def _nulls(schema: pa.Schema, rows: int) -> pa.RecordBatch:
    fields = [f.with_nullable(True) for f in schema]
    return pa.RecordBatch.from_arrays([pa.nulls(rows, f.type) for f in fields], schema=pa.schema(fields))
