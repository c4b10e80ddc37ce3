"""Rows before and after a change, as Arrow data: pairs of images, and the rows of the feed made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.feed.local.equal_values import equal_values
from trinity.engine.feed.shape import CHANGE_TYPE, VERSION, FeedMode
from trinity.merge.kernels.keys import Keys
from trinity.spi import Column

NONE = -1
"""Index of an image that does not exist."""
_BEFORE = ("delete", "update_preimage")


def feed_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of a feed's rows, without the time of the commit."""
    marks = [pa.field(CHANGE_TYPE, pa.string()), pa.field(VERSION, pa.int64())]
    return pa.schema([*(c.to_arrow() for c in columns), *marks])


@dataclass(frozen=True)
class Pairs:
    """Pairs of images, in the columns of the feed, and their versions.

    Attributes:
        before: index in ``rows`` of each pair's old row; :data:`NONE` for an inserted row.
        after: index in ``rows`` of each pair's new row; :data:`NONE` for a deleted row.
    """

    rows: pa.Table
    before: np.ndarray
    after: np.ndarray
    versions: np.ndarray

    def where(self, wanted: np.ndarray) -> Pairs:
        """Return the pairs that a mask selects."""
        return replace(self, before=self.before[wanted], after=self.after[wanted], versions=self.versions[wanted])

    def that_differ(self) -> Pairs:
        """Return the pairs whose images differ (C1). A pair without any row has no difference."""
        there, was = self.after != NONE, self.before != NONE
        differ = there != was
        both = np.flatnonzero(there & was & (self.before != self.after))
        before, after = self.rows.take(self.before[both]), self.rows.take(self.after[both])
        differ[both] = ~equal_rows(before, after)
        return self.where(differ)

    def net(self, key: Sequence[str]) -> Pairs:
        """Return one pair for each key: its row before the first change and after the last, unless these are equal."""
        shown = np.where(self.after == NONE, self.before, self.after)
        _, numbers = Keys.of(self.rows.select(key).take(shown), key)
        order = np.lexsort((self.versions, numbers))
        first = np.flatnonzero(np.append(True, np.diff(numbers[order]) != 0)) if len(order) else order
        last = np.append(first[1:], len(order)) - 1 if len(order) else order
        ends = order[last]
        return Pairs(self.rows, self.before[order[first]], self.after[ends], self.versions[ends]).that_differ()

    def shown(self, mode: FeedMode) -> pa.Table:
        """Return the rows of the feed: its columns, change type and version."""
        was, there = self.before != NONE, self.after != NONE
        updated = was & there
        old = np.flatnonzero(was & (~updated | (mode.preimages or not mode.updates)))
        new = np.flatnonzero(there)
        names = ("update_preimage", "update_postimage") if mode.updates else ("delete", "insert")
        kinds = [*np.where(updated[old], names[0], "delete"), *np.where(updated[new], names[1], "insert")]
        rows = self.rows.take(np.concatenate([self.before[old], self.after[new]]))
        versions = np.concatenate([self.versions[old], self.versions[new]])
        return rows.append_column(CHANGE_TYPE, pa.array(kinds, pa.string())).append_column(
            VERSION, as_arrow(versions, pa.int64())
        )


def equal_rows(some: pa.Table, others: pa.Table) -> np.ndarray:
    """Return True for each row that equals the other table's row of the same index, by Spark's ``<=>``."""
    found = np.ones(len(some), bool)
    for left, right in zip(some.columns, others.columns, strict=True):
        found &= equal_values(left.combine_chunks(), right.combine_chunks())
    return found


def unioned(pairs: Sequence[Pairs]) -> Pairs:
    """Return the pairs of several collections as one; there is at least one collection."""
    if len(pairs) == 1:
        return pairs[0]
    starts = np.cumsum([0, *(len(each.rows) for each in pairs)])

    def moved(indexes: np.ndarray, start: int) -> np.ndarray:
        return np.where(indexes == NONE, NONE, indexes + start)

    return Pairs(
        pa.concat_tables([each.rows for each in pairs]),
        np.concatenate([moved(each.before, start) for each, start in zip(pairs, starts, strict=False)]),
        np.concatenate([moved(each.after, start) for each, start in zip(pairs, starts, strict=False)]),
        np.concatenate([each.versions for each in pairs]),
    )


def in_mode(rows: pa.Table, mode: FeedMode) -> pa.Table:
    """Convert rows of a complete feed, which has updates and preimages, to a mode."""
    kinds = rows.column(CHANGE_TYPE).to_numpy()
    if mode.updates:
        return rows if mode.preimages else rows.filter(as_arrow(kinds != "update_preimage"))
    plain = np.where(kinds == "update_preimage", "delete", np.where(kinds == "update_postimage", "insert", kinds))
    index = rows.schema.get_field_index(CHANGE_TYPE)
    return rows.set_column(index, CHANGE_TYPE, pa.array(plain, pa.string()))


def paired(rows: pa.Table, columns: Sequence[Column], key: Sequence[str]) -> Pairs:
    """Pair the rows of a complete feed by key and version."""
    keys, numbers = Keys.of(rows, [*key, VERSION])
    old = np.isin(rows.column(CHANGE_TYPE).to_numpy(), _BEFORE)
    before, after, versions = (np.full(len(keys), NONE) for _ in range(3))
    before[numbers[old]] = np.flatnonzero(old)
    after[numbers[~old]] = np.flatnonzero(~old)
    versions[numbers] = as_numpy(rows.column(VERSION))
    return Pairs(rows.select([c.name for c in columns]), before, after, versions)
