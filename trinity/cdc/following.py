"""A table that follows another Trinity table: each change there is written exactly once, as row versions.

Its position in the source, as one number, is the version of a ``txn`` (L4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import public, spark_errors
from trinity.cdc.delta import delta_versions
from trinity.cdc.version_columns import VersionColumns, version_columns
from trinity.engine.appending.append import append_derived
from trinity.engine.changing.statement import rerun
from trinity.engine.feed.reader_position import ReaderPosition
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.streaming.batches import transformed
from trinity.errors import TrinityError
from trinity.merge.spec import merge_spec
from trinity.spi import CommitResult, HistoryEntry, SplitSource
from trinity.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BOUND: Final = 1 << 62
_VERSIONS: Final = 1 << 42
"""Smallest version that leaves no bits of the number for digits of its commit.

The versions of a table in a folder, which are times in ms, are below it.
"""
_DIGITS: Final = 5
_BITS: Final = 4 * _DIGITS
"""Bits of the commit's digits. A commit that has the version of a lost one is taken for it in one case of a million."""


def number_of(position: ReaderPosition) -> int:
    """Encode a position as one number: its version with the first digits of its commit, or its version alone."""
    if position.version >= _VERSIONS or len(position.commit) < _DIGITS:
        return position.version
    return _BOUND | position.version << _BITS | int(position.commit[:_DIGITS], 16)


def position_of(number: int) -> ReaderPosition:
    """Return the position for a recorded number."""
    if number < _BOUND:
        return ReaderPosition(number)
    return ReaderPosition((number ^ _BOUND) >> _BITS, f"{number & (1 << _BITS) - 1:0{_DIGITS}x}")


_REMEDY: Final = "Empty the target, and have it follow under another name."


@public
def follow(
    source: Table,
    target: Table,
    *,
    key: Sequence[str] | None = None,
    transform: Callable[[DataFrame], Any] | None = None,
    name: str | None = None,
    watermark: str | None = None,
    row_kind: str | None = None,
    preimages: bool | None = None,
) -> CommitResult:
    """Bring a keyed table up to date with another table, by one commit of the changes since the last call.

    The first call takes all rows of the source. Each later call takes its change feed from where the last one ended.
    The target's commit records the version of the source (L4). So an interrupted call can be repeated, and of
    concurrent calls only one writes a change. When the source has no newer version, nothing is done.

    Args:
        source: any table that has a change feed; its ``changelog-producer`` does not matter (C1).
        target: a keyed table, with a row kind column or a tombstone column.
        key: columns that identify the source's rows; by default its primary key. A row that gets another key in the
            target is deleted there under the old one.
        transform: makes the DataFrame of the target's rows out of the row versions, which have the watermark and row
            kind of :func:`delta_changes`; by default all columns stay as they are.
        name: distinguishes several calls that bring the same source into the same target.
        watermark: as for :func:`delta_changes`.
        row_kind: as for :func:`delta_changes`.
        preimages: as for :func:`delta_changes`; by default True if the target has aggregate functions.

    Returns:
        the target's commit; ``skipped`` when there was nothing new.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a target that is plain, or has no column that marks deleted rows; for a
            source without key, one restored to a version before the one that the target has, whatever was written to
            it since, and one whose next changes are vacuumed. TRANSACTION_CONFLICT as for a MERGE. Also as
            :func:`delta_changes` and ``target.upsert``.
    """
    if source.handle.same_place(target.handle):
        raise TrinityError("INVALID_ARGUMENTS", f"Table '{target.name}' cannot follow itself.")
    definition = source.definition
    given = definition.primary_key if key is None else key
    if not given:
        message = f"Table '{source.name}' has no primary key; give key, the columns that tell its rows apart."
        raise TrinityError("INVALID_ARGUMENTS", message)
    old = _aggregates(target) if preimages is None else preimages
    keys = _Keys.of(target, given, [c.name for c in definition.visible], changed=transform is not None)
    roles = version_columns(target, keys.compared, "version", watermark, row_kind, None, old)
    return rerun(target, _Following(source, target, roles, keys.sorted_within, transform, name).attempt)


def _application_prefix(target: SplitSource) -> str:
    """Return the first word of the application in a target's ``txn``.

    It differs after CREATE OR REPLACE, since the new target has none of the rows of the one it replaced.
    """
    return f"follow/{target.definition.replaced}" if target.definition.replaced else "follow"


def _aggregates(target: Table) -> bool:
    """Return True when the target needs preimages: an aggregate has to take an old value back."""
    definition = target.definition
    return definition.keyed and bool(merge_spec(definition).functions)


