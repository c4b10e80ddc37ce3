"""Small local results as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.engine.spark.texts import with_char
from trinity.engine.spark.types import arrow_frame
from trinity.spi import Column, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["local_frame"]


def local_frame(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Return a DataFrame of a few rows of the driver's.

    They reach Spark as Arrow data. From a list of Python rows pyspark would make an RDD, which Python workers turn into
    rows at each use.

    Args:
        spark: the session.
        columns: name -> type, as that of a column.
        rows: one tuple of Python values per row; a map as its items.
    """
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    found = arrow_frame(spark, pa.Table.from_arrays(arrays, schema=schema))
    return with_char(found, [Column(name, kind) for name, kind in columns.items()])
