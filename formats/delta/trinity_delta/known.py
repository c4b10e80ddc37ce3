"""What a process remembers of a Delta table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity.spi import HistoryEntry
from trinity.storage import Cache, Stat
from trinity_delta.state import State

__all__ = ["Known"]

_CACHED: Final = 64
"""Versions remembered of a table."""
_ENTRIES: Final = 10_000
"""Commits of a table whose history entries are remembered."""


@dataclass
class Known:
    """What a process remembers of a table.

    Attributes:
        newest: the newest version seen.
        first: in an object store, the oldest version that could be read when the whole log was last listed.
        stamp: tells the commit file of ``newest`` from that of another table under the same name.
        states: the versions used last.
        entries: their entries of ``history()``.
        own_commits: versions committed by this process and not listed since -> bytes of their commit files.
        checkpoint: the hint at the newest checkpoint; None where nobody has looked.
    """

    newest: int
    stamp: Stat
    first: int = 0
    states: Cache[int, State] = field(default_factory=lambda: Cache(_CACHED))
    entries: Cache[int, HistoryEntry] = field(default_factory=lambda: Cache(_ENTRIES))
    own_commits: dict[int, int] = field(default_factory=dict)
    checkpoint: Mapping[str, int] | None = None

    def forget_from(self, version: int) -> None:
        """Forget a version and all later ones: another engine has overwritten it."""
        self.states.drop(lambda number: number >= version)
        self.entries.drop(lambda number: number >= version)

    def lost(self, found: Mapping[int, Stat]) -> list[int]:
        """Return the versions that were committed here, and are missing or another writer's in the log."""
        return [
            version for version, size in self.own_commits.items() if version not in found or found[version].size != size
        ]
