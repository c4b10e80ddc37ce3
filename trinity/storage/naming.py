"""The names of columns in data files: by stored name, or by field id (see :class:`~trinity.spi.Column`)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from trinity.spi import STORED_NAME

__all__ = ["FIELD_ID", "READ_BY_ID", "columns_in", "stored_name", "stored_schema"]

FIELD_ID: Final = b"PARQUET:field_id"
"""Metadata key of an Arrow field: its id in Parquet files, for a format that goes by ids there."""

READ_BY_ID: Final = {b"trinity.read_by": b"field_id"}
"""Metadata of a storage schema with files of other column names: readers find columns by :data:`FIELD_ID`."""


def stored_name(storage: pa.Schema, column: str) -> str:
    """Return the name of a column in files of a storage schema; a column that the schema lacks keeps its name."""
    index = storage.get_field_index(column)
    return column if index < 0 else _stored(storage.field(index))


def stored_schema(storage: pa.Schema) -> pa.Schema:
    """Return the storage schema with the column names of files."""
    return pa.schema([f.with_name(_stored(f)) for f in storage])


def columns_in(file: pa.Schema, storage: pa.Schema) -> list[str | None]:
    """Return the name in a file of each column of a storage schema; None for a column that the file lacks."""
    by_id = {f.metadata[FIELD_ID]: f.name for f in file if f.metadata and FIELD_ID in f.metadata}
    names = set(file.names)
    found: list[str | None] = []
    for field in storage:
        number = (field.metadata or {}).get(FIELD_ID)
        if number is not None and by_id:
            found.append(by_id.get(number))
        else:
            found.append(_stored(field) if _stored(field) in names else None)
    return found


def _stored(field: pa.Field) -> str:
    stored = (field.metadata or {}).get(STORED_NAME)
    return str(field.name) if stored is None else str(stored.decode())
