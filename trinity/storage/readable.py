"""Versions of a table that can be read, and the errors for those that cannot (L10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from trinity.errors import TrinityError
from trinity.spi import HistoryEntry, TableDefinition, TableHandle

__all__ = ["no_readable_version", "no_such_version", "oldest_needed", "version_at"]


class _Version(Protocol):
    @property
    def definition(self) -> TableDefinition: ...

    @property
    def oldest(self) -> int: ...


_V = TypeVar("_V", bound=_Version)


def version_at(
    table: TableHandle, newest: int, read: Callable[[int], _V], oldest: Callable[[_V], int] = lambda at: at.oldest
) -> _V:
    """The handle's version, or the newest.

    Args:
        table: the handle.
        newest: number of the newest version.
        read: reads a version; raises BAD_DATA for one that is damaged.
        oldest: tells by the newest version which is the oldest readable one.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that there is not, or is not any more; TRANSACTION_CONFLICT for a
            table that was made anew; what ``read`` raises.
    """
    try:
        current = read(newest)
    except TrinityError as error:
        if error.code == "BAD_DATA" and table.version is not None and 0 <= table.version < newest:
            return read(table.version)  # one that may not need what is damaged
        raise
    table.check_same(current.definition.id)
    if table.version is None or table.version == newest:
        return current
    if not (first := oldest(current)) <= table.version < newest:
        raise no_such_version(table, first, newest)
    return read(table.version)


def no_such_version(table: TableHandle, oldest: int, newest: int) -> TrinityError:
    """The error of a read of a version that there is not, or is not any more."""
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one is "
        f"{oldest}, the newest {newest}.",
    )


def no_readable_version(table: TableHandle) -> TrinityError:
    """The error of a repair that finds nothing to go back to."""
    return TrinityError(
        "BAD_DATA",
        f"Table '{table.full_name}' has no version that can be read; restore its metadata from a copy, or drop it.",
    )


def oldest_needed(history: Sequence[HistoryEntry], older_than_ms: int) -> int:
    """The oldest version that a vacuum keeps: each is needed while it was the newest one behind that time (L10)."""
    kept = [entry for entry, following in pairwise(history) if following.timestamp_ms > older_than_ms]
    return (kept[0] if kept else history[-1]).version
