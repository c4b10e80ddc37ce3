"""Columns of a table and of a stream of it: as JSON between processes, and compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trinity.datasource.parts import CHANGE_COLUMNS
from trinity.engine.writing.casts import assignable
from trinity.errors import TrinityError, nearest
from trinity.spi import Column, parse_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def as_json(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """Return columns as JSON: name, type and field id, which identify them."""
    return [{"name": column.name, "type": column.type, "field_id": column.field_id} for column in columns]


def columns_of(found: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return the columns that :func:`as_json` wrote."""
    return tuple(Column(**column) for column in found)


def shown_columns(table: str, columns: Sequence[Column], schema: StructType) -> list[Column]:
    """Return the table's columns for a DataFrame's schema.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, TYPE_MISMATCH for a caller's schema that does not fit.
    """
    known = {column.name.lower(): column for column in (*CHANGE_COLUMNS, *columns)}
    found = []
    for field in schema.fields:
        column = known.get(field.name.lower())
        if column is None:
            raise TrinityError(
                "COLUMN_NOT_FOUND", f"Table '{table}' has no column '{field.name}'.{nearest(field.name, list(known))}"
            )
        kind = field.dataType.simpleString()
        if not assignable(parse_type(column.type), parse_type(kind)):
            raise TrinityError(
                "TYPE_MISMATCH", f"Column '{column.name}' of table '{table}' is {column.type}, and cannot be {kind}."
            )
        found.append(column)
    return found


def differences(old: Iterable[Column], new: Iterable[Column], *, chosen: bool) -> list[str]:
    """Return the differences between columns, for a message; empty when a stream may go on.

    Where the caller chose the stream's columns, added ones are no difference.
    """
    before, after = ({column.identity: column for column in columns} for columns in (old, new))
    gone = [f"'{column.name}' was dropped" for key, column in before.items() if key not in after]
    other = [
        f"'{column.name}' {column.type} is '{after[key].name}' {after[key].type} now"
        for key, column in before.items()
        if key in after and (column.name, column.type) != (after[key].name, after[key].type)
    ]
    added = [f"'{column.name}' was added" for key, column in after.items() if key not in before and not chosen]
    return [*gone, *other, *added]
