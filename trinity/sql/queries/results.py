"""The rows that statements return which are no queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, Union

import pyarrow as pa

from trinity.spark.frames import small_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = Union["DataFrame", pa.Table, Callable[[], pa.RecordBatchReader]]
"""The rows of a statement: a DataFrame of Spark, Arrow data, or a function that computes them when they are needed."""

_COUNTS: Final = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def counts(*, updated: int = 0, deleted: int = 0, inserted: int = 0) -> pa.Table:
    """Return one row of counts, all BIGINT, none NULL (M5)."""
    row = (updated + deleted + inserted, updated, deleted, inserted)
    return small_table(dict.fromkeys(_COUNTS, "bigint"), [row])


def no_rows() -> pa.Table:
    """Return no rows and no columns, as Spark does for DDL."""
    return pa.table({})
