"""The order of row versions by Arrow values, as numbers that compare as the values do (K2, K3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_numpy
from trinity.merge.kernels.keys import as_integers

_LEAST: Final = np.iinfo(np.int64).min
_MOST: Final = np.iinfo(np.int64).max
_NO_ROW: Final = -1


def order_codes(values: pa.Array, *, descending: bool = False) -> np.ndarray:
    """Return a BIGINT for each value of a primitive type; larger values have larger numbers, or smaller ones.

    NULL has the smallest number either way. NaN is above every number, and -0.0 equals 0.0; text and binary compare by
    bytes.
    """
    codes = _ascending_codes(values)
    if not descending:
        return codes
    valid = as_numpy(values.is_valid())
    if values.null_count and valid.any() and codes[valid].max() == _MOST:  # whose complement is NULL's number
        codes = np.unique(codes, return_inverse=True)[1]
    return np.where(valid, ~codes, _LEAST)


def _ascending_codes(values: pa.Array) -> np.ndarray:
    whole = as_integers(values)
    if whole is None:
        return _ranked(values)
    if not values.null_count:
        return whole
    valid = as_numpy(values.is_valid())
    if not valid.any() or whole[valid].min() > _LEAST:
        return np.where(valid, whole, _LEAST)
    return _ranked(values)


def _ranked(values: pa.Array) -> np.ndarray:
    distinct = values.dictionary_encode()
    ranks = np.empty(len(distinct.dictionary) + 1, np.int64)
    ranks[as_numpy(pc.array_sort_indices(distinct.dictionary))] = np.arange(len(distinct.dictionary))
    ranks[_NO_ROW] = _LEAST
    found: np.ndarray = ranks[as_numpy(distinct.indices.fill_null(_NO_ROW))]
    return found


def tuple_codes(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return a number from 0 on for each tuple, in the order of the tuples; equal tuples have the same number.

    Args:
        parts: for each place of the tuples its numbers. Places are compared left to right.
    """
    order = np.lexsort(tuple(reversed(parts)))
    new = np.zeros(len(order), bool)
    for part in parts:
        new[1:] |= part[order[1:]] != part[order[:-1]]
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(new)
    return codes


def equal_codes(values: pa.Array) -> np.ndarray:
    """Return a number for each value of any type but maps; equal values have the same number, and NULL equals NULL."""
    if pa.types.is_struct(values.type):
        children = [equal_codes(child) for child in values.flatten()]
        return tuple_codes([as_numpy(values.is_valid()), *children])
    if pa.types.is_list(values.type):
        return _equal_lists(values)
    return order_codes(values)


def _equal_lists(values: pa.Array) -> np.ndarray:
    elements = equal_codes(values.flatten()).tolist()
    lengths = pc.list_value_length(values).to_pylist()
    found, numbers, end = list[int](), dict[tuple[int, ...] | None, int](), 0
    for length in lengths:
        first, end = end, end + (length or 0)
        one = None if length is None else tuple(elements[first:end])
        found.append(numbers.setdefault(one, len(numbers)))
    return np.array(found, np.int64)


def first_of_each(keys: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the indices of the first appearance of each code within its key, ascending."""
    order = np.lexsort((codes, keys))
    first = np.ones(len(order), bool)
    first[1:] = (keys[order[1:]] != keys[order[:-1]]) | (codes[order[1:]] != codes[order[:-1]])
    return np.sort(order[first])


@dataclass(frozen=True)
class FoldOrder:
    """The order of the row versions of each key: by codes, then by position among all rows (A2).

    Attributes:
        keys: the number of each row's key.
        count: how many keys there are.
        codes: arrays with a number for each row; the first array in which two rows differ decides.
    """

    keys: np.ndarray
    count: int
    codes: tuple[np.ndarray, ...] = ()

    def last(self, among: np.ndarray) -> np.ndarray:
        """Return the index of the last row of each key among those of a mask; -1 for a key without one."""
        return self._end(among, np.maximum, _LEAST)

    def first(self, among: np.ndarray) -> np.ndarray:
        """Return the index of the first row of each key among those of a mask; -1 for a key without one."""
        return self._end(among, np.minimum, _MOST)

    def _end(self, among: np.ndarray, better: np.ufunc, worst: int) -> np.ndarray:
        rows = np.flatnonzero(among)
        for codes in self.codes:
            best, mine = np.full(self.count, worst), codes[rows]
            better.at(best, self.keys[rows], mine)
            rows = rows[best[self.keys[rows]] == mine]
        if better is np.minimum:
            rows = rows[::-1]
        found = np.full(self.count, _NO_ROW)
        found[self.keys[rows]] = rows  # if a key has several rows, the last assignment stays
        return found

    def sorted(self, among: np.ndarray) -> np.ndarray:
        """Return the indices of the rows of a mask, key by key, in order."""
        rows = np.flatnonzero(among)
        by = [codes[rows] for codes in reversed(self.codes)]
        return rows[np.lexsort((*by, self.keys[rows]))] if by else rows[np.argsort(self.keys[rows], kind="stable")]
