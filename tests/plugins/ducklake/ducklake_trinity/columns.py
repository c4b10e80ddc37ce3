"""Columns and their bounds as DuckLake spells them. A column's id there is its field id, in data files too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import count
from typing import Any, Final, TypeAlias

import pyarrow as pa

from trinity.spi import DataFile, DataType, TableDefinition, parse_type, stored_field

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
    "array": "list",
    "map": "map",
    "struct": "struct",
}
"""Type -> DuckLake's name; a decimal has the same in both."""
_OF_PARTS: Final = 2**20
_PARTS: Final = 2**10
"""Ids reserved for the parts of each nested column, above the ids of all columns."""
_Facts: TypeAlias = tuple[int, str, str, bool, int | None]
"""(position, name, type, nullability, id of the parent column) of a column."""


def columns_of(definition: TableDefinition) -> dict[int, _Facts]:
    """Return the entries of each column, and of each part of a nested one, by its id.

    Hidden columns have no id, so that DuckDB does not see them.
    """
    found: dict[int, _Facts] = {}
    for column in definition.columns:
        if column.field_id is not None:
            _add(found, (column.name, parse_type(column.type), column.nullable), _ids(column.field_id))
    return found


def _add(
    found: dict[int, _Facts], column: tuple[str, DataType, bool], ids: Iterator[int], parent: int | None = None
) -> None:
    name, kind, nullable = column
    number = next(ids)
    found[number] = (len(found), name, _TYPES.get(kind.name, str(kind)), nullable, parent)
    for part, inner in kind.parts:
        _add(found, (part, inner, True), ids, number)


def _ids(column: int) -> Iterator[int]:
    """Yield the id of a column, then those of its parts, from the outer to the inner."""
    yield column
    yield from count(_OF_PARTS + column * _PARTS)


def storage_of(definition: TableDefinition) -> pa.Schema:
    """Return the schema of the files: Trinity's types, with the field ids by which DuckDB finds columns."""
    fields = ((c.field_id, stored_field(c, c.to_arrow().type)) for c in definition.columns)
    return pa.schema([field if number is None else _numbered(field, _ids(number)) for number, field in fields])


def _numbered(field: pa.Field, ids: Iterator[int]) -> pa.Field:
    """Return a field with ids for the column and its parts."""
    found = {**(field.metadata or {}), b"PARQUET:field_id": str(next(ids)).encode()}
    kind = field.type
    if pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, ids))
    elif pa.types.is_map(kind):
        kind = pa.map_(_numbered(kind.key_field, ids), _numbered(kind.item_field, ids))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_numbered(kind.field(place), ids) for place in range(kind.num_fields)])
    return pa.field(field.name, kind, field.nullable, found)


def bounds_of(definition: TableDefinition, file: DataFile) -> Iterator[tuple[int, int | None, str, str]]:
    """Yield (id, number of NULLs, bounds) of each column of a file by which DuckDB may prune.

    Floating-point columns are left out: a bound does not say whether there is a NaN, which DuckDB orders last.
    """
    for column in definition.columns:
        found = file.stats.get(column.stored_name)
        low, high = (None, None) if found is None else (_text(found.min), _text(found.max))
        if found is not None and column.field_id and low is not None and high is not None:
            yield column.field_id, found.nulls, low, high


def _text(value: Any) -> str | None:
    """Return a bound as text; None for a type that is not used for pruning."""
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return None if isinstance(value, bool) or not isinstance(value, (int, str, Decimal, dt.date)) else str(value)
