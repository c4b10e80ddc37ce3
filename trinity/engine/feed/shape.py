"""The shape of a change feed: its columns, and how it shows them (C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trinity.errors import TrinityError
from trinity.merge.properties import changelog_producer
from trinity.spi import Column, TableDefinition
from trinity.target import Target

VERSION: Final = "_commit_version"
"""BIGINT: the version that made a change."""
CHANGE_TYPE: Final = "_change_type"
"""STRING: ``insert``, ``delete``, ``update_preimage`` or ``update_postimage`` (C1)."""
TIMESTAMP: Final = "_commit_timestamp"
"""TIMESTAMP: when the version was committed."""


@dataclass(frozen=True)
class FeedMode:
    """The way in which a feed shows changes.

    Attributes:
        net: True for one change of each key over all versions, instead of one in each version.
        updates: True for update_preimage and update_postimage, False for a delete and an insert instead.
        preimages: False to leave out the rows before an update.
        merged: True for the changes of the merged rows (C1), whatever the table's changelog-producer shows.
    """

    net: bool = False
    updates: bool = True
    preimages: bool = True
    merged: bool = False

    @classmethod
    def of(cls, deduplication_mode: str, *, compute_updates: bool, preimages: bool) -> FeedMode:
        """Return the mode that Spark 4.2's options ask for. Raises INVALID_ARGUMENTS for an unknown mode."""
        known = {"none": False, "dropcarryovers": False, "netchanges": True}
        net = known.get(deduplication_mode.lower())
        if net is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"deduplication_mode '{deduplication_mode}': it is dropCarryovers or netChanges.",
            )
        return cls(net, compute_updates, preimages)

    def recomputes(self, old: Sequence[Column], columns: Sequence[Column]) -> bool:
        """Return True when changes on disk must be compared again: in a net feed, or after a column was dropped.

        Some may cancel out then. ``old`` are the columns with which they are stored; those that the feed lacks were
        dropped since.
        """
        return self.net or not {c.identity for c in old} <= {c.identity for c in columns}


def check_names(target: Target, definition: TableDefinition) -> None:
    """Refuse a table that has a column with a name of the feed's own. Raises DUPLICATE_COLUMN_NAME."""
    taken = [c.name for c in definition.visible if c.name.lower() in (CHANGE_TYPE, VERSION, TIMESTAMP)]
    if taken:
        raise TrinityError(
            "DUPLICATE_COLUMN_NAME",
            f"Column '{taken[0]}' of table '{target.name}' has the name of a column of the change feed; rename it to "
            "read changes.",
        )


def check_net(target: Target, mode: FeedMode) -> None:
    """Refuse net changes of a table whose feed shows rows as they came. Raises INVALID_ARGUMENTS."""
    if mode.net and not mode.merged and not changelog_producer(target.properties).compares:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{target.name}' has changelog-producer=input: its changes are rows as they came, and of these "
            "there are no net ones.",
        )
