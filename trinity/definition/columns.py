"""Columns of a table, from Columns, an Arrow schema or a Spark schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import Column, type_text
from trinity.syntax.collations import check_not_collated

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

Columns: TypeAlias = Union[Sequence[Column], pa.Schema, "StructType"]


def columns_of(given: Columns, *, collated: bool = False) -> list[Column]:
    """Return the columns. The fields of a schema keep NOT NULL, and those of a Spark schema also their comments.

    Args:
        given: columns or a schema.
        collated: True to accept texts with a collation, if no table is made of the columns.

    Raises:
        TrinityError: TYPE_MISMATCH for a type without a counterpart in a table, NOT_SUPPORTED for a collation.
    """
    if hasattr(given, "__arrow_c_schema__"):  # a schema of pyarrow, Polars, ...
        return [_of_arrow(field) for field in pa.schema(given)]
    return [column if isinstance(column, Column) else _of_spark(column, collated) for column in given]


def _of_arrow(field: pa.Field) -> Column:
    try:
        kind = type_text(field.type)
    except TrinityError as error:
        raise TrinityError(error.code, f"Column '{field.name}': {error.message}") from error
    if kind == "void":
        message = f"Column '{field.name}' is NULL without a type; give it one, as by CAST(NULL AS ...)."
        raise TrinityError("TYPE_MISMATCH", message)
    return Column(field.name, kind, field.nullable)


def _of_spark(field: StructField, collated: bool) -> Column:
    from trinity.spark.types import arrow_schema
    from trinity.spark_names import CharType, StructType, VarcharType

    comment = field.metadata.get("comment") if field.metadata else None
    if isinstance(field.dataType, CharType | VarcharType):
        return Column(field.name, field.dataType.simpleString(), field.nullable, comment=comment)
    (arrow,) = arrow_schema(StructType([field]))
    if not collated:
        check_not_collated(arrow)
    found = _of_arrow(arrow)
    return Column(found.name, found.type, found.nullable, comment=comment)
