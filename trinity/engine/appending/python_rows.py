"""Rows of Python: dicts, dataclasses, and lists of these; data frames of pandas, and lazy frames of Polars."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from trinity.engine.writing.parts import with_leaves
from trinity.errors import TrinityError, first_line
from trinity.messages import value_text
from trinity.spi import TableDefinition, type_text

if TYPE_CHECKING:
    import pandas as pd


def with_python_rows(data: Any, definition: TableDefinition | None = None) -> Any:
    """Return rows of Python, and lazy frames of Polars, as data with ``__arrow_c_stream__``; other data as it is.

    Args:
        data: a dict or a dataclass is one row, a list of them several; a row that lacks a column has NULL there.
        definition: the table for which the rows are; columns get its types. By default Arrow infers types.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a list with anything else; TYPE_MISMATCH naming column and value.
    """
    if type(data).__name__ == "LazyFrame" and type(data).__module__.startswith("polars"):
        return data.collect()
    if isinstance(data, Mapping) or _is_dataclass(data):
        data = [data]
    if not isinstance(data, list | tuple) or hasattr(data, "__arrow_c_stream__"):
        return data
    return _table([_row(row, number) for number, row in enumerate(data)], definition)


def _is_dataclass(row: Any) -> bool:
    return dataclasses.is_dataclass(row) and not isinstance(row, type)


def _row(row: Any, number: int) -> Mapping[str, Any]:
    if _is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    if isinstance(row, Mapping) and all(isinstance(name, str) for name in row):
        return row
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"Row {number} of the data is {value_text(row)}; give each row as a dict of column names and values, or as a "
        "dataclass.",
    )


def _table(rows: Sequence[Mapping[str, Any]], definition: TableDefinition | None) -> pa.Table:
    columns = definition.visible if definition else ()
    types = {c.name.lower(): c.to_arrow().type for c in columns}
    names = {name.lower(): name for row in rows for name in row}
    if not names:  # no row has a column
        names = {c.name.lower(): c.name for c in columns}
    folded = [_lower_case_names(row, number) for number, row in enumerate(rows)]
    arrays = [_array(shown, [row.get(name) for row in folded], types.get(name)) for name, shown in names.items()]
    return pa.table(dict(zip(names.values(), arrays, strict=True)))


def _lower_case_names(row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Return a row with its names in lower case."""
    found = {name.lower(): value for name, value in row.items()}
    if len(found) < len(row):
        raise TrinityError("DUPLICATE_COLUMN_NAME", f"Row {number} of the data names a column twice: {', '.join(row)}.")
    return found


def _array(name: str, values: list[Any], kind: pa.DataType | None) -> pa.Array:
    try:
        return _converted(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wanted = "one type" if kind is None else f"type {type_text(kind)}"
        raise TrinityError(
            "TYPE_MISMATCH", f"Column '{name}' of the data: {_first_wrong(values, kind)} cannot be of {wanted}."
        ) from error


def _converted(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is None:
        return pa.array(values)
    return pa.array([_exact(value, kind) for value in values], _for_times(values, kind))


def _exact(value: Any, kind: pa.DataType) -> Any:
    """Return a value in a form that Arrow makes one of a type as it is; structs have the names of their fields.

    Raises:
        ValueError: Arrow would cut the value, leave out a part of it, or take it for something else.
    """
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind):
        return _fields(value, kind)
    if types.is_map(kind):
        if isinstance(value, str | bytes | Iterator):  # an iterator could be read only once
            raise ValueError("neither a mapping nor pairs")
        pairs = [*value.items()] if isinstance(value, Mapping) else value
        if not all(isinstance(pair, tuple) for pair in pairs):
            raise ValueError("neither a mapping nor pairs")
        return [(_exact(key, kind.key_type), _exact(item, kind.item_type)) for key, item in pairs]
    if types.is_list(kind):
        if isinstance(value, str | bytes | Mapping | Iterator):
            raise ValueError("no list")
        return [_exact(item, kind.value_type) for item in value]
    if isinstance(value, _of_other_types(kind)):
        raise ValueError("another type")
    whole = not (types.is_floating(kind) or types.is_decimal(kind))
    if whole and isinstance(value, float | np.floating | Decimal) and value != int(value):
        raise ValueError("no whole number")
    if types.is_floating(kind) and isinstance(value, bool):
        raise ValueError("no number")
    if types.is_date(kind) and isinstance(value, dt.datetime) and value.time() != dt.time():
        raise ValueError("a time of day")
    if getattr(value, "nanosecond", 0):
        raise ValueError("nanoseconds")
    return value


def _of_other_types(kind: pa.DataType) -> tuple[type, ...]:
    """Return the classes of values that Arrow would take for a type though they are of another one."""
    types = pa.types
    if types.is_string(kind):
        return (bytes, bytearray, memoryview)
    if types.is_binary(kind):
        return (str,)
    if types.is_temporal(kind):
        return (float, np.floating, Decimal, UUID)
    return (UUID,)


def _fields(value: Any, kind: pa.StructType) -> Any:
    """Return the fields of a struct, given by name in any case, or by place."""
    if isinstance(value, tuple):
        return tuple(_exact(item, field.type) for item, field in zip(value, kind, strict=True))
    given = dict(value)
    found = {str(name).lower(): item for name, item in given.items()}
    if len(found) < len(given) or not found.keys() <= {field.name.lower() for field in kind}:
        raise ValueError("a field twice, or one that the type lacks")
    return {field.name: _exact(found.get(field.name.lower()), field.type) for field in kind}


def _for_times(values: list[Any], kind: pa.DataType) -> pa.DataType:
    """Return a type whose timestamps have no zone if the values' datetimes have none: the session's zone is meant."""
    zoned = {time.tzinfo is not None for time in _datetimes(values)}
    if len(zoned) > 1:
        raise ValueError("datetimes with and without a zone")
    return with_leaves(kind, _without_zone) if zoned == {False} else kind


def _datetimes(value: Any) -> Iterator[dt.datetime]:
    if isinstance(value, dt.datetime):
        yield value
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _datetimes(pair)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _datetimes(item)


def _without_zone(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _first_wrong(values: list[Any], kind: pa.DataType | None) -> str:
    """Return the row and the value from which on the values do not fit the type, found by bisection."""
    right, wrong = 0, len(values)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        try:
            _converted(values[:middle], kind)
            right = middle
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            wrong = middle
    return f"row {wrong - 1}'s {value_text(values[wrong - 1])}"


def from_pandas(frame: pd.DataFrame) -> pa.Table:
    """Return the rows of a data frame as Arrow data, without its index.

    Raises:
        TrinityError: DUPLICATE_COLUMN_NAME; TYPE_MISMATCH naming a column for whose values Arrow has no type.
    """
    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"The data has column '{name}' more than once; rename one.")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        at, why = next(_without_type(frame), (0, error))
        raise TrinityError(
            "TYPE_MISMATCH",
            f"The values of column '{names[at]}' of the data have no type in common; give them one, as by astype(). "
            f"({first_line(why)})",
        ) from error


def _without_type(frame: pd.DataFrame) -> Iterator[tuple[int, Exception]]:
    """Yield the index of each column whose values Arrow cannot hold, and Arrow's error."""
    for at in range(frame.shape[1]):
        try:
            pa.array(frame.iloc[:, at], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            yield at, error
