"""Many rows of parameters for PostgreSQL, as arrays: the rows of an INSERT ... SELECT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.batches import Batch, batch_of
from trinity.journal.tables import JournalColumn, JournalTable

_ELEMENTS: Final[Mapping[str, str]] = {
    "smallint": "smallint",
    "integer": "integer",
    "bigint": "bigint",
    "numeric": "numeric",
    "real": "real",
    "double precision": "double precision",
    "boolean": "boolean",
    "text": "text",
    "character varying": "text",
    "bpchar": "text",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "uuid": "uuid",
    "bytea": "bytea",
}
"""Type of a column -> type of the array's elements: without length, so that a long text is refused, not cut."""


def as_query(sql: str, table: JournalTable, rows: Sequence[Sequence[Any]]) -> tuple[str, list[list[Any]]] | None:
    """Turn an INSERT of one row of VALUES into one that inserts all rows, and return it with an array per parameter.

    None if a value is an expression, a column's type is not one of :data:`_ELEMENTS`, or the values of a parameter have
    several classes.
    """
    batch = batch_of(sql, "postgres")
    columns = _columns(batch, table) if batch is not None else None
    if batch is None or columns is None:
        return None
    names: list[str] = []
    values: list[str] = []
    arrays: list[str] = []
    parameters: list[str] = []
    for item, column in zip(batch.items, columns, strict=True):
        if item.default:
            continue  # a column that is left out gets its DEFAULT
        names.append(trees.identifier(column.name).sql(dialect="postgres"))
        if item.constant:
            values.append(item.piece.text)
            continue
        element = _ELEMENTS.get(column.type)
        if not item.bare or element is None:
            return None
        parameters.append(f"trinity_parameter_{len(parameters) + 1}")
        values.append(parameters[-1])
        arrays.append(f"CAST(? AS {element}[])")
    given = [_of_same_class(column) for column in zip(*rows, strict=True)]
    if not given or any(array is None for array in given):
        return None
    source = f"unnest({', '.join(arrays)}) AS trinity_parameters ({', '.join(parameters)})"
    text = f"INSERT INTO {batch.target} ({', '.join(names)}) SELECT {', '.join(values)} FROM {source}"
    return text, [array for array in given if array is not None]


def _columns(batch: Batch, table: JournalTable) -> list[JournalColumn] | None:
    """Return the column that each item fills; None for a wrong statement, which then raises its own error."""
    if not batch.columns:
        found = list(table.visible)[: len(batch.items)]
    else:
        try:
            found = [table.visible_column(trees.folded(c)) for c in batch.columns]
        except TrinityError:
            return None
    return found if len(found) == len(batch.items) else None


def _of_same_class(values: Sequence[Any]) -> list[Any] | None:
    """Return the values as a list that psycopg can turn into an array; None if their classes differ, and for lists.

    An array of lists would have two dimensions, and unnest() a row for each item.
    """
    classes = set(map(type, values)) - {type(None)}
    if any(issubclass(found, (list, tuple)) for found in classes):
        return None
    if classes == {int, Decimal}:
        return [v if v is None else Decimal(v) for v in values]
    return list(values) if len(classes) <= 1 else None
