"""The change feed of a table: its rows before and after every commit in a part of its history (C1-C5)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from trinity.engine.feed.changelog import found_changes, is_usable
from trinity.engine.feed.interval import Bound, Interval, interval
from trinity.engine.feed.shape import CHANGE_TYPE, TIMESTAMP, VERSION, FeedMode, check_names, check_net
from trinity.engine.feed.spark.computed import Changes, computed_changes
from trinity.engine.feed.spark.counted import counted_changes
from trinity.engine.feed.spark.images import changed_rows, differ, in_mode, net_pairs, paired, union
from trinity.engine.feed.spark.stored_changes import stored_change_rows
from trinity.engine.feed.steps import steps_of
from trinity.merge.options import ChangelogProducer, changelog_producer
from trinity.spark.frames import local_frame
from trinity.spark.settings import pinned
from trinity.spark.texts import with_char
from trinity.spark.types import spark_type
from trinity.spark_names import DataFrame, F
from trinity.spi import Column, HistoryEntry, TableDefinition
from trinity.storage.changelog import StoredChanges
from trinity.syntax.quoting import quoted
from trinity.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW: Final = 64
"""The number of commits whose times still fit into an expression."""


def change_feed(target: Target, start: Bound, end: Bound | None, mode: FeedMode) -> DataFrame:
    """Return the rows of the feed, lazily: the columns of its last version, and change type, version and time.

    Raises:
        TrinityError: see :func:`~trinity.engine.feed.interval.interval` and :func:`~trinity.engine.feed.steps.steps`;
            DUPLICATE_COLUMN_NAME where a column of the table has the name of one of these three.
    """
    part = interval(target, target.connector.metadata.history(target.handle), start, end)
    last = part.entries[-1] if part.entries else part.before
    return feed_of(target, part, target.splits(last.version if last else None).definition, mode)


def feed_of(target: Target, part: Interval, definition: TableDefinition, mode: FeedMode) -> DataFrame:
    """Return the rows of the feed of the commits, under the definition of the last version.

    Raises as :func:`change_feed`.
    """
    from trinity.calls import spark_errors

    spark = target.session.spark
    with pinned(spark), spark_errors():
        check_names(target, definition)
        check_net(target, mode)
        rows = _with_timestamp(spark, _rows(target, part, definition, mode), part.entries)
        shown = rows.select(*(quoted(c.name) for c in definition.visible), CHANGE_TYPE, VERSION, TIMESTAMP)
        return with_char(shown, definition.visible)


def _rows(target: Target, part: Interval, definition: TableDefinition, mode: FeedMode) -> DataFrame:
    producer = ChangelogProducer.NONE if mode.merged else changelog_producer(target.properties)
    found = found_changes(target, part.entries, producer)
    stored = {version: changes for version, changes in found.items() if is_usable(changes, definition, mode)}
    rest = part.without(stored)
    columns = definition.visible
    if definition.keyed:
        changes = computed_changes(target, rest, definition, producer)
        shown = _shown(_with_stored(target, changes, stored.values(), definition, mode), definition, mode)
    else:
        shown = [rows for rows in (stored_change_rows(target, stored.values(), columns),) if rows is not None]
        if moved := steps_of(target, rest):
            shown.append(counted_changes(target.session.spark, moved, columns, net=mode.net))
    return union(shown) if shown else _empty_feed(target.session.spark, columns)


def _with_stored(
    target: Target, changes: Changes, stored: Iterable[StoredChanges], definition: TableDefinition, mode: FeedMode
) -> Changes:
    """Return computed changes united with those on disk; as pairs of images where these must be compared."""
    columns = definition.visible
    as_they_are: list[StoredChanges] = []
    compared: list[StoredChanges] = []
    for each in stored:
        (compared if mode.recomputes(each.columns, columns) else as_they_are).append(each)
    rows, pairs = (stored_change_rows(target, each, columns) for each in (as_they_are, compared))
    found = [] if pairs is None else [paired(pairs, columns, definition.primary_key).where(differ(columns))]
    return Changes([*changes.pairs, *found], [*changes.rows, *([] if rows is None else [rows])])


def _shown(changes: Changes, definition: TableDefinition, mode: FeedMode) -> list[DataFrame]:
    columns, pairs = definition.visible, changes.pairs
    if mode.net and pairs:
        pairs = [net_pairs(union(pairs), columns, definition.primary_key)]
    return [*(changed_rows(each, columns, mode) for each in pairs), *(in_mode(each, mode) for each in changes.rows)]


def _empty_feed(spark: SparkSession, columns: Sequence[Column]) -> DataFrame:
    kinds = {**{c.name: spark_type(c.type) for c in columns}, CHANGE_TYPE: "string", VERSION: "bigint"}
    return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in kinds.items()))


def _with_timestamp(spark: SparkSession, rows: DataFrame, commits: Sequence[HistoryEntry]) -> DataFrame:
    """Return the rows with :data:`TIMESTAMP`."""
    if 0 < len(commits) <= _FEW:  # a join would be a job of its own
        known = ", ".join(f"{commit.version}L, timestamp_millis({commit.timestamp_ms}L)" for commit in commits)
        return rows.selectExpr("*", f"element_at(map({known}), {VERSION}) AS {TIMESTAMP}")
    times = local_frame(spark, {VERSION: "bigint", TIMESTAMP: "timestamp"}, [_moment(commit) for commit in commits])
    return rows.join(F.broadcast(times), VERSION)


def _moment(commit: HistoryEntry) -> tuple[int, dt.datetime]:
    return commit.version, dt.datetime.fromtimestamp(commit.timestamp_ms / 1000, dt.UTC)
