"""The changes of consecutive appends, found in one fold.

In a table that folds by column, the row versions of each touched key are joined with the moments at which they
exist. A fold by key and moment then gives the row at each moment. A table that keeps rows whole needs no fold: see
:mod:`trinity.engine.feed.spark.whole_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from trinity.engine.feed.shape import VERSION
from trinity.engine.feed.spark.appends import Appends
from trinity.engine.feed.spark.images import AFTER, BEFORE, differ, image
from trinity.engine.feed.spark.whole_rows import whole_row_pairs
from trinity.engine.feed.steps import FIRST, Step
from trinity.engine.reading.files import tiers
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.scan import log_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.hidden import DELETED, EXISTS_FROM
from trinity.merge.spec import merge_spec
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, SplitSource, arrival_order
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOMENT: Final = "_trinity_feed_moment"


def appended_pairs(spark: SparkSession, run: Sequence[Step], columns: Sequence[Column]) -> DataFrame:
    """Return the pairs of images of a run of consecutive appends."""
    splits, versions = run[-1].after, {file.path: step.version for step in run for file in step.added}
    appends = Appends(spark, splits, merge_spec(splits.definition), versions)
    found = _folded_pairs if appends.spec.by_column else whole_row_pairs
    return found(appends, columns).where(differ(columns))


def _folded_pairs(appends: Appends, columns: Sequence[Column]) -> DataFrame:
    """Return the pairs of images for a table that folds by column; the images of a pair may be equal."""
    definition = appends.splits.definition
    shown = to_user_columns(_states(appends), appends.splits, (_MOMENT, DELETED))
    key = ", ".join(map(quoted, definition.primary_key))
    was = f"lag({AFTER}) OVER (PARTITION BY {key} ORDER BY {_MOMENT}) AS {BEFORE}"
    shown = shown.selectExpr("*", f"IF({DELETED}, NULL, {image(columns, definition)}) AS {AFTER}")
    return shown.selectExpr(f"{_MOMENT} AS {VERSION}", was, AFTER).where(f"{VERSION} > {FIRST}")


def _states(appends: Appends) -> DataFrame:
    """Return one row per key and moment in storage form, with ``DELETED``."""
    splits, spec = appends.needed, appends.spec
    in_order = sorted(tiers(splits.files)[1], key=arrival_order)
    moments = _moments(appends)
    rows = without_null_keys(by_column.versions(appends.spark, splits, spec, ordered=True), splits, spec)
    rows = appends.of(rows).selectExpr("*", f"{appends.since(in_order)} AS {EXISTS_FROM}").alias("r")
    there = [F.col(f"m.{quoted(k)}") == F.col(f"r.{quoted(k)}") for k in spec.key]
    joined = rows.join(moments.alias("m"), [*there, F.col(EXISTS_FROM) <= F.col(f"m.{_MOMENT}")])
    at_moments = joined.selectExpr("r.*", f"m.{_MOMENT}").drop(EXISTS_FROM)
    # the fold uses the bounds of the version's files, which hold for these rows, too
    states = by_column.folded(at_moments, _with_moment_column(appends.splits), replace(spec, key=(*spec.key, _MOMENT)))
    # a key without a row at a moment is needed, too: it may have had one at the moment before
    return moments.join(states, [*spec.key, _MOMENT], "left").withColumn(DELETED, F.expr(f"NOT ({DELETED} <=> false)"))


def _moments(appends: Appends) -> DataFrame:
    """Return the moments of each touched key, once each: the key columns and :data:`_MOMENT`."""
    splits, spec = appends.splits, appends.spec
    key = [quoted(k) for k in spec.key]
    files = sorted(appends.files, key=arrival_order)
    rows = without_null_keys(log_scan(appends.spark, splits, spec, files), splits, spec)
    touched = rows.selectExpr(*key, f"{appends.since(files)} AS {_MOMENT}")
    return touched.selectExpr(*key, f"explode(array({FIRST}L, {_MOMENT})) AS {_MOMENT}").distinct()


def _with_moment_column(splits: SplitSource) -> SplitSource:
    """Return the version as if its table had the moment as a column."""
    definition = splits.definition
    return replace(
        splits,
        definition=definition.with_columns([*definition.columns, Column(_MOMENT, "bigint")]),
        storage=splits.storage.append(pa.field(_MOMENT, pa.int64())),
    )
