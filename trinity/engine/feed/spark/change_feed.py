"""The change feed of a table: its rows before and after every commit in a part of its history (C1-C5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.feed.interval import Bound
from trinity.engine.feed.plan import FeedPlan, part_between
from trinity.engine.feed.shape import CHANGE_TYPE, TIMESTAMP, VERSION, FeedMode
from trinity.engine.feed.spark.compared import compared_pairs
from trinity.engine.feed.spark.counted import counted_changes
from trinity.engine.feed.spark.images import changed_rows, differ, feed_rows, in_mode, net_pairs, paired, union
from trinity.engine.feed.spark.ingested import ingested_rows
from trinity.engine.feed.spark.moments import appended_pairs
from trinity.engine.feed.steps import Step, runs
from trinity.engine.feed.stored_form import stored_schema, written_columns
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.limits import Limit
from trinity.spark.frames import local_frame
from trinity.spark.settings import pinned
from trinity.spark.texts import with_char
from trinity.spark.types import spark_type
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, DataFile, HistoryEntry, SplitSource
from trinity.storage.changelog import StoredChanges
from trinity.syntax.quoting import quoted
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS_IN_EXPRESSION: Final = Limit(64)
"""Most commits whose times are written into an expression; the times of more are joined."""


def change_feed(target: Target, start: Bound, end: Bound | None, mode: FeedMode) -> DataFrame:
    """Return the rows of the feed, lazily: the columns of its last version, and change type, version and time.

    Raises:
        TrinityError: as :func:`~trinity.engine.feed.interval.interval`; as :class:`~trinity.engine.feed.plan.FeedPlan`.
    """
    part, splits = part_between(target, start, end)
    return feed_of(FeedPlan.of(target, part, splits.definition, mode), part.entries)


def feed_of(plan: FeedPlan, commits: Sequence[HistoryEntry]) -> DataFrame:
    """Return the rows of the feed of some commits. Raises as :func:`change_feed`."""
    from trinity.calls import spark_errors

    spark = plan.target.session.spark
    with pinned(spark), spark_errors():
        rows = rows_of(plan)
        rows = _with_timestamp(spark, _empty_feed(spark, plan.columns) if rows is None else rows, commits)
        shown = rows.select(*(quoted(c.name) for c in plan.columns), CHANGE_TYPE, VERSION, TIMESTAMP)
        return with_char(shown, plan.columns)


def rows_of(plan: FeedPlan) -> DataFrame | None:
    """Return the rows of a feed without their commits' times, not run yet; None when there are none."""
    shown = _of_keys(plan) if plan.definition.keyed else _of_rows(plan)
    return union(shown) if shown else None


def _of_rows(plan: FeedPlan) -> list[DataFrame]:
    """Return the changes of a plain table."""
    spark, on_disk = plan.target.session.spark, _stored_rows(plan.target, plan.stored, plan.columns)
    computed = [counted_changes(spark, found, plan.columns, net=plan.mode.net) for _, found in plan.groups if found]
    return [*([] if on_disk is None else [on_disk]), *computed]


def _of_keys(plan: FeedPlan) -> list[DataFrame]:
    """Return the changes of a keyed table. Stored changes that must be compared again become pairs of images."""
    spark, columns, key, mode = plan.target.session.spark, plan.columns, plan.definition.primary_key, plan.mode
    rows, pairs = [ingested_rows(spark, step, columns) for step in plan.passthrough_steps], list[DataFrame]()
    for version, found in plan.groups:
        mine = [_pairs(spark, run, columns, key) for run in runs(found)]
        if version is not None and mine:
            mine = [net_pairs(union(mine), columns, key).withColumn(VERSION, F.lit(version).cast("bigint"))]
        pairs += mine
    compared = [stored for stored in plan.stored if mode.recomputes(stored.columns, columns)]
    if (on_disk := _stored_rows(plan.target, compared, columns)) is not None:
        pairs.append(paired(on_disk, columns, key).where(differ(columns)))
    as_they_are = [stored for stored in plan.stored if not mode.recomputes(stored.columns, columns)]
    if (on_disk := _stored_rows(plan.target, as_they_are, columns)) is not None:
        rows.append(on_disk)
    if mode.net and pairs:
        pairs = [net_pairs(union(pairs), columns, key)]
    return [*(changed_rows(each, columns, mode) for each in pairs), *(in_mode(each, mode) for each in rows)]


def _pairs(spark: SparkSession, run: Sequence[Step], columns: Sequence[Column], key: Sequence[str]) -> DataFrame:
    """Return the pairs of images of steps that are handled together (see :func:`runs`)."""
    return appended_pairs(spark, run, columns) if run[0].appends else compared_pairs(spark, run[0], columns, key)


def _empty_feed(spark: SparkSession, columns: Sequence[Column]) -> DataFrame:
    kinds = {**{c.name: spark_type(c.type) for c in columns}, CHANGE_TYPE: "string", VERSION: "bigint"}
    return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in kinds.items()))


def _with_timestamp(spark: SparkSession, rows: DataFrame, commits: Sequence[HistoryEntry]) -> DataFrame:
    """Return the rows with :data:`TIMESTAMP`."""
    if 0 < len(commits) <= COMMITS_IN_EXPRESSION.value:  # a join would be a job of its own
        known = ", ".join(f"{commit.version}L, timestamp_millis({commit.timestamp_ms}L)" for commit in commits)
        return rows.selectExpr("*", f"element_at(map({known}), {VERSION}) AS {TIMESTAMP}")
    times = local_frame(spark, {VERSION: "bigint", TIMESTAMP: "timestamp"}, [_moment(commit) for commit in commits])
    return rows.join(F.broadcast(times), VERSION)


def _moment(commit: HistoryEntry) -> tuple[int, dt.datetime]:
    return commit.version, dt.datetime.fromtimestamp(commit.timestamp_ms / 1000, dt.UTC)


def _stored_rows(target: Target, stored: Iterable[StoredChanges], columns: Sequence[Column]) -> DataFrame | None:
    """Return stored changes, converted to the columns of the feed; None when there are none."""
    equal_columns: dict[tuple[Column, ...], list[str]] = {}
    for changes in stored:
        equal_columns.setdefault(changes.columns, []).extend(changes.files)
    found = [_scanned(target, files, old, columns) for old, files in equal_columns.items() if files]
    return union(found) if found else None


def _scanned(target: Target, files: Sequence[str], old: Sequence[Column], columns: Sequence[Column]) -> DataFrame:
    written = written_columns(old)
    storage = stored_schema(written)
    rows = plain_scan(target.session.spark, [DataFile(path, 0, 0) for path in files], storage)
    rows = to_user_columns(rows, SplitSource(0, 0, written, storage, ()))
    return feed_rows(rows, columns, old)
