"""CHAR and VARCHAR in Spark, where both are STRING: what is stored, and what Spark pads as it compares (K2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from trinity.merge.quoting import quoted
from trinity.spi import Column, DataType, parse_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

__all__ = ["as_stored", "with_char"]

_RAW_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata of a column in which Spark keeps the type that it shows as STRING."""


def as_stored(value: SparkColumn, column: Column) -> SparkColumn:
    """Return text as its column stores it: CHAR padded, CHAR and VARCHAR without the blanks beyond their length (K2).

    Text that is too long stays as it is, for the sink to refuse.
    """
    from trinity.spark_names import F

    kind = parse_type(column.type)
    if kind.name not in ("char", "varchar"):
        return value
    length = kind.arguments[0]
    fitting = F.rpad(value, length, " ") if kind.name == "char" else F.substring(value, 1, length)
    return F.when(F.length(F.rtrim(value)) <= length, fitting).otherwise(value)


def with_char(rows: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """Return rows whose CHAR columns Spark knows as such: it pads what is compared with them (K2).

    Args:
        rows: their CHAR columns are text, padded.
        columns: the table's; those that the rows lack do not matter.
    """
    from trinity.spark_names import F

    kinds = {c.name: kind for c in columns if _has_char(kind := parse_type(c.type))}
    if kinds.keys().isdisjoint(rows.columns):
        return rows
    named = [(name, F.col(quoted(name))) for name in rows.columns]
    return rows.select(*[v.alias(n, metadata={_RAW_TYPE: str(kinds[n])}) if n in kinds else v for n, v in named])


def _has_char(kind: DataType) -> bool:
    return kind.name == "char" or any(map(_has_char, kind.children))
