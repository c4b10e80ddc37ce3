"""Small sets of rows that the driver has in memory, as Arrow data and as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.spark.texts import with_char
from trinity.spark.types import arrow_frame
from trinity.spi import Column, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def local_frame(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Return a DataFrame of a few rows; the arguments are those of :func:`small_table`.

    The rows reach Spark as Arrow data. From a list of Python rows pyspark would make an RDD, which Python workers turn
    into rows at each use.
    """
    found = arrow_frame(spark, small_table(columns, rows))
    return with_char(found, [Column(name, kind) for name, kind in columns.items()])


def small_table(columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return a few rows as Arrow data. ``columns`` maps names to types; the value of a MAP is a list of its items."""
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
