"""Values that are NOT NULL within others: fields of structs, elements of arrays, values of maps (M6)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["nulls_within"]


def nulls_within(values: pa.Array, path: Sequence[str]) -> int:
    """Return how many values at a path are NULL; where one around them is NULL, there is none.

    Args:
        values: a column.
        path: as in :attr:`~trinity.spi.Column.required`.
    """
    for part in path:
        values = _within(values.drop_null(), part)
    return int(values.null_count)


def _within(values: pa.Array, part: str) -> pa.Array:
    kind = values.type
    if pa.types.is_list(kind):
        return pc.list_flatten(values)
    if pa.types.is_map(kind):
        values = pc.list_flatten(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    return pc.struct_field(values, [values.type.get_field_index(part)])
