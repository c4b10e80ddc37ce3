"""Values that are NOT NULL within others: fields of structs, elements of arrays, values of maps (M6)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trinity.engine.writing.parts import part_of

__all__ = ["nulls_within"]


def nulls_within(values: pa.Array, path: Sequence[str]) -> int:
    """Return how many values at a path are NULL; a NULL around a value does not count.

    Args:
        values: a column.
        path: as in :attr:`~trinity.spi.Column.required`.
    """
    for name in path:
        values = part_of(values.drop_null(), name)
    return int(values.null_count)
