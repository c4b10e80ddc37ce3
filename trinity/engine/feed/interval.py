"""The part of a table's history that a change feed covers."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from trinity.engine.target import Target
from trinity.errors import TrinityError
from trinity.spi import HistoryEntry
from trinity.travel import epoch_ms

__all__ = ["Bound", "Interval", "interval"]

Moment = int | str | dt.datetime
"""A version, or a time: ISO text, or a datetime."""


@dataclass(frozen=True)
class Bound:
    """One end of a feed.

    Attributes:
        at: the version or time.
        inclusive: whether changes of that very version, or time, are among those asked for.
    """

    at: Moment
    inclusive: bool


@dataclass(frozen=True)
class Interval:
    """The commits of a feed.

    Attributes:
        before: the commit before the first of them; None when that is the one that made the table.
        entries: the commits in their order, none perhaps.
    """

    before: HistoryEntry | None
    entries: list[HistoryEntry]


def interval(target: Target, start: Bound, end: Bound | None) -> Interval:
    """The commits between two bounds; up to the newest without an end.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that is not there, naming the oldest readable one where it is
            older than that; for a start behind the end.
    """
    history = target.connector.metadata.history(target.handle)
    first = _place(target, history, start, first=True)
    behind = len(history) if end is None else _place(target, history, end, first=False)
    if behind < first:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Changes of table '{target.name}': they are to begin at {start.at}, which is behind {end and end.at}.",
        )
    if first == 0 and history[0].operation != "create" and behind > first:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Changes of table '{target.name}' in version {history[0].version}, its oldest readable one, are not known "
            f"any more; ask for those after it.",
        )
    return Interval(history[first - 1] if first else None, history[first:behind])


def _place(target: Target, history: list[HistoryEntry], bound: Bound, *, first: bool) -> int:
    """Number of commits that lie before a bound: before the first that is asked for, or up to the last."""
    at = bound.at
    with_it = bound.inclusive is not first
    if not isinstance(at, int):
        wanted = epoch_ms(at, target.session.timezone)
        return sum(e.timestamp_ms < wanted or (with_it and e.timestamp_ms == wanted) for e in history)
    if at not in {e.version for e in history}:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{target.name}' has no version {at} that can be read; its oldest is {history[0].version}, its "
            f"newest {history[-1].version}.",
        )
    return sum(e.version < at or (with_it and e.version == at) for e in history)
