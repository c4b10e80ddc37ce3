"""The part of a table's history that a change feed covers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from trinity.engine.time_travel import epoch_ms
from trinity.errors import TrinityError
from trinity.spi import HistoryEntry
from trinity.target import Target

Moment = int | str | dt.datetime
"""A version, or a time: ISO text, or a datetime."""


@dataclass(frozen=True)
class Bound:
    """One end of a feed.

    Attributes:
        inclusive: True when the feed includes the changes of that very version or time.
        check: a function that raises where the commit of that version is not the expected one.
    """

    at: Moment
    inclusive: bool
    check: Callable[[HistoryEntry], None] | None = None


@dataclass(frozen=True)
class Interval:
    """The commits of a feed: those of the readable history from index ``first`` to the one before ``stop``."""

    history: list[HistoryEntry]
    first: int
    stop: int

    @property
    def before(self) -> HistoryEntry | None:
        """The commit before the feed's first one; None when that is the oldest readable commit."""
        return self.history[self.first - 1] if self.first else None

    @property
    def entries(self) -> list[HistoryEntry]:
        """The commits in their order; there may be none."""
        return self.history[self.first : self.stop]

    def without(self, versions: Collection[int]) -> list[Interval]:
        """Return the parts that remain without the given versions, each as long as possible."""
        found: list[Interval] = []
        for index in range(self.first, self.stop):
            if self.history[index].version in versions:
                continue
            if found and found[-1].stop == index:
                found[-1] = replace(found[-1], stop=index + 1)
            else:
                found.append(Interval(self.history, index, index + 1))
        return found


def interval(target: Target, history: list[HistoryEntry], start: Bound, end: Bound | None) -> Interval:
    """Return the commits between two bounds; without an end, those up to the newest.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that is not readable, naming the oldest and the newest one; for a
            start after the end.
    """
    first = _index(target, history, start, first=True)
    stop = len(history) if end is None else _index(target, history, end, first=False)
    if stop < first:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Changes of table '{target.name}': they are to begin at {start.at}, which is after {end and end.at}.",
        )
    return Interval(history, first, stop)


def unknown_version(target: Target, version: int, history: Sequence[HistoryEntry]) -> TrinityError:
    """Return the error for a version that does not exist, or was vacuumed (L10)."""
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"Table '{target.name}' has no version {version} that can be read; its oldest is {history[0].version}, its "
        f"newest {history[-1].version}.",
    )


def _index(target: Target, history: list[HistoryEntry], bound: Bound, *, first: bool) -> int:
    """Return the index of the feed's first commit, or, unless ``first``, the index after its last one."""
    at = bound.at
    with_it = bound.inclusive is not first
    if not isinstance(at, int):
        wanted = epoch_ms(at, target.session.timezone)
        return sum(e.timestamp_ms < wanted or (with_it and e.timestamp_ms == wanted) for e in history)
    found = next((entry for entry in history if entry.version == at), None)
    if found is None:
        raise unknown_version(target, at, history)
    if bound.check is not None:
        bound.check(found)
    return sum(e.version < at or (with_it and e.version == at) for e in history)
