"""Nested arrays by their parts: fields of structs, elements of arrays, keys and values of maps."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def part_of(values: pa.Array, name: str) -> pa.Array:
    """Return the parts of nested values that have one name: ``element``, ``key``, ``value``, or a field's."""
    kind = values.type
    if pa.types.is_list(kind):
        return pc.list_flatten(values)
    if pa.types.is_map(kind):
        values = pc.list_flatten(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    return pc.struct_field(values, [values.type.get_field_index(name)])


def with_parts(values: pa.Array, kind: pa.DataType, change: Callable[[int, pa.Array], pa.Array]) -> pa.Array:
    """Return nested values whose parts are changed.

    Args:
        values: the values.
        kind: the type of the result.
        change: (number of the part, the part) -> the new part.
    """
    missing = pc.is_null(values)
    if pa.types.is_struct(kind):
        parts = [change(number, part) for number, part in enumerate(values.flatten())]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)
    if values.null_count or values.offset:
        values = pa.concat_arrays([values])  # offsets from zero, so that values and offsets agree
    if pa.types.is_map(kind):
        keys, items = change(0, values.keys), change(1, values.items)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=missing)
    return pa.ListArray.from_arrays(values.offsets, change(0, values.values), type=kind, mask=missing)


def with_leaves(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type whose leaf types are replaced, at any depth."""

    def within(field: pa.Field) -> pa.Field:
        return field.with_type(with_leaves(field.type, change))

    if pa.types.is_list(kind):
        return pa.list_(within(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(with_leaves(kind.key_type, change), within(kind.item_field))
    return pa.struct(list(map(within, kind))) if pa.types.is_struct(kind) else change(kind)
