"""The changes of a step, found by comparing two merged reads: each key's row before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinity.engine.feed.shape import VERSION
from trinity.engine.feed.spark.images import AFTER, BEFORE, differ, image
from trinity.engine.feed.steps import Step
from trinity.engine.reading.spark.merged_read import merged_read
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compared_pairs(spark: SparkSession, step: Step, columns: Sequence[Column], key: Sequence[str]) -> DataFrame:
    """Return the pairs of images of a step."""

    def images(splits: SplitSource, name: str) -> DataFrame:
        return merged_read(spark, splits).selectExpr(f"{image(columns, splits.definition)} AS {name}")

    before, after = images(step.before, BEFORE), images(step.after, AFTER)
    same = [F.col(f"{BEFORE}.{quoted(name)}") == F.col(f"{AFTER}.{quoted(name)}") for name in key]
    joined = before.join(after, same, "full_outer")
    return joined.selectExpr(f"{step.version}L AS {VERSION}", BEFORE, AFTER).where(differ(columns))
