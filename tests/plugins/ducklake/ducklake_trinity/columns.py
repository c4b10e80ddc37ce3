"""Columns and their bounds as DuckLake spells them. A column's id there is its field id, in data files too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import DataFile, TableDefinition, parse_type, stored_field

__all__ = ["bounds_of", "columns_of", "storage_of"]

_TYPES: Final[Mapping[str, str]] = {
    "boolean": "boolean",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "char": "varchar",
    "varchar": "varchar",
    "string": "varchar",
    "binary": "blob",
    "date": "date",
    "time": "time",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


def columns_of(definition: TableDefinition) -> dict[int, tuple[int, str, str, bool]]:
    """Return the place, name, type and nullability of each column, by its id. Raises NOT_SUPPORTED for nested types.

    Hidden columns have no id, so that DuckDB does not see them.
    """
    numbered = ((c.field_id, place, c) for place, c in enumerate(definition.columns))
    return {n: (place, c.name, _type_of(definition, c.name, c.type), c.nullable) for n, place, c in numbered if n}


def _type_of(definition: TableDefinition, column: str, text: str) -> str:
    kind = parse_type(text)
    if kind.name == "decimal":
        return text.replace(" ", "").lower()
    if kind.name not in _TYPES:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Column '{column}' of table '{definition.full_name}' has the type {text}, which DuckLake tables do not "
            "have here; use columns of simple types.",
        )
    return _TYPES[kind.name]


def storage_of(definition: TableDefinition) -> pa.Schema:
    """Return the schema of the files: Trinity's types as they are, and field ids, by which DuckDB finds columns."""
    fields = []
    for column in definition.columns:
        field = stored_field(column, column.to_arrow().type)
        if column.field_id is not None:
            field = field.with_metadata({**(field.metadata or {}), b"PARQUET:field_id": str(column.field_id)})
        fields.append(field)
    return pa.schema(fields)


def bounds_of(definition: TableDefinition, file: DataFile) -> Iterator[tuple[int, int | None, str, str]]:
    """Yield the id, the number of NULLs, and the bounds of each column of a file that DuckDB may prune by.

    Floating-point columns are left out: a bound does not say whether there is a NaN, which DuckDB orders last.
    """
    for column in definition.columns:
        found = file.stats.get(column.stored_name)
        low, high = (None, None) if found is None else (_text(found.min), _text(found.max))
        if found is not None and column.field_id and low is not None and high is not None:
            yield column.field_id, found.nulls, low, high


def _text(value: Any) -> str | None:
    """Return a bound as text; None for one of a type that is not pruned by."""
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return None if isinstance(value, bool) or not isinstance(value, (int, str, Decimal, dt.date)) else str(value)
