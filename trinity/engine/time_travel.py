"""Time travel: the version of a table that was the newest at some time (L10)."""

from __future__ import annotations

import datetime as dt

from trinity.errors import TrinityError
from trinity.spi import SplitSource
from trinity.target import Target
from trinity.zones import zone_of


def splits_at(table: Target, version: int | None, timestamp: str | dt.datetime | None) -> SplitSource:
    """Return the files of a version, of the newest version at a time, or, without both, of the newest version.

    Raises:
        TrinityError: INVALID_ARGUMENTS for both a version and a time; as :func:`version_at`.
    """
    if version is not None and timestamp is not None:
        raise TrinityError("INVALID_ARGUMENTS", "Give a version or a timestamp, not both.")
    return table.splits(version_at(table, timestamp) if timestamp is not None else version)


def version_at(table: Target, timestamp: str | dt.datetime) -> int:
    """Return the newest version that was committed by a time.

    Args:
        table: the table.
        timestamp: ISO text, or datetime; in the session's time zone unless it names one.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a text that is no time, or one before the oldest readable version.
    """
    wanted = epoch_ms(timestamp, table.session.timezone)
    entries = table.connector.metadata.history(table.handle)
    found = [e.version for e in entries if e.timestamp_ms <= wanted]
    if not found:
        first = entries[0]
        at = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC).isoformat()
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Table '{table.name}' has no version as old as {timestamp}; the oldest readable one is "
            f"{first.version}, of {at}.",
        )
    return found[-1]


def epoch_ms(timestamp: str | dt.datetime, timezone: str) -> int:
    """Return milliseconds since the epoch of ISO text or a datetime, in ``timezone`` unless it names a zone.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a text that is no time.
    """
    try:
        at = timestamp if isinstance(timestamp, dt.datetime) else dt.datetime.fromisoformat(timestamp)
        if at.tzinfo is None:
            at = at.replace(tzinfo=zone_of(timezone))
        return int(at.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"Timestamp '{timestamp}' is not ISO 8601, such as '2026-01-31 12:00:00'."
        ) from error
