"""Small local results as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trinity.merge.literal import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["local_frame"]


def local_frame(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """A DataFrame of a few rows that the driver made.

    Args:
        spark: the session.
        columns: name -> type text.
        rows: one tuple of Python values per row.
    """
    return spark.createDataFrame(list(rows), ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items()))
