"""The changes of a plain table: added and removed rows, counted, since equal rows are indistinguishable (C5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.feed.shape import CHANGE_TYPE, VERSION
from trinity.engine.feed.spark.images import comparable_image, image, union
from trinity.engine.feed.steps import Step
from trinity.engine.reading.spark.scan import version_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, DataFile, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW: Final = "_trinity_row_image"
_COMPARED: Final = "_trinity_compared_row"
_COUNT: Final = "_trinity_count"


def counted_changes(spark: SparkSession, steps: Sequence[Step], columns: Sequence[Column], *, net: bool) -> DataFrame:
    """Return the rows of the feed for one step or more.

    A net feed cancels out a row that one version adds and another removes; a change then belongs to the last version
    that touched its row.
    """
    moved = union([_moved_rows(spark, step, columns) for step in steps])
    rows = moved.selectExpr(VERSION, _ROW, _COUNT, f"{comparable_image(columns, _ROW)} AS {_COMPARED}")
    counted = rows.groupBy(*([_COMPARED] if net else [_COMPARED, VERSION])).agg(
        *([F.max(VERSION).alias(VERSION)] if net else []), F.first(_ROW).alias(_ROW), F.sum(_COUNT).alias(_COUNT)
    )
    each = f"explode(array_repeat({_ROW}, CAST(abs({_COUNT}) AS INT))) AS {_ROW}"
    kind = f"IF({_COUNT} > 0, 'insert', 'delete') AS {CHANGE_TYPE}"
    found = counted.where(f"{_COUNT} <> 0").selectExpr(VERSION, kind, each)
    return found.selectExpr(*(f"{_ROW}.{quoted(c.name)}" for c in columns), CHANGE_TYPE, VERSION)


def _moved_rows(spark: SparkSession, step: Step, columns: Sequence[Column]) -> DataFrame:
    """Return the rows that a step added and removed, each with its count: 1 or -1."""

    def rows(splits: SplitSource, files: Sequence[DataFile], count: int) -> DataFrame:
        found = to_user_columns(version_scan(spark, files, splits), splits)
        return found.selectExpr(
            f"{step.version}L AS {VERSION}", f"{image(columns, splits.definition)} AS {_ROW}", f"{count} AS {_COUNT}"
        )

    before, after = step.before, step.after
    gone, come = (before.files, after.files) if step.native else (step.removed, step.added)
    return rows(after, come, 1).unionByName(rows(before, gone, -1))
