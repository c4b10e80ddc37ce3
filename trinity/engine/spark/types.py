"""Trinity's types as Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from trinity.errors import TrinityError
from trinity.spi import Column, DataType, parse_type
from trinity.storage import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkType
    from pyspark.sql.types import StructType

__all__ = ["arrow_frame", "arrow_schema", "check_time_type", "spark_type"]


def spark_type(text: str) -> str:
    """Spark's text of a type in query results: CHAR and VARCHAR are strings there."""
    return str(_shown(parse_type(text)))


def _shown(kind: DataType) -> DataType:
    if kind.name in ("char", "varchar"):
        return DataType("string")
    if kind.name == "time":
        return DataType("time", (6,))
    children = tuple(map(_shown, kind.children))
    return DataType(kind.name, kind.arguments, children, kind.fields)


def arrow_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Arrow data as a DataFrame, in the types of :func:`~trinity.storage.spark_schema`."""
    return spark.createDataFrame(rows, spark_schema(rows.schema))


def arrow_schema(rows: StructType) -> pa.Schema:
    """Spark's schema as Arrow's. Raises TYPE_MISMATCH, naming the column, for a type that no table has."""
    from trinity.spark_names import PySparkException, StructType, to_arrow_schema

    found = []
    for field in rows.fields:
        kind = field.dataType.simpleString()
        message = f"Column '{field.name}': type {kind} has no counterpart in a table; cast it first."
        if _has_variant(field.dataType):
            raise TrinityError("TYPE_MISMATCH", message)
        try:
            found += to_arrow_schema(StructType([field]))
        except (PySparkException, ValueError) as error:  # of array() and map() the types are void
            raise TrinityError("TYPE_MISMATCH", message) from error
    return pa.schema(found)


def _has_variant(kind: SparkType) -> bool:
    """True for VARIANT at any depth: Arrow has it as a struct of bytes, which is not what its owner meant."""
    from trinity.spark_names import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, StructType):
        return any(_has_variant(field.dataType) for field in kind.fields)
    if isinstance(kind, MapType):
        return _has_variant(kind.keyType) or _has_variant(kind.valueType)
    return isinstance(kind, VariantType) or (isinstance(kind, ArrayType) and _has_variant(kind.elementType))


def check_time_type(columns: tuple[Column, ...], spark: SparkSession) -> None:
    """Refuses TIME columns where Spark's TIME type is off.

    Raises:
        TrinityError: NOT_SUPPORTED with the setting to change.
    """
    for column in columns:
        if _has_time(parse_type(column.type)) and spark.conf.get("spark.sql.timeType.enabled", "false") != "true":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Column '{column.name}' is of type time, which this Spark has switched off; "
                "set spark.sql.timeType.enabled=true, or use timestamp_ntz.",
            )


def _has_time(kind: DataType) -> bool:
    return kind.name == "time" or any(map(_has_time, kind.children))
