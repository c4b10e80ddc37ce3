"""Fields within nested columns, found in files by their ids where files have ids, else by their names.

:mod:`trinity.storage.file_schema` finds the columns themselves. Within a column, only the id identifies a field that
was renamed, moved, or dropped and added again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.storage.file_schema import FIELD_ID, name_in_file

__all__ = ["conformed", "has_fields_of"]


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
    """Return a file's column in the wanted type: fields within it by id, NULL for a field that the file lacks.

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
    """Yield the wanted children of a struct."""
    theirs = _children(file)
    by_id = {number: place for place, f in enumerate(theirs) if (number := _id(f)) is not None}
    by_name = {f.name: place for place, f in enumerate(theirs)}
    for field in _children(wanted):
        number = _id(field)
        place = by_id.get(number) if number is not None and by_id else by_name.get(name_in_file(field))
        if place is None:
            yield pa.nulls(len(array), field.type)
        else:
            yield conformed(array.field(place), theirs[place], field)


def _struct(children: Sequence[pa.Array], kind: pa.StructType, mask: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(children, fields=_children(kind), mask=mask)


def _offsets(array: Any) -> pa.Array:
    """Return the offsets of the rows' elements, as an array that is no slice of another one."""
    return as_arrow(as_numpy(array.offsets))