@dataclass(frozen=True)
class _Keys:
    """The columns by which the rows of the source are told apart.

    Attributes:
        compared: the columns by which the new row of an update is found for the old one.
        sorted_within: as for :func:`~trinity.cdc.change_feeds.feed_versions`.
    """

    compared: tuple[str, ...]
    sorted_within: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: Table, given: Sequence[str], columns: Sequence[str], *, changed: bool) -> _Keys:
        """Return the columns for rows that the source identifies by the columns ``given``.

        The two tables may have different keys, so an update may change a row's key in one and not in the other. Without
        a transform the target's key is compared. With one, which may change key values, the old row is left out only if
        both keys stay the same; otherwise it precedes the new row, which then wins.

        Args:
            target: the target.
            given: the source's key.
            columns: the source's columns.
            changed: True if the target's rows are made by a transform.
        """
        own = target.definition.primary_key
        has, identifies = ({name.lower() for name in names} for names in (columns, given))
        there = tuple(name for name in own if name.lower() in has)
        same = {name.lower() for name in there} == identifies
        if same or _aggregates(target) or not identifies <= has:
            return cls(tuple(given))
        if not changed and there == own:
            return cls(own)
        both = tuple(name for name in there if name.lower() in identifies)
        return cls((*given, *(name for name in there if name.lower() not in identifies)), both or there)


@dataclass(frozen=True)
class _Following:
    """One call of :func:`follow`."""

    source: Table
    target: Table
    roles: VersionColumns
    sorted_within: tuple[str, ...]
    transform: Callable[[DataFrame], Any] | None
    name: str | None

    def attempt(self) -> CommitResult:
        """Make one commit. Raise TRANSACTION_CONFLICT when others wrote into the target meanwhile."""
        at = self.target.splits()  # read before the txn, so that a commit that records one later is a conflict
        newest = self.source.splits()
        application = " ".join(
            filter(None, [_application_prefix(at), newest.definition.id or str(self.source.name), self.name])
        )
        recorded = self.target.connector.metadata.recorded_txn(self.target.handle, application)
        reached = None if recorded is None else position_of(recorded)
        if reached is not None:
            reached.check_not_ahead(self.source.name, newest.version, self._reader, _REMEDY)
            if reached.version == newest.version:
                self._check(reached, newest)
                return CommitResult(at.version, skipped=True)
        handle = self.target.handle.pinned(at.version, at.definition.id)
        with reporting_dropped_table(self.target.connector, handle), spark_errors():
            changes = self._all_rows(newest) if reached is None else self._changes_since(reached, newest)
            rows = delta_versions(self._without_marks(changes, newest), self.roles, self.sorted_within)
            rows = transformed(self.target, rows, self.transform)
            return append_derived(self.target, rows, handle, at, (application, number_of(ReaderPosition.of(newest))))

    @property
    def _reader(self) -> str:
        return f"table '{self.target.name}', which follows it,"

    def _check(self, reached: ReaderPosition, found: HistoryEntry | SplitSource) -> None:
        reached.check(self.source.name, found, self._reader, _REMEDY)

    def _all_rows(self, newest: SplitSource) -> DataFrame:
        """Return the rows of a version as a feed of inserts."""
        from trinity.spark_names import F

        rows = self.source.to_df(newest.version)  # starts Spark, which pyspark's functions need
        marks = {"_change_type": F.lit("insert"), "_commit_version": F.lit(newest.version).cast("bigint")}
        return rows.withColumns({**marks, "_commit_timestamp": F.lit(None)})

    def _changes_since(self, reached: ReaderPosition, newest: SplitSource) -> DataFrame:
        """Return the changes of the merged rows since the version that the target has, whatever feed is stored."""
        from trinity.engine.feed.interval import Bound
        from trinity.engine.feed.shape import FeedMode
        from trinity.engine.feed.spark.change_feed import change_feed

        start = Bound(reached.version, inclusive=False, check=partial(self._check, reached))
        end = Bound(newest.version, inclusive=True)
        return change_feed(self.source, start, end, FeedMode(merged=True))

    def _without_marks(self, changes: DataFrame, newest: SplitSource) -> DataFrame:
        """Drop the source's own row kind or tombstone column where the target's has the same name."""
        definition = newest.definition
        spec = merge_spec(definition) if definition.keyed else None
        own = {name.lower() for name in (spec.row_kind, spec.tombstone) if name} if spec else set()
        taken = {name.lower() for name in (self.roles.row_kind, self.roles.tombstone) if name}
        return changes.drop(*(name for name in changes.columns if name.lower() in own & taken))
