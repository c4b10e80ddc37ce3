"""CHAR and VARCHAR in Spark, where both are STRING: the stored form, and padding in comparisons (K2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from trinity.spi import Column, DataType, parse_type
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_RAW_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Key in a column's metadata under which Spark keeps the type that it shows as STRING."""


def as_stored(value: SparkColumn, column: Column) -> SparkColumn:
    """Return text as its column stores it: CHAR padded, CHAR and VARCHAR without the blanks beyond their length (K2).

    Text that is too long stays as it is; the sink refuses it.
    """
    return _stored(value, parse_type(column.type))


def _stored(value: SparkColumn, kind: DataType) -> SparkColumn:
    from trinity.spark_names import F

    if kind.has_length:
        length = kind.arguments[0]
        fitting = F.rpad(value, length, " ") if kind.name == "char" else F.substring(value, 1, length)
        return F.when(F.length(F.rtrim(value)) <= length, fitting).otherwise(value)
    if not kind.limited:
        return value
    if kind.name == "array":
        return F.transform(value, lambda element: _stored(element, kind.children[0]))
    if kind.name == "map":
        return F.map_from_entries(F.transform(F.map_entries(value), lambda entry: _fields(entry, kind)))
    return F.when(value.isNotNull(), _fields(value, kind))


def _fields(value: SparkColumn, kind: DataType) -> SparkColumn:
    from trinity.spark_names import F

    return F.struct(*[_stored(value[name], child).alias(name) for name, child in kind.parts])


def with_char(rows: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """Return rows whose CHAR columns are marked as such, so that Spark pads text that is compared with them (K2).

    The rows may lack columns of the table.
    """
    from trinity.spark_names import F

    kinds = {c.name: about for c in columns if (about := char_metadata(c))}
    if kinds.keys().isdisjoint(rows.columns):
        return rows
    named = [(name, F.col(quoted(name))) for name in rows.columns]
    return rows.select(*[v.alias(n, metadata=kinds[n]) if n in kinds else v for n, v in named])


def char_metadata(column: Column) -> dict[str, str]:
    """Return the metadata that mark a column of CHAR, or with CHAR within it, for Spark; empty for other columns."""
    kind = parse_type(column.type)
    return {_RAW_TYPE: str(kind)} if _has_char(kind) else {}


def _has_char(kind: DataType) -> bool:
    return kind.name == "char" or any(map(_has_char, kind.children))
