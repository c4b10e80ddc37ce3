"""The join of a statement's target with its source, by equality, in Arrow (M1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions import Compiled
from trinity.engine.program import When
from trinity.merge.arrow.keys import Keys

__all__ = ["Join", "Joined"]

Joined = tuple[When, pa.RecordBatch]
"""Rows of a join, and the WHEN clauses that are about them."""


@dataclass(frozen=True)
class Join:
    """The join of pages of the target with all rows of the source.

    Attributes:
        rows: the source, with the columns that the statement reads.
        on: the columns of the target that ON compares.
        keys: the distinct values that they may have.
        order: places of the source's rows, those of one key beside each other.
        edges: where the rows of each key begin and end in that order.
        also: what else ON says of two rows.
        matched: whether a row has matched; set as pages are joined.
        kinds: the rows that some WHEN clause is about.
    """

    rows: pa.RecordBatch
    on: tuple[str, ...]
    keys: Keys
    order: np.ndarray
    edges: np.ndarray
    also: Compiled | None
    matched: np.ndarray
    kinds: frozenset[When]

    @classmethod
    def of(cls, rows: pa.RecordBatch, values: pa.Table, also: Compiled | None, kinds: frozenset[When]) -> Join:
        """Return the join with a source.

        Args:
            rows: the source.
            values: column of the target in the join's rows -> the value that ON says it equals.
            also: what else ON says of two rows.
            kinds: the rows that some WHEN clause is about.
        """
        keys, numbers = Keys.of(values, values.column_names)
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
        matched = np.zeros(rows.num_rows, bool)
        return cls(rows, tuple(values.column_names), keys, order, edges, also, matched, kinds)

    def joined(self, target: pa.RecordBatch) -> Iterator[Joined]:
        """Yield the rows that come of a page of the target."""
        compared = pa.Table.from_arrays([_wide(target.column(name)) for name in self.on], names=list(self.on))
        numbers = self.keys.numbers(compared)
        found = np.flatnonzero(numbers >= 0)
        first, counts = self.edges[numbers[found]], np.diff(self.edges)[numbers[found]]
        places = np.repeat(found, counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        mine = self.order[np.repeat(first, counts) + within]
        pairs = _beside(target.take(pa.array(places)), self.rows.take(pa.array(mine)))
        if self.also is not None:
            holds = pc.fill_null(self.also.evaluate(pairs), False)
            pairs, those = pairs.filter(holds), holds.to_numpy(zero_copy_only=False)
            places, mine = places[those], mine[those]
        self.matched[mine] = True
        if When.MATCHED in self.kinds and len(places):
            yield When.MATCHED, pairs
        if When.NOT_MATCHED_BY_SOURCE in self.kinds:
            left = np.setdiff1d(np.arange(target.num_rows), places)
            alone = target.take(pa.array(left))
            yield When.NOT_MATCHED_BY_SOURCE, _beside(alone, _nulls(self.rows.schema, alone.num_rows))

    def unmatched(self, target: pa.Schema) -> Iterator[Joined]:
        """Yield the rows of the source that no row of the target matched, once all its pages are joined."""
        if When.NOT_MATCHED in self.kinds and not self.matched.all():
            rows = self.rows.take(pa.array(np.flatnonzero(~self.matched)))
            yield When.NOT_MATCHED, _beside(_nulls(target, rows.num_rows), rows)


def _wide(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _beside(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    fields: Sequence[pa.Field] = [*one.schema, *other.schema]
    return pa.RecordBatch.from_arrays([*one.columns, *other.columns], schema=pa.schema(fields))


def _nulls(schema: pa.Schema, rows: int) -> pa.RecordBatch:
    fields = [f.with_nullable(True) for f in schema]
    return pa.RecordBatch.from_arrays([pa.nulls(rows, f.type) for f in fields], schema=pa.schema(fields))
