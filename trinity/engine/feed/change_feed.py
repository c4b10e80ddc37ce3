"""The change feed of a table: its rows before and after every commit of a part of its history (C1-C5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trinity.engine.feed.compared import compared_pairs
from trinity.engine.feed.counted import counted_changes
from trinity.engine.feed.images import CHANGE_TYPE, VERSION, changed_rows, net_pairs
from trinity.engine.feed.interval import Bound, Interval, interval
from trinity.engine.feed.moments import appended_pairs
from trinity.engine.feed.steps import Step, runs, steps
from trinity.engine.spark.frames import local_frame
from trinity.engine.spark.settings import pinned
from trinity.engine.spark.types import spark_type
from trinity.engine.target import Target
from trinity.errors import TrinityError
from trinity.merge.quoting import quoted
from trinity.spi import HistoryEntry, TableDefinition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TIMESTAMP", "Form", "change_feed"]

TIMESTAMP: Final = "_commit_timestamp"
"""TIMESTAMP: when the version was committed."""


@dataclass(frozen=True)
class Form:
    """The way in which a feed shows changes.

    Attributes:
        net: one change for each key over all versions, instead of one for each version.
        updates: update_preimage and update_postimage; False for a delete and an insert.
        preimages: False to leave out the rows before an update.
    """

    net: bool = False
    updates: bool = True
    preimages: bool = True

    @classmethod
    def of(cls, deduplication_mode: str, *, compute_updates: bool, preimages: bool) -> Form:
        """The form that Spark 4.2's words ask for. Raises INVALID_ARGUMENTS for an unknown mode."""
        known = {"none": False, "dropcarryovers": False, "netchanges": True}
        net = known.get(deduplication_mode.lower())
        if net is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"deduplication_mode '{deduplication_mode}': it is dropCarryovers or netChanges.",
            )
        return cls(net, compute_updates, preimages)


def change_feed(target: Target, start: Bound, end: Bound | None, form: Form) -> DataFrame:
    """The rows of the feed, lazy: columns of its last version, and which change of which commit, of when.

    Raises:
        TrinityError: see :func:`~trinity.engine.feed.interval.interval` and :func:`~trinity.engine.feed.steps.steps`;
            DUPLICATE_COLUMN_NAME where a column of the table has the name of one of these three.
    """
    from trinity.calls.spark import spark_errors

    spark = target.session.spark
    with pinned(spark), spark_errors():
        part = interval(target, start, end)
        last = part.entries[-1] if part.entries else part.before
        definition = target.splits(last.version if last else None).definition
        _check_names(target, definition)
        found = steps(target, part.before, part.entries)
        rows = _rows(spark, found, definition, form)
        return rows.join(F.broadcast(_times(spark, part)), VERSION).select(
            *(quoted(c.name) for c in definition.visible), CHANGE_TYPE, VERSION, TIMESTAMP
        )


def _rows(spark: SparkSession, found: Sequence[Step], definition: TableDefinition, form: Form) -> DataFrame:
    columns, key = definition.visible, definition.primary_key
    if not found:
        kinds = {**{c.name: spark_type(c.type) for c in columns}, CHANGE_TYPE: "string", VERSION: "bigint"}
        nothing = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in kinds.items()]
        return spark.range(0).selectExpr(*nothing)
    if not key:
        return counted_changes(spark, found, columns, net=form.net)
    each = [
        appended_pairs(spark, run, columns) if run[0].appends else compared_pairs(spark, run[0], columns, key)
        for run in runs(found)
    ]
    pairs = reduce(DataFrame.unionByName, each)
    pairs = net_pairs(pairs, columns, key) if form.net else pairs
    return changed_rows(pairs, columns, updates=form.updates, preimages=form.preimages)


def _times(spark: SparkSession, part: Interval) -> DataFrame:
    def row(entry: HistoryEntry) -> tuple[int, dt.datetime]:
        return entry.version, dt.datetime.fromtimestamp(entry.timestamp_ms / 1000, dt.UTC)

    return local_frame(spark, {VERSION: "bigint", TIMESTAMP: "timestamp"}, list(map(row, part.entries)))


def _check_names(target: Target, definition: TableDefinition) -> None:
    taken = [c.name for c in definition.visible if c.name.lower() in (CHANGE_TYPE, VERSION, TIMESTAMP)]
    if taken:
        raise TrinityError(
            "DUPLICATE_COLUMN_NAME",
            f"Column '{taken[0]}' of table '{target.name}' has the name of a column of the change feed; rename it to "
            "read changes.",
        )
