"""Keys in Arrow: columns whose values compare as in Spark, and lookups of rows by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy, as_scalar, numbered, valid

_MOST: Final = np.int64(np.iinfo(np.int64).max)

_SPREAD: Final = 8
"""A lookup table, of five bytes a value, serves integers whose range is at most this multiple of their number."""
_NONE: Final = -1
"""The number of a value that is not among the known ones."""


def as_integers(values: pa.Array) -> np.ndarray | None:
    """Return values as integers that compare as they do, 0 for NULL; None for texts, bytes and decimals.

    NaN is above every number, all NaNs are one, and -0.0 is 0.0 (K2, K3).
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_floating(kind):
        exact = canonical_floats(values.cast(pa.float64()))
        bits = as_numpy(exact.fill_null(as_scalar(0.0)) if exact.null_count else exact).view(np.int64)
        return bits ^ ((bits >> 63) & _MOST)
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        values = values.view(pa.int64())
    elif not pa.types.is_signed_integer(kind):
        return None
    whole = values.cast(pa.int64())
    return as_numpy(whole.fill_null(as_scalar(0)) if whole.null_count else whole)


def comparable(rows: pa.Table) -> pa.Table:
    """Return rows with integers in place of floating-point numbers, which Arrow compares differently from Spark."""
    for index, kind in enumerate(rows.schema.types):
        if pa.types.is_floating(kind):
            values = rows.column(index).combine_chunks()
            whole = as_integers(values)
            assert whole is not None
            mask = as_numpy(values.is_null()) if values.null_count else None
            rows = rows.set_column(index, rows.schema.names[index], as_arrow(whole, mask=mask))
    return rows


def rows_with_keys(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Return the indices of the rows that have one of the keys, ascending. Several rows may have the same key."""
    return Keys.of(keys, key)[0].lookup(rows)[0]


def without_null_keys(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows without NULL in their key. Others, which only external tables have, take no part (K1)."""
    for name in key:
        if rows.column(name).null_count:
            rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows


def sorted_indexes(rows: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Return the indices that sort rows by key; the sort is stable."""
    if len(key) == 1 and _is_integer(rows.schema.field(key[0]).type):
        return np.argsort(_integers(rows.column(key[0])), kind="stable")
    compared = comparable(rows.select(list(dict.fromkeys(key))))
    return _ascending(compared)


def indexes_among(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Return for each of the other rows the index at which it belongs among rows that are sorted by key."""
    if len(key) == 1 and _is_integer(rows.schema.field(key[0]).type):
        return np.searchsorted(_integers(rows.column(key[0])), _integers(others.column(key[0])))
    both = comparable(pa.concat_tables([others.select(key), rows.select(key)]).combine_chunks())
    order = _ascending(both)
    from_rows = order >= len(others)
    indexes = np.empty(len(others), np.int64)
    indexes[order[~from_rows]] = np.cumsum(from_rows)[~from_rows]
    return indexes


def _ascending(rows: pa.Table) -> np.ndarray:
    """Return the indices that sort rows by all their columns; the sort is stable."""
    rows = numbered(rows)
    found: np.ndarray = as_numpy(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in rows.column_names]))
    return found.astype(np.int64)


