"""The changes of appends that came one after the other, found in one fold.

A moment of a key is a version in which the log got a row of it, or the one before the first of these. The row versions
of the keys that were touched meet the moments that they were there at; folded by key and moment they are the rows
before and after each version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trinity.engine.appending.run_sinks import DELETED
from trinity.engine.feed.images import AFTER, BEFORE, VERSION, differ, image
from trinity.engine.feed.steps import Step
from trinity.engine.reading import fold_by_column as by_column
from trinity.engine.reading.arrival_order import POSITION_BITS
from trinity.engine.reading.merged_read import logical, met_with_base, with_key
from trinity.engine.reading.scan import log_scan, plain_scan, tiers
from trinity.merge.fold import ARRIVAL
from trinity.merge.parse import merge_spec
from trinity.merge.quoting import quoted
from trinity.merge.spec import MergeSpec
from trinity.spi import Column, DataFile, SplitSource, arrival_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["appended_pairs"]

_MOMENT: Final = "_trinity_version"
_BEFORE: Final = -1
"""The moment before the first append."""
_SINCE: Final = "_trinity_at"
"""Moment from which a row version is there."""


def appended_pairs(spark: SparkSession, run: Sequence[Step], columns: Sequence[Column]) -> DataFrame:
    """The pairs of images of a run of appends.

    Args:
        spark: the session.
        run: steps of which each follows the one before it.
        columns: the columns of the feed.
    """
    splits, versions = run[-1].after, {file.path: step.version for step in run for file in step.added}
    spec = merge_spec(splits.definition)
    rows = _states(spark, splits, spec, versions)
    definition = splits.definition
    shown = logical(rows, splits, (_MOMENT, DELETED))
    key = ", ".join(map(quoted, definition.primary_key))
    was = f"lag({AFTER}) OVER (PARTITION BY {key} ORDER BY {_MOMENT}) AS {BEFORE}"
    shown = shown.selectExpr("*", f"IF({DELETED}, NULL, {image(columns, definition)}) AS {AFTER}")
    pairs = shown.selectExpr(f"{_MOMENT} AS {VERSION}", was, AFTER)
    return pairs.where(f"{VERSION} > {_BEFORE} AND {differ(columns)}")


def _states(spark: SparkSession, splits: SplitSource, spec: MergeSpec, versions: dict[str, int]) -> DataFrame:
    """One row for each key and moment in storage form, with ``DELETED``; none for a key that is not there yet."""
    base, log = tiers(splits.files)
    in_order = sorted(log, key=arrival_order)
    moments = _moments(spark, splits, spec, [file for file in in_order if file.path in versions], versions)
    since = _since(in_order, versions)
    dated, dated_spec = _dated(splits), replace(spec, key=(*spec.key, _MOMENT))

    def at_moments(rows: DataFrame, since: str) -> DataFrame:
        there = [F.col(f"m.{quoted(k)}") == F.col(f"r.{quoted(k)}") for k in spec.key]
        rows = rows.selectExpr("*", f"{since} AS {_SINCE}").alias("r")
        joined = rows.join(moments.alias("m"), [*there, F.col(_SINCE) <= F.col(f"m.{_MOMENT}")])
        return joined.selectExpr("r.*", f"m.{_MOMENT}").drop(_SINCE)

    if spec.by_column:
        rows = with_key(by_column.versions(spark, splits, spec, ordered=True), splits, spec)
        states = by_column.folded(at_moments(rows, since), dated, dated_spec)
        # a key of which nothing is left has no row there, and yet it had one the moment before
        return moments.join(states, [*spec.key, _MOMENT], "left").withColumn(
            DELETED, F.expr(f"NOT ({DELETED} <=> false)")
        )
    rows = with_key(log_scan(spark, splits, spec, log, splits.sidecar), splits, spec)
    earlier = at_moments(plain_scan(spark, base, splits.storage), f"{_BEFORE}L") if base else None
    return met_with_base(earlier, at_moments(rows, since), dated_spec, dated.storage)


def _moments(
    spark: SparkSession, splits: SplitSource, spec: MergeSpec, files: Sequence[DataFile], versions: dict[str, int]
) -> DataFrame:
    """The key columns and :data:`_MOMENT`: each once."""
    key = [quoted(k) for k in spec.key]
    rows = with_key(log_scan(spark, splits, spec, files), splits, spec)
    touched = rows.selectExpr(*key, f"{_since(files, versions)} AS {_MOMENT}")
    return touched.selectExpr(*key, f"explode(array({_BEFORE}L, {_MOMENT})) AS {_MOMENT}").distinct()


def _since(files: Sequence[DataFile], versions: dict[str, int]) -> str:
    """Spark SQL: the moment from which a row of some files is there, by its arrival."""
    moments = ", ".join(f"{versions.get(file.path, _BEFORE)}L" for file in files)
    ordinal = f"CAST(shiftright({ARRIVAL}, {POSITION_BITS}) AS INT)"
    return f"IF({ARRIVAL} < 0, {_BEFORE}L, element_at(array({moments}), {ordinal} + 1))"


def _dated(splits: SplitSource) -> SplitSource:
    """The version as if the moment were a column of it."""
    definition = splits.definition
    return replace(
        splits,
        definition=definition.with_columns([*definition.columns, Column(_MOMENT, "bigint")]),
        storage=splits.storage.append(pa.field(_MOMENT, pa.int64())),
    )
