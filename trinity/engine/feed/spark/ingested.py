"""The rows of a commit as they came, with their row kinds, as ``changelog-producer`` = ``input`` shows them (C6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trinity.engine.feed.shape import CHANGE_TYPE, VERSION
from trinity.engine.feed.spark.images import feed_rows
from trinity.engine.feed.steps import Step
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.merge.spec import merge_spec
from trinity.merge.sql.fold import is_deleted
from trinity.spark_names import DataFrame
from trinity.spi import CARRIED, Column
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ingested_rows(spark: SparkSession, step: Step, columns: Sequence[Column]) -> DataFrame:
    """Return the rows that a commit added, in the columns of the feed."""
    splits = step.after
    spec = merge_spec(splits.definition)
    rows = plain_scan(spark, step.added, splits.storage)
    updated = f"{CARRIED} LIKE '%1%'" if splits.definition.keyed and CARRIED in rows.columns else "false"
    kind = f"rtrim({quoted(spec.row_kind)})" if spec.row_kind else "''"
    kind = (
        f"CASE WHEN {kind} = '-U' THEN 'update_preimage' WHEN {is_deleted(spec, rows)} THEN 'delete' "
        f"WHEN {kind} = '+U' OR {updated} THEN 'update_postimage' ELSE 'insert' END"
    )
    shown = to_user_columns(rows, splits, (f"{kind} AS {CHANGE_TYPE}", f"{step.version}L AS {VERSION}"))
    return feed_rows(shown, columns, splits.definition.visible)
