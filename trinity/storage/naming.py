"""The columns of data files: by stored name, by field id (see :class:`~trinity.spi.Column`), or with one value."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import pyarrow as pa

from trinity.spi import STORED_NAME, decode_value, encode_value

__all__ = [
    "FIELD_ID",
    "READ_BY_ID",
    "columns_in",
    "in_file",
    "name_in_file",
    "stored_name",
    "stored_schema",
    "values_of_absent",
    "with_partition_values",
]

FIELD_ID: Final = b"PARQUET:field_id"
"""Metadata key of an Arrow field: its id in Parquet files, for a format that goes by ids there."""

READ_BY_ID: Final = {b"trinity.read_by": b"field_id"}
"""Metadata of a storage schema with files of other column names: readers find columns by :data:`FIELD_ID`."""

_OF_PARTITION: Final = b"trinity.of_partition"
"""Metadata key of a field that has the value of a file's partition, whatever the file has."""
_VALUE: Final = b"trinity.value"
"""Metadata key of a field that has this one value in a file, as JSON."""


def with_partition_values(storage: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """Return a storage schema in which some columns have the values of :attr:`~trinity.spi.DataFile.partition`."""
    return pa.schema([_with(f, _OF_PARTITION, b"") if f.name in columns else f for f in storage], storage.metadata)


def in_file(storage: pa.Schema, partition: Mapping[str, Any]) -> pa.Schema:
    """Return a storage schema as it is for one file, by the file's partition."""
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
    """Return the values of a column that a file lacks: the one that its field names, else NULL."""
    value = (field.metadata or {}).get(_VALUE)
    if value is None:
        return pa.nulls(rows, field.type)
    return pa.repeat(pa.scalar(decode_value(json.loads(value)), field.type), rows)


def _with(field: pa.Field, key: bytes, value: bytes) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), key: value})


def stored_name(storage: pa.Schema, column: str) -> str:
    """Return the name of a column in files of a storage schema; a column that the schema lacks keeps its name."""
    index = storage.get_field_index(column)
    return column if index < 0 else name_in_file(storage.field(index))


def stored_schema(storage: pa.Schema) -> pa.Schema:
    """Return the storage schema with the column names of files."""
    return pa.schema([f.with_name(name_in_file(f)) for f in storage])


def columns_in(file: pa.Schema, storage: pa.Schema) -> list[str | None]:
    """Return the name in a file of each column of a storage schema; None for a column that the file lacks.

    A name may be in another case in files of others.
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


def name_in_file(field: pa.Field) -> str:
    """Return the name that a field of a storage schema has in files."""
    stored = (field.metadata or {}).get(STORED_NAME)
    return str(field.name) if stored is None else str(stored.decode())
