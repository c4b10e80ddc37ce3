"""Storage schemas: Iceberg's fields as columns of Parquet files, and which of them are found by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg import types as it
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from trinity.spi import STORED_NAME
from trinity.storage import FIELD_ID, READ_BY_ID, REQUIRED
from trinity_iceberg.schema import fields_within, ordered_fields, trinity_type

__all__ = ["column_paths", "read_schema", "storage_schema"]


def storage_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of the table's Parquet files, with field ids on every level.

    PyIceberg's own conversion has ``large_string`` and ``large_list``; sinks and Spark want the plain types. Required
    fields within a column are marked (:data:`~trinity.storage.REQUIRED`).
    """
    return pa.schema(
        [pa.field(f.name, _arrow(f.field_type), not f.required, _numbered(f)) for f in ordered_fields(schema)]
    )


def read_schema(metadata: TableMetadata, schema: Schema) -> pa.Schema:
    """Return the storage schema to read files of every age: by field id, if any field's name ever changed."""
    storage = storage_schema(schema)
    used = {found for s in metadata.schemas for f in s.fields for found in _named(f)}
    names, numbers = Counter((u.within, u.name) for u in used), Counter(u.number for u in used)
    changed = {u.column for u in used if names[u.within, u.name] > 1 or numbers[u.number] > 1}
    if not changed:
        return storage
    # Spark skips row groups by the name that a field has in the file: a name with two owners is hidden
    doubtful = {u.name for u in used if u.within is None and names[u.within, u.name] > 1}
    fields = [
        f.with_metadata({**f.metadata, STORED_NAME: b"_trinity_field_" + f.metadata[FIELD_ID]})
        if f.name.lower() in doubtful or (pa.types.is_nested(f.type) and int(f.metadata[FIELD_ID]) in changed)
        else f
        for f in storage
    ]
    return pa.schema(fields, READ_BY_ID)


@dataclass(frozen=True)
class _Named:
    """A name that a field had in some schema.

    Attributes:
        column: id of the column that the field is, or lies within.
        within: id of the field in which it lies directly; None for a column.
        name: the name in lower case.
        number: the field's id.
    """

    column: int
    within: int | None
    name: str
    number: int


def _named(field: it.NestedField, within: int | None = None, column: int | None = None) -> Iterator[_Named]:
    top = field.field_id if column is None else column
    yield _Named(top, within, field.name.lower(), field.field_id)
    for child in fields_within(field.field_type):
        yield from _named(child, field.field_id, top)


def _arrow_field(field: it.NestedField) -> pa.Field:
    required = REQUIRED if field.required else {}
    return pa.field(field.name, _arrow(field.field_type), metadata={**_numbered(field), **required})


def _numbered(field: it.NestedField) -> dict[bytes, bytes]:
    return {FIELD_ID: str(field.field_id).encode()}


def _arrow(kind: it.IcebergType) -> pa.DataType:
    if isinstance(kind, it.ListType):
        return pa.list_(_arrow_field(kind.element_field))
    if isinstance(kind, it.MapType):
        return pa.map_(_arrow_field(kind.key_field).with_nullable(False), _arrow_field(kind.value_field))
    if isinstance(kind, it.StructType):
        return pa.struct([_arrow_field(f) for f in kind.fields])
    return trinity_type(kind).to_arrow()


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
