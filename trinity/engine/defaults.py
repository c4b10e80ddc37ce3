"""Values of DEFAULT clauses, taken once per statement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from trinity.errors import TrinityError
from trinity.spi import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["default_values"]


def default_values(columns: Iterable[Column], spark: Callable[[], SparkSession]) -> dict[str, Any]:
    """Column name -> value of its DEFAULT, for the columns that have one.

    Plain literals and the current time are known without Spark; Spark evaluates any other constant expression.

    Raises:
        TrinityError: SYNTAX_ERROR or INVALID_ARGUMENTS when a default cannot be evaluated.
    """
    return {c.name: _value(c, spark) for c in columns if c.default is not None}


def _value(column: Column, spark: Callable[[], SparkSession]) -> Any:
    text = column.default or "NULL"
    tree = sqlglot.parse_one(text, dialect="spark")
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean):
        return tree.this
    if isinstance(tree, exp.Literal) and tree.is_string and column.type.startswith(("string", "char", "varchar")):
        return tree.this
    if tree.is_int and column.type in ("tinyint", "smallint", "int", "bigint", "float", "double"):
        return int(tree.sql())
    if isinstance(tree, exp.CurrentTimestamp) and column.type == "timestamp":
        return dt.datetime.now(dt.timezone.utc)
    from pyspark.errors import PySparkException

    try:
        kind = column.type if not column.type.startswith(("char", "varchar")) else "string"
        return spark().sql(f"SELECT CAST({text} AS {kind}) AS v").toArrow().column("v")[0].as_py()
    except PySparkException as error:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"DEFAULT {text} of column '{column.name}' cannot be evaluated: {error}."
        ) from error
