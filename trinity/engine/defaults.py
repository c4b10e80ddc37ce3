"""DEFAULT clauses: checked as a table is defined, and their values, taken once per statement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp

from trinity.depth import room
from trinity.engine.settings import pinned
from trinity.errors import TrinityError
from trinity.spi import Column, TableDefinition, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_defaults", "default_values"]

_OTHER: Final = object()


def check_defaults(definition: TableDefinition, spark: Callable[[], SparkSession]) -> None:
    """Refuses a DEFAULT that the column would not take as a value of an INSERT (M6).

    Raises:
        TrinityError: TYPE_MISMATCH, NUMERIC_VALUE_OUT_OF_RANGE; what Spark says of an expression that it cannot answer.
    """
    given = [c for c in definition.visible if c.default is not None and _plain_value(c) is _OTHER]
    if not given:
        return
    from pyspark.sql import functions as F

    from trinity.engine.assign import assigned
    from trinity.sql.errors import spark_errors

    with spark_errors(), pinned(spark()):
        row = spark().sql("SELECT " + ", ".join(f"({c.default}) AS _{n}" for n, c in enumerate(given)))
        refusals = [
            assigned(F.col(field.name), field.dataType, column, definition.full_name, f"DEFAULT {column.default}")[1]
            for field, column in zip(row.schema.fields, given, strict=True)
        ]
        narrowed = [refusal for refusal in refusals if refusal is not None]
        refused = row.select(F.coalesce(*narrowed)).collect()[0][0] if narrowed else None
    if refused is not None:
        raise TrinityError.from_json(refused)


def default_values(columns: Iterable[Column], spark: Callable[[], SparkSession]) -> dict[str, Any]:
    """Column name -> value of its DEFAULT, for the columns that have one.

    Plain literals and the current time are known without Spark; Spark evaluates any other constant expression.

    Raises:
        TrinityError: INVALID_ARGUMENTS when a default cannot be evaluated.
    """
    return {c.name: _value(c, spark) for c in columns if c.default is not None}


def _value(column: Column, spark: Callable[[], SparkSession]) -> Any:
    if (known := _plain_value(column)) is not _OTHER:
        return known
    from pyspark.errors import PySparkException

    try:
        kind = column.type if not column.type.startswith(("char", "varchar")) else "string"
        with pinned(spark()):
            return spark().sql(f"SELECT CAST({column.default} AS {kind}) AS v").toArrow().column("v")[0].as_py()
    except (PySparkException, OverflowError, ValueError) as error:  # the last two of a year that Python lacks
        raise TrinityError(
            "INVALID_ARGUMENTS", f"DEFAULT {column.default} of column '{column.name}' cannot be evaluated: {error}."
        ) from error


@room()
def _plain_value(column: Column) -> Any:
    """The value of a literal of the column's own type, or of the current time; _OTHER for any other expression."""
    tree = sqlglot.parse_one(column.default or "NULL", dialect="spark")
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean) and column.type == "boolean":
        return tree.this
    if isinstance(tree, exp.Literal) and tree.is_string and column.type.startswith(("string", "char", "varchar")):
        return tree.this
    kind = arrow_type(column.type)
    if tree.is_int and pa.types.is_floating(kind):
        return int(tree.sql(comments=False))
    if tree.is_int and pa.types.is_integer(kind):
        value, bound = int(tree.sql(comments=False)), 1 << kind.bit_width - 1
        return value if -bound <= value < bound else _OTHER
    if isinstance(tree, exp.CurrentTimestamp) and column.type == "timestamp":
        return dt.datetime.now(dt.timezone.utc)
    return _OTHER
