"""Changes that are computed from the table's own files: rows of the feed, or the pairs of images they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trinity.engine.feed.compaction_intervals import CompactionInterval, compaction_intervals
from trinity.engine.feed.interval import Interval
from trinity.engine.feed.shape import VERSION, FeedMode
from trinity.engine.feed.spark.compared import compared_pairs
from trinity.engine.feed.spark.counted import counted_changes
from trinity.engine.feed.spark.images import changed_rows, net_pairs, union
from trinity.engine.feed.spark.ingested import ingested_rows
from trinity.engine.feed.spark.moments import appended_pairs
from trinity.engine.feed.steps import Step, runs, steps, steps_of
from trinity.merge.options import ChangelogProducer
from trinity.spark_names import DataFrame, F
from trinity.spi import TableDefinition
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Changes:
    """Changes, not run yet: pairs of images that differ, with their version, and rows with all that a feed can show."""

    pairs: list[DataFrame] = field(default_factory=list)
    rows: list[DataFrame] = field(default_factory=list)


def computed_changes(
    target: Target, parts: Sequence[Interval], definition: TableDefinition, producer: ChangelogProducer
) -> Changes:
    """Return the changes of a keyed table.

    Raises:
        TrinityError: see :func:`~trinity.engine.feed.steps.steps` and
            :func:`~trinity.engine.feed.compaction_intervals.compaction_intervals`.
    """
    spark = target.session.spark
    if producer is ChangelogProducer.FULL_COMPACTION:
        return Changes(
            [pairs for found in compaction_intervals(target, parts) for pairs in _net_of(target, found, definition)]
        )
    all_steps = steps_of(target, parts)
    if producer is not ChangelogProducer.INPUT:
        return Changes(_pairs(spark, all_steps, definition))
    came = [ingested_rows(spark, step, definition.visible) for step in all_steps if step.ingests]
    return Changes(_pairs(spark, [step for step in all_steps if not step.ingests], definition), came)


def all_rows(
    target: Target, parts: Sequence[Interval], definition: TableDefinition, producer: ChangelogProducer
) -> DataFrame | None:
    """Return the rows of a table's complete feed; None without any.

    Arguments and errors as for :func:`computed_changes`.
    """
    spark = target.session.spark
    if not target.definition.keyed:
        found = steps_of(target, parts)
        return counted_changes(spark, found, definition.visible, net=False) if found else None
    changes = computed_changes(target, parts, definition, producer)
    shown = [changed_rows(pairs, definition.visible, FeedMode()) for pairs in changes.pairs]
    return union([*shown, *changes.rows]) if shown or changes.rows else None


def _net_of(target: Target, found: CompactionInterval, definition: TableDefinition) -> list[DataFrame]:
    """Return the pairs of an interval, in one DataFrame or none, as changes of the version that ended it."""
    steps_within = steps(target, found.before, found.entries)
    if not steps_within:
        return []
    pairs = union(_pairs(target.session.spark, steps_within, definition))
    pairs = net_pairs(pairs, definition.visible, definition.primary_key)
    return [pairs.withColumn(VERSION, F.lit(found.version).cast("bigint"))]


def _pairs(spark: SparkSession, found: Sequence[Step], definition: TableDefinition) -> list[DataFrame]:
    """Return the pairs of images of the steps, with a DataFrame for each run of steps (see :func:`runs`)."""
    columns, key = definition.visible, definition.primary_key
    return [
        appended_pairs(spark, run, columns) if run[0].appends else compared_pairs(spark, run[0], columns, key)
        for run in runs(found)
    ]
