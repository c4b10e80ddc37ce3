"""The plan of a change feed, for this process and for Spark: what is on disk, and which steps give the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from trinity.engine.feed.compaction_intervals import compaction_intervals
from trinity.engine.feed.interval import Bound, Interval, interval
from trinity.engine.feed.shape import FeedMode, check_names, check_net
from trinity.engine.feed.steps import Step, steps, steps_of
from trinity.engine.feed.usable_changes import found_changes, is_usable
from trinity.merge.properties import ChangelogProducer, changelog_producer
from trinity.spi import Column, CommitOperation, SplitSource, TableDefinition
from trinity.storage.changelog import StoredChanges
from trinity.target import Target


@dataclass(frozen=True)
class FeedPlan:
    """The plan of the feed of a part of a table's history.

    Attributes:
        parts: the commits whose changes are computed.
        stored: changes that are read from disk.
        definition: the columns and the key of the feed: those of its last version.
    """

    target: Target
    parts: Sequence[Interval]
    stored: Sequence[StoredChanges]
    definition: TableDefinition
    producer: ChangelogProducer
    mode: FeedMode

    @classmethod
    def of(cls, target: Target, part: Interval, definition: TableDefinition, mode: FeedMode) -> Self:
        """Plan the feed of a part of the history: what is on disk is read, and the rest is computed.

        Raises:
            TrinityError: DUPLICATE_COLUMN_NAME where a column of the table has the name of one of the feed's own;
                INVALID_ARGUMENTS for net changes with ``changelog-producer`` = ``input``, which compares no rows.
        """
        check_names(target, definition)
        check_net(target, mode)
        producer = ChangelogProducer.NONE if mode.merged else changelog_producer(target.properties)
        found = found_changes(target, part.entries, producer)
        restored = {entry.version for entry in part.entries if entry.operation == CommitOperation.RESTORE}
        stored = [
            changes
            for version, changes in found.items()
            if is_usable(changes, definition, mode, producer, restored=version in restored)
        ]
        return cls(target, part.without({changes.version for changes in stored}), stored, definition, producer, mode)

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the feed."""
        return self.definition.visible

    @cached_property
    def groups(self) -> list[tuple[int | None, list[Step]]]:
        """The steps to compute, in groups (version, steps): one for each compaction interval, or one with version None.

        Raises:
            TrinityError: as :func:`~trinity.engine.feed.steps.steps` and
                :func:`~trinity.engine.feed.compaction_intervals.compaction_intervals`.
        """
        if self.producer is ChangelogProducer.FULL_COMPACTION:
            return [
                (r.version, steps(self.target, r.before, r.entries))
                for r in compaction_intervals(self.target, self.parts)
            ]
        return [(None, [step for step in self._steps if not self._passes_through(step)])]

    @cached_property
    def passthrough_steps(self) -> list[Step]:
        """The steps whose appended rows are shown unchanged. Raises as :attr:`groups`."""
        return list(filter(self._passes_through, self._steps)) if self.producer is ChangelogProducer.INPUT else []

    @cached_property
    def _steps(self) -> list[Step]:
        return steps_of(self.target, self.parts)

    def _passes_through(self, step: Step) -> bool:
        return self.producer is ChangelogProducer.INPUT and step.ingests


def part_between(target: Target, start: Bound, end: Bound | None) -> tuple[Interval, SplitSource]:
    """Return the commits between two bounds, and the version after them. Raises as :func:`interval`."""
    part = interval(target, target.connector.metadata.history(target.handle), start, end)
    last = part.entries[-1] if part.entries else part.before
    return part, target.splits(last.version if last else None)
