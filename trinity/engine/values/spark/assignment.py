"""Assignment of expressions to columns in a row-changing statement (M6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.values.store_assignment import (
    narrows,
    placed,
    refusal_around,
    refuse_other_than_boolean,
    refuse_unassignable,
    too_large,
)
from trinity.engine.writing.casts import converts
from trinity.engine.writing.ingest import REFUSAL
from trinity.errors import TrinityError
from trinity.spark.types import spark_type
from trinity.spark_names import (
    ArrayType,
    Column,
    DateType,
    F,
    MapType,
    NullType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from trinity.spark_names import DataType as SparkType
from trinity.spi import Column as TableColumn
from trinity.spi import DataType, parse_given_type, parse_type
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VOID: Final = re.compile(r"\bvoid\b(?!:)")


def types_of(rows: DataFrame, expressions: Sequence[Column]) -> list[SparkType]:
    """Return the types of expressions over rows; nothing is run."""
    found = rows.select(*[e.alias(f"_{i}") for i, e in enumerate(expressions)])
    return [field.dataType for field in found.schema.fields]


def check_boolean(kind: SparkType, where: str) -> None:
    """Refuse a condition that is no BOOLEAN (TYPE_MISMATCH); ``where`` names it."""
    refuse_other_than_boolean(kind.simpleString(), where)


def assigned(
    value: Column, kind: SparkType, column: TableColumn, table: str, where: str
) -> tuple[Column, Column | None]:
    """Return a value in the column's type, and its error.

    The error is a STRING, JSON of NUMERIC_VALUE_OUT_OF_RANGE naming value and column, or NULL where the value fits. It
    is None where all values of the type fit. Whether one fits is decided while the statement runs, whatever Spark's
    ANSI setting is. Fractions are rounded (DECIMAL) or cut off (integers), as by Spark's store assignment.

    Args:
        value: the expression.
        kind: its type.
        column: the column.
        table: full name of the table, for messages.
        where: the clause, for messages.

    Raises:
        TrinityError: TYPE_MISMATCH when values of the type may not be assigned to the column.
    """
    target = spark_type(column.type)
    if isinstance(kind, NullType) or kind.simpleString() == target:
        return value.cast(target), None
    source, wanted = _parsed(kind, where), parse_type(column.type)
    if not converts(source, wanted):
        check_assignable(kind, column, table, where)
    if not narrows(source, wanted):
        return value.cast(target), None
    fits = value.try_cast(target)
    return fits, F.when(value.isNotNull() & fits.isNull(), _refusal(too_large(column, table, where), value))


def check_assignable(kind: SparkType, column: TableColumn, table: str, where: str) -> None:
    """Refuse an expression whose values may not be assigned to a column (TYPE_MISMATCH); ``where`` names it."""
    refuse_unassignable(_parsed(kind, where), column, table, where)


def placed_rows(rows: DataFrame, columns: Sequence[TableColumn], where: str) -> DataFrame:
    """Name the unnamed fields of structs in rows as the columns name them."""
    values = []
    for field, column in zip(rows.schema.fields, columns, strict=True):
        value = F.col(quoted(field.name))
        if isinstance(field.dataType, StructType | ArrayType | MapType):
            given = _parsed(field.dataType, where)
            named = placed(given, parse_type(column.type))
            value = value.cast(str(named)).alias(field.name) if named != given else value
        values.append(value)
    return rows.select(*values)


def inserted_rows(rows: DataFrame, columns: Sequence[TableColumn], table: str) -> DataFrame:
    """Return the rows of an INSERT with their numbers and times in the columns' types.

    If a conversion may fail, the rows have :data:`~trinity.engine.writing.ingest.REFUSAL`. Ingest checks other values.

    Args:
        rows: a column for each of ``columns``, under its name.
        columns: the columns that are filled.
        table: full name of the table, for messages.
    """
    values, refusals = [], []
    for field, column in zip(rows.schema.fields, columns, strict=True):
        value, refusal = F.col(quoted(field.name)), None
        if _VOID.search(field.dataType.simpleString()):  # a NULL without type, such as within array()
            check_assignable(field.dataType, column, table, "INSERT")
            value = value.cast(spark_type(column.type))
        elif _is_primitive(field.dataType) and converts(_parsed(field.dataType, "INSERT"), parse_type(column.type)):
            value, refusal = assigned(value, field.dataType, column, table, "INSERT")
        values.append(value.alias(field.name))
        refusals += [refusal] if refusal is not None else []
    if refusals:
        values.append(F.coalesce(*refusals).alias(REFUSAL))
    return rows.select(*values)


def _is_primitive(kind: SparkType) -> bool:
    return isinstance(kind, NumericType | DateType | TimestampType | TimestampNTZType)


def _refusal(message: str, value: Column) -> Column:
    """Return the JSON of an error with a message that ends with the value."""
    head, tail = refusal_around(message)
    return F.concat(F.lit(head), value.cast("string"), F.lit(tail))


def _parsed(kind: SparkType, where: str) -> DataType:
    try:
        return parse_given_type(kind.simpleString())
    except TrinityError as error:
        raise TrinityError("TYPE_MISMATCH", f"{where}: {error.message}") from error
