"""The initial rows of a new table, and the columns that the table gets from the rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from trinity.definition.columns import columns_of
from trinity.engine.appending.append import arrow_reader, given_rows, is_spark_frame
from trinity.errors import TrinityError
from trinity.spi import Column

_VOID: Final = re.compile("[<:,]void[>,]")


def first_rows(given: Any) -> Any:
    """Return the rows given for a new table, as a Spark DataFrame or an Arrow stream; None if columns are given.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a dict, which may mean one row or a type for each column; TYPE_MISMATCH for
            values of one column that have no type in common.
    """
    given = given_rows(given)
    if is_spark_frame(given):
        return given
    if _is_columns(given):
        return None
    if isinstance(given, Mapping):
        raise TrinityError(
            "INVALID_ARGUMENTS",
            "A table is not made of a dict: give [row] for a row, or [Column(name, type), ...] for columns.",
        )
    return arrow_reader(given)


def _is_columns(given: Any) -> bool:
    """Return True when columns are given: a schema, or a sequence of columns or of Spark's fields."""
    if hasattr(given, "__arrow_c_stream__"):
        return False
    if hasattr(given, "__arrow_c_schema__") or type(given).__module__.startswith("pyspark.sql"):
        return True
    fields = isinstance(given, list | tuple) and given
    return fields == [] or bool(fields and (isinstance(fields[0], Column) or _is_spark_field(fields[0])))


def _is_spark_field(given: Any) -> bool:
    return type(given).__name__ == "StructField" and type(given).__module__.startswith("pyspark.sql")


def columns_of_rows(rows: Any) -> list[Column]:
    """Return the columns of a new table with rows, all nullable but its key.

    Raises:
        TrinityError: TYPE_MISMATCH for a NULL without a type; as :func:`columns_of`.
    """
    found = [Column(c.name, c.type) for c in columns_of(rows.schema)]
    for column in found:
        if _VOID.search(column.type):
            raise TrinityError(
                "TYPE_MISMATCH",
                f"Column '{column.name}' has a NULL without a type within its {column.type}; cast it to one that has.",
            )
    return found