@dataclass(frozen=True)
class Keys:
    """The distinct keys of some rows, each with a number from 0 on. Keys with a NULL are left out.

    Attributes:
        key: names of the key columns.
        columns: the distinct values of each key column.
        together: for each column from the second on, the distinct pairs (number by the columns before, number by this
            column).
    """

    key: tuple[str, ...]
    columns: tuple[_Values, ...]
    together: tuple[_Numbers, ...]

    @classmethod
    def of(cls, rows: pa.Table, key: Sequence[str]) -> tuple[Keys, np.ndarray]:
        """Return the distinct keys of rows, and the number of each row's key."""
        first, numbers = _distinct_values(rows.column(key[0]))
        columns, together = [first], list[_Numbers]()
        for name in key[1:]:
            column = rows.column(name)
            values, further = _distinct_values(column)
            pairs = _pairs(numbers, further, len(values))
            both, numbers = _distinct(pairs, pairs != _NONE)
            columns.append(values)
            together.append(both)
        return cls(tuple(key), tuple(columns), tuple(together)), numbers

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.together[-1] if self.together else self.columns[0])

    def numbers(self, rows: pa.Table) -> np.ndarray:
        """Return the number of each row's key; -1 for a key that is not among these."""
        found = self.columns[0].numbers(rows.column(self.key[0]))
        for name, values, together in zip(self.key[1:], self.columns[1:], self.together, strict=True):
            found = together.indexes_of(_pairs(found, values.numbers(rows.column(name)), len(values)))
        return found

    @property
    def are_looked_up(self) -> bool:
        """True if :meth:`lookup` can search these keys in a sorted file; else it searches a file's rows among them."""
        return not self.together and isinstance(self.columns[0], _Numbers)

    def lookup(self, rows: pa.Table, among: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (indexes of the rows whose key is among these, ascending; numbers of the keys of these rows).

        Args:
            rows: the rows.
            among: ascending numbers of the only keys that the rows may have; None for all keys.
        """
        if not self.together and (found := self.columns[0].lookup(rows.column(self.key[0]), among)) is not None:
            return found
        numbers = self.numbers(rows)
        indexes = np.flatnonzero(numbers != _NONE)
        return indexes, numbers[indexes]


def _pairs(numbers: np.ndarray, further: np.ndarray, limit: int) -> np.ndarray:
    """Return one number for each pair of numbers; the second one is below ``limit``.

    The result fits, as both numbers are below the number of rows.
    """
    return np.where((numbers == _NONE) | (further == _NONE), _NONE, numbers * limit + further)


@dataclass(frozen=True)
class _Numbers:
    """The distinct values of a column as ascending integers; the number of a value is its index."""

    distinct: np.ndarray

    def __len__(self) -> int:
        return len(self.distinct)

    def numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        return np.where(valid(column), self.indexes_of(_integers(column)), _NONE)

    def indexes_of(self, values: np.ndarray) -> np.ndarray:
        if not len(self.distinct):
            return np.full(len(values), _NONE)
        indexes = np.minimum(np.searchsorted(self.distinct, values), len(self.distinct) - 1)
        return np.where(self.distinct[indexes] == values, indexes, _NONE)

    def lookup(self, column: pa.ChunkedArray, among: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Return what :meth:`Keys.lookup` does, by a search of these integers in a column.

        None unless they are fewer than the rows, and the column ascends strictly, as the key column of a base file
        does. Then few keys are found without a look at every row.
        """
        values, wanted = _integers(column), self.distinct if among is None else self.distinct[among]
        if column.null_count or len(values) <= len(wanted) or not (values[1:] > values[:-1]).all():
            return None
        indexes = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
        there = np.flatnonzero(values[indexes] == wanted)
        return indexes[there], there if among is None else among[there]


@dataclass(frozen=True)
class _Others:
    """The distinct values of a column whose type numpy does not sort; the number of a value is its index."""

    distinct: pa.Array

    def __len__(self) -> int:
        return len(self.distinct)

    def numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        indexes = pc.index_in(column.combine_chunks(), value_set=self.distinct, skip_nulls=True)
        numbers: np.ndarray = as_numpy(pc.fill_null(indexes, as_scalar(_NONE, indexes.type)))
        return numbers.astype(np.int64)

    def lookup(self, column: pa.ChunkedArray, among: np.ndarray | None) -> None:
        """Return None: these values are not sorted, so they cannot be searched in a column."""


_Values = _Numbers | _Others


def _distinct_values(column: pa.ChunkedArray) -> tuple[_Values, np.ndarray]:
    """Return the distinct values of a column, and the number of each row's value."""
    if _is_integer(column.type):
        return _distinct(_integers(column), valid(column))
    found = column.combine_chunks().dictionary_encode()
    numbers = as_numpy(pc.fill_null(found.indices, as_scalar(_NONE, found.indices.type))).astype(np.int64)
    return _Others(found.dictionary), numbers


def _distinct(values: np.ndarray, valid: np.ndarray) -> tuple[_Numbers, np.ndarray]:
    """Return the distinct integers among the valid ones, and the number of each row's integer.

    ``numpy.unique`` is slower.
    """
    indexes = np.flatnonzero(valid)
    counted = values[indexes]
    numbers = np.full(len(values), _NONE)
    low, high = (int(counted.min()), int(counted.max())) if len(counted) else (0, 0)
    if high - low < _SPREAD * len(counted):  # a table with an entry for each integer of the range needs no sort
        present = np.zeros(high - low + 1, bool)
        present[counted - low] = True
        numbers[indexes] = np.cumsum(present, dtype=np.uint32)[counted - low].astype(np.int64) - 1
        return _Numbers(np.flatnonzero(present) + low), numbers
    order = np.argsort(counted)
    ranked = counted[order]
    first = np.ones(len(ranked), bool)
    first[1:] = ranked[1:] != ranked[:-1]
    numbers[indexes[order]] = np.cumsum(first) - 1
    return _Numbers(ranked[first]), numbers


def canonical_floats(values: pa.Array) -> pa.Array:
    """Return floating-point numbers with 0.0 for -0.0, and with one NaN (K2)."""
    return pc.if_else(pc.is_nan(values), as_scalar(np.nan, values.type), pc.add(values, as_scalar(0.0, values.type)))


def _is_integer(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_signed_integer(kind) or pa.types.is_floating(kind) or pa.types.is_time(kind)
        or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    )  # fmt: skip


def _integers(column: pa.ChunkedArray) -> np.ndarray:
    found = as_integers(column.combine_chunks())
    assert found is not None
    return found
