"""Arrow data of numbers and booleans, without pandas.

``pa.array``, ``pa.scalar`` and kernels import pandas when they get a Python value or a numpy array, to check whether it
is a pandas object. That import would take a good part of the time of a process's first read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def as_arrow(values: np.ndarray, kind: pa.DataType | None = None, *, mask: np.ndarray | None = None) -> Any:
    """Return numbers or booleans of numpy as an Arrow array, which shares their memory.

    Args:
        values: the values, in one dimension.
        kind: the array's type, to which they are cast; by default that of the values.
        mask: True where a value is NULL.

    Raises:
        pa.ArrowInvalid: a value is outside ``kind``.
    """
    own = pa.from_numpy_dtype(values.dtype)
    valid = None if mask is None else _bits(~mask)
    data = _bits(values) if pa.types.is_boolean(own) else pa.py_buffer(np.ascontiguousarray(values))
    found = pa.Array.from_buffers(own, len(values), [valid, data])
    return found if kind is None or kind == own else found.cast(kind)


def as_numpy(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return Arrow data as a numpy array. Do not write to it: numbers without NULL share the memory of the data."""
    if isinstance(values, pa.ChunkedArray):
        parts = [as_numpy(part) for part in values.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([as_numpy(pa.nulls(0, values.type)), *parts])
    kind = values.type
    if values.null_count or not (pa.types.is_primitive(kind) and not pa.types.is_temporal(kind)):
        found: np.ndarray = values.to_numpy(zero_copy_only=False)
        return found
    if pa.types.is_boolean(kind):
        return _booleans(values)
    dtype = np.dtype(kind.to_pandas_dtype())
    data = values.buffers()[1]
    return np.frombuffer(data or b"", dtype, len(values), values.offset * dtype.itemsize if data else 0)


def valid(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a mask: True for each value that is not NULL."""
    return as_numpy(values.is_valid()) if values.null_count else np.ones(len(values), bool)


def where_true(condition: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a mask: True where a condition is true, False where it is false or NULL."""
    return as_numpy(pc.fill_null(condition, FALSE))


def numbered(rows: pa.Table) -> pa.Table:
    """Return rows under numbers for names: Arrow's sorts and groups take a name that begins with a dot for a path."""
    return rows.rename_columns([str(number) for number in range(rows.num_columns)])


def row_numbers(columns: Iterable[pa.Array]) -> np.ndarray:
    """Return a number for each row; rows that are equal in all columns have the same number. NULL equals NULL."""
    numbers: np.ndarray | None = None
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        part = as_numpy(encoded.indices).astype(np.int64)
        both = part if numbers is None else numbers * len(encoded.dictionary) + part
        numbers = np.unique(both, return_inverse=True)[1]
    assert numbers is not None
    return numbers


def _booleans(values: pa.BooleanArray) -> np.ndarray:
    bits = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    found = np.unpackbits(bits, count=values.offset + len(values), bitorder="little")[values.offset :]
    return found.view(np.bool_)


def as_scalar(value: float, kind: pa.DataType | None = None) -> Any:
    """Return a number or a boolean as an Arrow scalar; arguments and errors as for :func:`as_arrow`."""
    return as_arrow(np.array([value]), kind)[0]


def _bits(values: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


FALSE: Final = as_scalar(False)
"""The Arrow scalar ``false``, by which kernels replace NULL."""
