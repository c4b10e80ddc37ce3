"""Keys to delete, given as a DataFrame of Spark."""

from __future__ import annotations

from collections.abc import Sequence

from trinity.engine.changing.spark.source import in_type
from trinity.engine.spark.texts import as_stored
from trinity.engine.spark.types import spark_type
from trinity.engine.values.assignment import check_assignable
from trinity.spark_names import Column, DataFrame
from trinity.spi import Column as TableColumn
from trinity.syntax.quoting import quoted


def key_frame(frame: DataFrame, columns: Sequence[TableColumn], table: str) -> DataFrame:
    """Return the distinct keys of a frame as they are stored, under the names of the key columns.

    Args:
        frame: has a column for each of ``columns``, in any case.
        columns: the key columns.
        table: full name of the table, for messages.

    Raises:
        TrinityError: TYPE_MISMATCH for keys of a type that cannot be assigned.
    """
    given = {c.lower(): c for c in frame.columns}
    return frame.select(*[_key_column(frame, given[c.name.lower()], c, table) for c in columns]).distinct()


def _key_column(frame: DataFrame, name: str, column: TableColumn, table: str) -> Column:
    """Return keys as they are stored (K2); NULL for those that the column's type cannot hold, and no row can have."""
    given, kind = frame[quoted(name)], frame.schema[name].dataType
    check_assignable(kind, column, table, "The keys to delete")
    return as_stored(in_type(given, kind.simpleString(), spark_type(column.type)), column).alias(column.name)
