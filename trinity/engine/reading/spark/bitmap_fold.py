"""The one fold that Spark has nothing for: unions of Roaring bitmaps, in Python, an Arrow batch of keys at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trinity.merge.bitmap_unions import BITMAP_UNIONS, united_bitmaps
from trinity.merge.spec import MergeSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_bitmap_unions"]


def register_bitmap_unions(spark: SparkSession, spec: MergeSpec) -> None:
    """Make the unions that a table's functions need known to Spark."""
    from pyspark.sql.pandas.functions import arrow_udf

    make: Any = arrow_udf  # its type hints know no function of arrays
    for name in {f.name for f in spec.functions.values()} & set(BITMAP_UNIONS):
        spark.udf.register(BITMAP_UNIONS[name], make(_union(name), "binary"))


def _union(name: str) -> Callable[[Any], Any]:
    def union(lists: pa.Array) -> pa.Array:
        return united_bitmaps(name, lists)

    union.__annotations__ = {"lists": pa.Array, "return": pa.Array}  # how arrow_udf tells one array to another
    return union
