"""The model of ``apply_changes``: the rows that events make, in whatever order they arrive. Written from the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event: ``values`` by column, with its ``key`` and ``sequence``."""

    key: int
    sequence: tuple[int, ...]
    values: tuple[Any, ...]
    deletes: bool = False


def history(
    came: Sequence[Event], tracked: Callable[[Event], Any]
) -> list[tuple[int, Event, tuple[int, ...], tuple[int, ...] | None]]:
    """Return (key, event shown, start, end) of each version (H1-H4).

    Args:
        came: the events in arrival order.
        tracked: returns the values of an event whose change begins a new version.
    """
    found = []
    for key, events in _timelines(came):
        version: list[Event] = []
        for event in [*events, None]:
            goes_on = event and version and not event.deletes and tracked(event) == tracked(version[-1])
            if version and not goes_on:
                found.append((key, version[-1], version[0].sequence, event.sequence if event else None))
                version = []
            if event and not event.deletes:
                version.append(event)
    return found


def current(came: Sequence[Event]) -> dict[int, Event]:
    """Return key -> the event that its row shows."""
    last = ((key, events[-1]) for key, events in _timelines(came))
    return {key: event for key, event in last if not event.deletes}


def filled(came: Sequence[Event]) -> dict[int, tuple[Any, ...]]:
    """Return key -> its values: in each column the last one that was not NULL since the row was last deleted."""
    found: dict[int, tuple[Any, ...]] = {}
    ordered = sorted(enumerate(came), key=lambda pair: (pair[1].sequence, pair[0]))
    for _, event in ordered:
        if event.deletes:
            found.pop(event.key, None)
            continue
        before = found.get(event.key, (None,) * len(event.values))
        found[event.key] = tuple(old if new is None else new for old, new in zip(before, event.values, strict=True))
    return found


def _timelines(came: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Yield (key, its events by sequence). Of events of equal sequence the last to arrive counts (K4)."""
    by_key: defaultdict[int, dict[tuple[int, ...], Event]] = defaultdict(dict)
    for event in came:
        by_key[event.key][event.sequence] = event
    for key, events in by_key.items():
        yield key, [events[sequence] for sequence in sorted(events)]
