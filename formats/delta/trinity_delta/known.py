"""The memory that a process has of a table of Delta's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity.spi import HistoryEntry
from trinity.storage import Cache, Stat
from trinity_delta.state import State

__all__ = ["Known"]

_CACHED: Final = 64
"""Versions that are remembered of a table."""
_ENTRIES: Final = 10_000
"""Commits of a table whose deeds are remembered."""


@dataclass
class Known:
    """The memory of a table.

    Attributes:
        newest: the newest version seen.
        first: in an object store the oldest version that could be read when the whole log was listed.
        stamp: tells the commit file of ``newest`` from that of another table under the same name.
        states: versions used last.
        entries: what their commits did, as ``history()`` shows it.
        kept: versions that were committed from here and not listed since, and the bytes of their commits.
        checkpoint: the hint at the newest checkpoint, as far as it is known; None where nobody has looked.
    """

    newest: int
    stamp: Stat
    first: int = 0
    states: Cache[int, State] = field(default_factory=lambda: Cache(_CACHED))
    entries: Cache[int, HistoryEntry] = field(default_factory=lambda: Cache(_ENTRIES))
    kept: dict[int, int] = field(default_factory=dict)
    checkpoint: Mapping[str, int] | None = None

    def forget_from(self, version: int) -> None:
        """Forget a version, and those behind it: another engine has put its own over it."""
        self.states.drop(lambda number: number >= version)
        self.entries.drop(lambda number: number >= version)

    def lost(self, found: Mapping[int, Stat]) -> list[int]:
        """The versions that were committed from here and are not what is there."""
        return [version for version, size in self.kept.items() if version not in found or found[version].size != size]
