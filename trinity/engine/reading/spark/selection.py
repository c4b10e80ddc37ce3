"""Rows in storage form as users see them."""

from __future__ import annotations

from collections.abc import Sequence

from trinity.merge.sql.rows import AnyRows, SqlRows
from trinity.spark.texts import with_char
from trinity.spark.types import spark_type
from trinity.spi import Column, SplitSource, parse_type
from trinity.storage.spark_files import spark_schema
from trinity.syntax.quoting import quoted


def to_user_columns(rows: AnyRows, splits: SplitSource, further: Sequence[str] = ()) -> AnyRows:
    """Convert rows in storage form to what users see: visible columns, in their types; and ``further`` expressions."""
    stored = spark_schema(splits.storage)
    columns = [
        _user_column(field.name, field.dataType.simpleString(), column)
        for column, field in zip(splits.definition.columns, stored.fields, strict=True)
        if not column.hidden
    ]
    shown = rows.selectExpr(*columns, *further)
    return shown if isinstance(shown, SqlRows) else with_char(shown, splits.definition.visible)


def _user_column(stored: str, stored_type: str, column: Column) -> str:
    kind = spark_type(column.type)
    value = quoted(stored)
    if kind != stored_type and parse_type(column.type).name == "time" and stored_type == "bigint":
        value = _time_of_micros(value)
    elif kind != stored_type:
        value = f"CAST({value} AS {kind})"
    return f"{value} AS {quoted(column.name)}"


def _time_of_micros(micros: str) -> str:
    """Return Spark SQL for the TIME of a BIGINT of microseconds, for which Spark has no cast."""
    second = f"CAST(CAST({micros} % 60000000 AS DECIMAL(8,0)) / 1000000 AS DECIMAL(8,6))"
    minute = f"CAST({micros} DIV 60000000 % 60 AS INT)"
    return f"make_time(CAST({micros} DIV 3600000000 AS INT), {minute}, {second})"
