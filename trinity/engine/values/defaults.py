"""DEFAULT clauses. They are checked when a table is defined, and before use; values are computed once per statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from trinity.clock import now
from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.engine.values.local.check_constraints import constant_of
from trinity.errors import TrinityError
from trinity.spark.expressions import check_constant
from trinity.spark.settings import pinned
from trinity.spark.types import spark_type
from trinity.spi import Column, TableDefinition, parse_type
from trinity.syntax.parse import expression_or_none

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHER: Final = object()


def check_defaults(definition: TableDefinition, spark: Callable[[], SparkSession]) -> None:
    """Refuse a DEFAULT that is no constant (N2), or that an INSERT could not store in the column (M6).

    Raises:
        TrinityError: NOT_SUPPORTED; TYPE_MISMATCH, NUMERIC_VALUE_OUT_OF_RANGE; Spark's error for an expression that
            Spark cannot evaluate.
    """
    given = [c for c in definition.visible if c.default is not None and _known_value(c) is _OTHER]
    if not given:
        return
    from trinity.calls import spark_errors
    from trinity.engine.values.spark.assignment import assigned, placed_rows
    from trinity.spark_names import F

    with spark_errors(), pinned(spark()):
        values = [_checked_text(column, spark) for column in given]
        row = spark().sql("SELECT " + ", ".join(f"{value} AS _{n}" for n, value in enumerate(values)))
        row = placed_rows(row, given, "DEFAULT")
        refusals = [
            assigned(F.col(field.name), field.dataType, column, definition.full_name, f"DEFAULT {column.default}")[1]
            for field, column in zip(row.schema.fields, given, strict=True)
        ]
        narrowed = [refusal for refusal in refusals if refusal is not None]
        refused = row.select(F.coalesce(*narrowed)).collect()[0][0] if narrowed else None
    if refused is not None:
        raise TrinityError.from_json(refused)


def is_plain(column: Column) -> bool:
    """Return True when the value of a column's DEFAULT, if it has one, is known without Spark."""
    return column.default is None or _known_value(column) is not _OTHER


def default_text(column: Column, spark: Callable[[], SparkSession]) -> str:
    """Return the DEFAULT of a column as Spark SQL; NULL without a DEFAULT. It is checked, as other engines may set it.

    Raises:
        TrinityError: NOT_SUPPORTED for a DEFAULT that is no constant (N2); Spark's errors.
    """
    text = "NULL" if column.default is None else _checked_text(column, spark)
    nested = column.default is not None and parse_type(column.type).nested
    return f"CAST({text} AS {spark_type(column.type)})" if nested else text  # it names the fields of struct(1, 'a')


def _checked_text(column: Column, spark: Callable[[], SparkSession]) -> str:
    assert column.default is not None
    if _known_value(column) is _OTHER:
        with pinned(spark()):
            check_constant(spark(), column.default, f"DEFAULT of column '{column.name}'")
    return f"(\n{column.default}\n)"  # a line of its own, since the text may end in a comment


def default_values(columns: Iterable[Column], spark: Callable[[], SparkSession]) -> dict[str, Any]:
    """Return column name -> value of its DEFAULT, for the columns that have one.

    Spark evaluates a DEFAULT that :mod:`trinity.engine.expressions` does not.

    Raises:
        TrinityError: INVALID_ARGUMENTS when a DEFAULT cannot be evaluated; as :func:`default_text`.
    """
    return {c.name: _value(c, spark) for c in columns if c.default is not None}


def _value(column: Column, spark: Callable[[], SparkSession]) -> Any:
    if (known := _known_value(column)) is not _OTHER:
        return known
    from trinity.spark_names import PySparkException

    try:
        kind = "string" if parse_type(column.type).has_length else column.type
        with pinned(spark()):
            row = spark().sql(f"SELECT CAST({default_text(column, spark)} AS {kind}) AS v")
            return row.toArrow().column("v")[0].as_py()
    except (PySparkException, OverflowError, ValueError) as error:  # Python lacks the year of a date
        raise TrinityError(
            "INVALID_ARGUMENTS", f"DEFAULT {column.default} of column '{column.name}' cannot be evaluated: {error}."
        ) from error


@deep_recursion()
def _known_value(column: Column) -> Any:
    """Return the value of a DEFAULT that this process evaluates; ``_OTHER`` for a DEFAULT that it leaves to Spark."""
    tree = expression_or_none(column.default or "NULL")
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Literal) and tree.is_string and parse_type(column.type).is_text:
        return tree.this
    if isinstance(tree, exp.CurrentTimestamp) and column.type == "timestamp":
        return now()
    found = constant_of(column)
    try:
        return _OTHER if isinstance(found, NotLocal) else found.value
    except (OverflowError, ValueError):  # a year that Python lacks
        return _OTHER
