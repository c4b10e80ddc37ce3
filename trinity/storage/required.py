"""NOT NULL within nested columns of files, for formats whose readers rely on it.

In storage schemas all nested fields are nullable, since in Arrow a NULL struct has NULL in its fields. Files declare
them as the format says, and have some value that nobody sees in a field of a NULL struct.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.errors import TrinityError

__all__ = ["REQUIRED", "as_in_file", "file_schema"]

REQUIRED: Final = {b"trinity.required": b"true"}
"""Metadata of a nested field in a storage schema that is NOT NULL in files."""


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with its marked fields NOT NULL."""
    return pa.schema([f.with_type(_in_file(f.type)) for f in schema])


def _in_file(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field))
    return pa.struct([_field(f) for f in kind]) if pa.types.is_struct(kind) else kind


def _field(field: pa.Field) -> pa.Field:
    about = dict(field.metadata or {})
    required = bool(about.items() & REQUIRED.items())
    kept = {key: value for key, value in about.items() if key not in REQUIRED}
    return pa.field(field.name, _in_file(field.type), field.nullable and not required, kept)


def as_in_file(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a storage schema in the form of files.

    Raises:
        TrinityError: CONSTRAINT_VIOLATION for NULL in rows that are older than a NOT NULL of another engine.
    """
    if rows.schema.types == schema.types:
        return rows
    columns = zip(rows.columns, schema.types, strict=True)
    arrays = [pa.chunked_array([_filled(column.combine_chunks(), kind)], kind) for column, kind in columns]
    return pa.Table.from_arrays(arrays, schema=schema)


def _part(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.null_count and not field.nullable:
        raise TrinityError(
            "CONSTRAINT_VIOLATION",
            f"Stored rows have NULL in '{field.name}', which another engine has made NOT NULL within its column since: "
            "let that engine take NOT NULL away, or give these rows a value there.",
        )
    return _filled(values, field.type)


def _filled(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if values.null_count:
        present = pc.is_valid(values)
        places = pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1)
        nothing = pa.array([None], kind)  # with Arrow's empty values within
        found = pa.concat_arrays([_filled(values.drop_null(), kind), nothing])
        return found.take(pc.if_else(present, places, len(found) - 1))
    if pa.types.is_struct(kind):
        parts = [_part(part, field) for part, field in zip(values.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    offsets = pc.subtract(values.offsets, values.offsets[0])
    if pa.types.is_map(kind):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        keys, items = values.keys[first:last], values.items[first:last]
        return pa.MapArray.from_arrays(offsets, _part(keys, kind.key_field), _part(items, kind.item_field), kind)
    return pa.ListArray.from_arrays(offsets, _part(values.flatten(), kind.value_field), kind)
