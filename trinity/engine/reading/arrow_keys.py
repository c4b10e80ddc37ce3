"""Keys in Arrow: columns whose values it compares as Spark does, and the rows that have some keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.spi import TableDefinition, parse_type

__all__ = ["compared_alike", "rows_with_keys"]

_ROW: Final = "_trinity_row"

_COMPARED_ALIKE: Final = frozenset(
    {
        "tinyint", "smallint", "int", "bigint", "decimal", "string", "char", "varchar", "date", "timestamp",
        "timestamp_ntz",
    }
)  # fmt: skip
"""Not FLOAT and DOUBLE, whose NaN and -0.0 Spark finds equal where Arrow does not, nor TIME, which has another unit."""


def compared_alike(definition: TableDefinition, names: Iterable[str]) -> bool:
    """True when Arrow finds the values of some columns equal, smaller and larger where Spark does."""
    return {parse_type(definition.column(name).type).name for name in names} <= _COMPARED_ALIKE


def rows_with_keys(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Places of the rows whose key is among some, ascending.

    Args:
        rows: has the key columns.
        keys: has them, too; a key may come up several times.
        key: names of the key columns.
    """
    placed = rows.select(key).append_column(_ROW, pa.array(np.arange(len(rows))))
    found = placed.join(keys.select(key), list(key), join_type="left semi", use_threads=False)
    return np.sort(found.column(_ROW).to_numpy())
