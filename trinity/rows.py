"""Rows as Python objects: Arrow data as the values that pyspark's ``collect`` would return."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Final, SupportsIndex

import pyarrow as pa

_CYCLE_S: Final = 146_097 * 86_400
"""Seconds of 400 years, after which the calendar and the zones' rules are the same again."""


class Row(tuple[Any, ...]):
    """One row: a tuple whose values also have names. ``row[0]``, ``row["k"]`` and ``row.k`` are the same value."""

    __slots__ = ()
    __fields__: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, item: SupportsIndex | slice | str) -> Any:
        return super().__getitem__(self._index(item) if isinstance(item, str) else item)

    def __getattr__(self, name: str) -> Any:
        if name in self.__fields__:
            return self[name]
        raise AttributeError(f"the row has no column '{name}'; it has {', '.join(self.__fields__)}")

    def __contains__(self, name: object) -> bool:
        return name in self.__fields__

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self.__fields__, self, strict=True))})"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[Any, ...]]:
        return _row, (self.__fields__, tuple(self))

    def _index(self, name: str) -> int:
        if name not in self.__fields__:
            raise KeyError(name)
        return self.__fields__.index(name)

    def asDict(self, recursive: bool = False) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        """Return the values under their names.

        Args:
            recursive: True to turn nested rows into dicts too.
        """
        values = map(_plain, self) if recursive else self
        return dict(zip(self.__fields__, values, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.asDict(recursive=True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=1024)
def _kind(fields: tuple[str, ...]) -> type[Row]:
    """Return the class of rows with the given columns."""
    return type("Row", (Row,), {"__slots__": (), "__fields__": fields})


def _row(fields: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return _kind(fields)(values)


def rows_of(page: pa.RecordBatch, zone: dt.tzinfo | None = None) -> Iterator[Row]:
    """Yield the rows of a page. A TIMESTAMP is a datetime without zone, as in pyspark.

    It is the local time of ``zone``, by default of this process. Its ``fold`` is 1 in the second one of an hour that
    the clocks repeat.
    """
    return _rows(page.schema.names, page.columns, page.num_rows, zone)


def _rows(names: Sequence[str], columns: Sequence[pa.Array], count: int, zone: dt.tzinfo | None) -> Iterator[Row]:
    kind = _kind(tuple(names))
    if not columns:
        return iter([kind(())] * count)
    return map(kind, zip(*(_values(column, zone) for column in columns), strict=True))


def _values(array: pa.Array, zone: dt.tzinfo | None) -> list[Any]:
    types = pa.types
    if types.is_timestamp(array.type) and array.type.tz is not None:
        micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
        return [None if value is None else _local(value, zone) for value in micros]
    if types.is_struct(array.type):
        rows = _rows([field.name for field in array.type], array.flatten(), len(array), zone)
        return _where_valid(array, list(rows))
    if types.is_map(array.type):
        keys, items, at = _values(array.keys, zone), _values(array.items, zone), array.offsets.to_pylist()
        found = [dict(zip(keys[a:b], items[a:b], strict=True)) for a, b in pairwise(at)]
        return _where_valid(array, found)
    if types.is_list(array.type):
        items, at = _values(array.values, zone), array.offsets.to_pylist()
        return _where_valid(array, [items[a:b] for a, b in pairwise(at)])
    found_values: list[Any] = array.to_pylist()
    return found_values


def _where_valid(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


def _local(micros: int, zone: dt.tzinfo | None) -> dt.datetime:
    seconds, rest = divmod(micros, 1_000_000)
    try:
        found = dt.datetime.fromtimestamp(seconds, zone)
    except ValueError:  # the calendar's first or last day, which in UTC has begun before year 1 or ends after 9999
        years = 400 if seconds < 0 else -400
        shifted = dt.datetime.fromtimestamp(seconds + years // 400 * _CYCLE_S, zone)
        found = shifted.replace(year=shifted.year - years)
    return found.replace(microsecond=rest, tzinfo=None)
