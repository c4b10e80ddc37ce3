"""Types of Trinity as types of Spark, and schemas of Spark as Arrow's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import Column, DataType, parse_type
from trinity.storage.spark_files import spark_schema
from trinity.syntax.collations import COLLATED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StringType, StructType


def spark_type(text: str) -> str:
    """Return Spark's text of a type in query results: CHAR and VARCHAR are strings there."""
    return str(_shown(parse_type(text)))


def _shown(kind: DataType) -> DataType:
    if kind.has_length:
        return DataType("string")
    if kind.name == "time":
        return DataType("time", (6,))
    children = tuple(map(_shown, kind.children))
    return DataType(kind.name, kind.arguments, children, kind.fields)


def arrow_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return Arrow data as a DataFrame, in the types of :func:`~trinity.storage.spark_files.spark_schema`."""
    return spark.createDataFrame(rows, spark_schema(rows.schema))


def arrow_schema(rows: StructType) -> pa.Schema:
    """Return Spark's schema as Arrow's; a field with a collation is marked by :data:`COLLATED`.

    Raises:
        TrinityError: TYPE_MISMATCH, naming the column, for a type that no table has.
    """
    from trinity.spark_names import PySparkException, StructType, VariantType, to_arrow_schema

    found = []
    for field in rows.fields:
        kind = field.dataType.simpleString()
        message = f"Column '{field.name}': type {kind} has no counterpart in a table; cast it first."
        parts = list(_parts(field.name, field.dataType))
        # as Arrow data a VARIANT would become a struct of bytes, which nobody would want in a table
        if any(isinstance(part, VariantType) for _, part in parts):
            raise TrinityError("TYPE_MISMATCH", message)
        collated = next((f"{path} {part.collation}" for path, part in parts if _is_collated(part)), None)
        try:
            (arrow,) = to_arrow_schema(StructType([field]))
            found.append(arrow if collated is None else arrow.with_metadata({COLLATED: collated}))
        except (PySparkException, ValueError) as error:  # such as the void within array() and map()
            raise TrinityError("TYPE_MISMATCH", message) from error
    return pa.schema(found)


def _parts(path: str, kind: SparkType) -> Iterator[tuple[str, SparkType]]:
    """Yield path and type of a column, and of each field, element, key and value within it."""
    from trinity.spark_names import ArrayType, MapType, StructType

    yield path, kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _parts(f"{path}.{field.name}", field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _parts(f"{path}.element", kind.elementType)
    elif isinstance(kind, MapType):
        yield from _parts(f"{path}.key", kind.keyType)
        yield from _parts(f"{path}.value", kind.valueType)


def _is_collated(kind: SparkType) -> TypeGuard[StringType]:
    from trinity.spark_names import StringType

    return isinstance(kind, StringType) and not kind.isUTF8BinaryCollation()


def check_time_type(columns: tuple[Column, ...], spark: SparkSession) -> None:
    """Refuse TIME columns where Spark's TIME type is off. Raises NOT_SUPPORTED with the setting to change."""
    for column in columns:
        if _has_time(parse_type(column.type)) and spark.conf.get("spark.sql.timeType.enabled", "false") != "true":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{column.name}' is of type time, which this Spark has switched off; "
                "set spark.sql.timeType.enabled=true, or use timestamp_ntz.",
            )


def _has_time(kind: DataType) -> bool:
    return kind.name == "time" or any(map(_has_time, kind.children))
