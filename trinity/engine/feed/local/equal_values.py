"""Equality of values by Spark's ``<=>``: NULLs are equal, as are NaNs, and zeros of both signs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy, valid, where_true


def is_comparable(kind: pa.DataType) -> bool:
    """Return True for a type whose values :func:`equal_values` compares. Keys of maps must not be nested."""
    if pa.types.is_map(kind) and pa.types.is_nested(kind.key_type):
        return False
    return all(is_comparable(kind.field(number).type) for number in range(kind.num_fields))


def equal_values(some: pa.Array, others: pa.Array) -> np.ndarray:
    """Return True for each row whose two values, of one type, are equal."""
    kind = some.type
    there, other = valid(some), valid(others)
    if pa.types.is_struct(kind):
        inner = np.ones(len(some), bool)
        for number in range(kind.num_fields):
            inner &= equal_values(some.field(number), others.field(number))
        found: np.ndarray = (there & other & inner) | ~(there | other)
        return found
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(some, others)
    same = pc.equal(some, others)
    if pa.types.is_floating(kind):
        same = pc.or_(same, pc.and_(pc.is_nan(some), pc.is_nan(others)))
    equal: np.ndarray = where_true(same).copy()
    equal |= ~(there | other)
    return equal


def _equal_lists(some: pa.Array, others: pa.Array) -> np.ndarray:
    there, other = valid(some), valid(others)
    counts = [as_numpy(pc.fill_null(pc.list_value_length(_as_list(side)), 0)) for side in (some, others)]
    same: np.ndarray = (there & other & (counts[0] == counts[1])) | ~(there | other)
    compared = np.flatnonzero(there & other & same & (counts[0] > 0))
    if not len(compared):
        return same
    left, right = (_items(side.take(as_arrow(compared))) for side in (some, others))
    items = equal_values(left, right)
    starts = np.cumsum(counts[0][compared]) - counts[0][compared]
    same[compared] = np.logical_and.reduceat(items, starts)
    return same


def _items(lists: pa.Array) -> pa.Array:
    """Return the items of lists, one list after the other; those of a map in the order of their keys."""
    if not pa.types.is_map(lists.type):
        return lists.flatten()
    entries = _as_list(lists).flatten()
    rows = pc.list_parent_indices(_as_list(lists))
    order = pc.sort_indices(
        pa.table({"row": rows, "key": entries.field(0)}), sort_keys=[("row", "ascending"), ("key", "ascending")]
    )
    return entries.take(order)


def _as_list(lists: pa.Array) -> pa.Array:
    if not pa.types.is_map(lists.type):
        return lists
    entry = pa.struct([pa.field("key", lists.type.key_type), pa.field("value", lists.type.item_type)])
    return lists.cast(pa.list_(entry))
