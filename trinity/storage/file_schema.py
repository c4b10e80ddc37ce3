"""The columns of data files: found by stored name or by field id, or constant in a file.

Within a column, only the id identifies a field that was renamed, moved, or dropped and added again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.spi import decode_value, encode_value, name_in_file

FIELD_ID: Final = b"PARQUET:field_id"
"""Metadata key of an Arrow field: its id in Parquet files, for a format that goes by ids there."""

READ_BY_ID: Final = {b"trinity.read_by": b"field_id"}
"""Metadata of a storage schema whose files may have other column names: readers find columns by :data:`FIELD_ID`."""

_OF_PARTITION: Final = b"trinity.of_partition"
"""Metadata key of a field whose value comes from the partition, not from the file."""
_VALUE: Final = b"trinity.value"
"""Metadata key of a field that is constant in a file: the value as JSON."""


def with_partition_values(storage: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """Return a storage schema in which some columns get their values from :attr:`~trinity.spi.DataFile.partition`."""
    return pa.schema([_with(f, _OF_PARTITION, b"") if f.name in columns else f for f in storage], storage.metadata)


def in_file(storage: pa.Schema, partition: Mapping[str, Any]) -> pa.Schema:
    """Return a storage schema for one file: columns of :func:`with_partition_values` have the file's constants."""
    if not any(_OF_PARTITION in (f.metadata or {}) for f in storage):
        return storage
    return pa.schema(
        [
            _with(f, _VALUE, json.dumps(encode_value(partition[f.name])).encode())
            if _OF_PARTITION in (f.metadata or {}) and f.name in partition
            else f
            for f in storage
        ]
    )


def values_of_absent(field: pa.Field, rows: int) -> pa.Array:
    """Return the values of a column that a file lacks: the constant in the field's metadata, else NULL."""
    value = (field.metadata or {}).get(_VALUE)
    if value is None:
        return pa.nulls(rows, field.type)
    return pa.repeat(pa.scalar(decode_value(json.loads(value)), field.type), rows)


def _with(field: pa.Field, key: bytes, value: bytes) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), key: value})


def columns_in(file: pa.Schema, storage: pa.Schema) -> list[str | None]:
    """Return the name in a file of each column of a storage schema; None for a column that the file lacks.

    Files of other engines may have a name in another case.
    """
    by_id = {f.metadata[FIELD_ID]: f.name for f in file if f.metadata and FIELD_ID in f.metadata}
    names = set(file.names)
    found: list[str | None] = []
    for field in storage:
        about, name = field.metadata or {}, name_in_file(field)
        if _VALUE in about:
            found.append(None)
        elif by_id and FIELD_ID in about:
            found.append(by_id.get(about[FIELD_ID]))
        else:
            found.append(name if name in names else _in_another_case(name, names))
    return found


def _in_another_case(name: str, names: Collection[str]) -> str | None:
    found = [other for other in names if other.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def has_fields_of(file: pa.Field, wanted: pa.Field) -> bool:
    """Return whether a file's column has exactly the wanted fields within it, under the same names."""
    ours, theirs = _children(wanted.type), _children(file.type)
    if pa.types.is_struct(wanted.type) and [(f.name, name_in_file(f)) for f in ours] != [(f.name,) * 2 for f in theirs]:
        return False
    pairs = list(zip(ours, theirs, strict=False))
    return len(ours) == len(theirs) and all(_same(one, other) and has_fields_of(other, one) for one, other in pairs)


def _same(wanted: pa.Field, other: pa.Field) -> bool:
    ids = [_id(f) for f in (wanted, other)]
    return None in ids or ids[0] == ids[1]


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found


def _children(kind: pa.DataType) -> list[pa.Field]:
    """Return the direct fields of a type: those of a struct, an array's element, a map's key and value."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    return [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []


def conformed(array: pa.Array, file: pa.Field, wanted: pa.Field) -> pa.Array:
    """Return a file's column in the wanted type. Nested fields are found by id; those that the file lacks are NULL.

    Raises:
        pyarrow.ArrowInvalid: for a value that does not fit.
    """
    if has_fields_of(file, wanted):
        return array.cast(wanted.type)
    if pa.types.is_struct(wanted.type) and pa.types.is_struct(file.type):
        children = list(_wanted_children(array, file.type, wanted.type))
        return _struct(children, wanted.type, array.is_null())
    if pa.types.is_map(wanted.type) and pa.types.is_map(file.type):
        parts = zip((array.keys, array.items), *_both(file, wanted), strict=True)
        keys, items = (conformed(part, theirs, ours) for part, theirs, ours in parts)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, wanted.type, mask=array.is_null())
    if _children(wanted.type) and _children(file.type):
        [theirs], [ours] = _both(file, wanted)
        values = conformed(array.values, theirs, ours)
        return pa.ListArray.from_arrays(_offsets(array), values, wanted.type, mask=array.is_null())
    return array.cast(wanted.type)


def _both(file: pa.Field, wanted: pa.Field) -> tuple[list[pa.Field], list[pa.Field]]:
    return _children(file.type), _children(wanted.type)


def _wanted_children(array: pa.StructArray, file: pa.StructType, wanted: pa.StructType) -> Iterator[pa.Array]:
    """Yield the fields of a struct in a file's column, in the wanted types and order; missing fields are NULL."""
    theirs = _children(file)
    by_id = {number: index for index, f in enumerate(theirs) if (number := _id(f)) is not None}
    by_name = {f.name: index for index, f in enumerate(theirs)}
    for field in _children(wanted):
        number = _id(field)
        index = by_id.get(number) if number is not None and by_id else by_name.get(name_in_file(field))
        if index is None:
            yield pa.nulls(len(array), field.type)
        else:
            yield conformed(array.field(index), theirs[index], field)


def _struct(children: Sequence[pa.Array], kind: pa.StructType, mask: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(children, fields=_children(kind), mask=mask)


def _offsets(array: Any) -> pa.Array:
    """Return the offsets of the rows' elements as an array of its own: pyarrow takes no sliced offsets with a mask."""
    return as_arrow(as_numpy(array.offsets))
