"""The row versions that a fold in Arrow works on, as the function of one column sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, valid
from trinity.merge.kernels.order import FoldOrder
from trinity.spi import DataType


@dataclass(frozen=True)
class ColumnRows:
    """The row versions of all keys as the function of one column sees them; masks have an entry for each row.

    Attributes:
        name: the column.
        type: its type.
        values: its values.
        order: fold order of the rows.
        when: True for rows that carry the column (P1).
        retract: True for retracts that take the column's value back.
        explicit: True for rows that set the column even to NULL: those that SQL UPDATE wrote.
        options: the function's options.
    """

    name: str
    type: DataType
    values: pa.Array
    order: FoldOrder
    when: np.ndarray
    retract: np.ndarray
    explicit: np.ndarray
    options: Mapping[str, str]

    @cached_property
    def with_value(self) -> np.ndarray:
        """True for rows that carry a value other than NULL."""
        found: np.ndarray = self.when & valid(self.values)
        return found


@dataclass(frozen=True)
class Folded:
    """A column's value for each key.

    Attributes:
        values: the values, in the column's type; NULL for a key of which no row has one.
        unfit: True for keys whose value is out of range (A4); None if there are none.
        shown: returns the value of such a key as text, by the key's number.
    """

    values: pa.Array
    unfit: np.ndarray | None = None
    shown: Callable[[int], str] = str


def picked(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """Return the values at the indices; NULL for -1."""
    missing = rows < 0
    return values.take(as_arrow(rows, mask=missing) if missing.any() else as_arrow(rows))


def lists(keys: np.ndarray, elements: pa.Array, there: np.ndarray) -> pa.ListArray:
    """Return a list for each key.

    Args:
        keys: number of each element's key, ascending.
        elements: the elements.
        there: for each key whether it has a list; else the result is NULL.
    """
    offsets = np.zeros(len(there) + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=len(there)), out=offsets[1:])
    mask = None if there.all() else as_arrow(~there)
    return pa.ListArray.from_arrays(as_arrow(offsets).cast(pa.int32()), elements, mask=mask)
