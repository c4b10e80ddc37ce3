"""A caller's function from the DataFrame of a batch to the DataFrame of the rows to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trinity.engine.appending.append import given_rows, is_spark_frame
from trinity.engine.target import Target
from trinity.errors import TrinityError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["transformed"]


def transformed(table: Target, rows: DataFrame, transform: Callable[[DataFrame], Any] | None) -> DataFrame:
    """Return the rows that ``transform`` makes of a batch; without one the batch itself.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a result that is no DataFrame of a batch.
        Exception: whatever ``transform`` raises.
    """
    if transform is None:
        return rows
    found = given_rows(transform(rows))
    if is_spark_frame(found) and not found.isStreaming:
        frame: DataFrame = found
        return frame
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"transform of the rows for '{table.name}' gives a {type(found).__name__}; it is to give the DataFrame of the "
        "rows to write.",
    )
