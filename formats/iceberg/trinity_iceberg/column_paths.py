"""Paths of columns in Parquet files, by their field ids.

PyIceberg has the same function, in a module that loads all of its readers.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StructType

__all__ = ["column_paths"]


def column_paths(schema: Schema) -> dict[str, int]:
    """Return the field ids of the columns that have values of their own, by their paths in a file."""
    return dict(_below("", schema.as_struct(), 0))


def _below(path: str, kind: IcebergType, field_id: int) -> Iterator[tuple[str, int]]:
    match kind:
        case StructType():
            parts = [(field.name, field.field_type, field.field_id) for field in kind.fields]
        case ListType():
            parts = [("list.element", kind.element_type, kind.element_id)]
        case MapType():
            keys = ("key_value.key", kind.key_type, kind.key_id)
            parts = [keys, ("key_value.value", kind.value_type, kind.value_id)]
        case _:
            yield path, field_id
            return
    for name, part, its_id in parts:
        yield from _below(f"{path}.{name}" if path else name, part, its_id)
