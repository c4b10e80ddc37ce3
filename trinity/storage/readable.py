"""Readable versions of a table, and the errors for others (L10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

from trinity.errors import TrinityError
from trinity.spi import DataFile, HistoryEntry, TableDefinition, TableHandle
from trinity.storage.store import ObjectStore

__all__ = ["check_still_there", "no_readable_version", "no_such_version", "oldest_needed", "version_at"]


class _Version(Protocol):
    @property
    def definition(self) -> TableDefinition: ...

    @property
    def oldest(self) -> int: ...


_V = TypeVar("_V", bound=_Version)


def version_at(
    table: TableHandle, newest: int, read: Callable[[int], _V], oldest: Callable[[_V], int] = lambda at: at.oldest
) -> _V:
    """Return the handle's version, or the newest.

    Args:
        table: the handle.
        newest: number of the newest version.
        read: reads a version; raises BAD_DATA for a damaged one.
        oldest: returns the oldest readable version, by the newest one.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a version that does not exist, or no longer; TRANSACTION_CONFLICT for a
            table that was made anew; errors of ``read``.
    """
    try:
        current = read(newest)
    except TrinityError as error:
        if error.code == "BAD_DATA" and table.version is not None and 0 <= table.version < newest:
            return read(table.version)  # it may not need the damaged file
        raise
    table.check_same(current.definition.id)
    if table.version is None or table.version == newest:
        return current
    if not (first := oldest(current)) <= table.version < newest:
        raise no_such_version(table, first, newest)
    return read(table.version)


def no_such_version(table: TableHandle, oldest: int, newest: int) -> TrinityError:
    """Return the error for a version that does not exist, or no longer."""
    return TrinityError(
        "INVALID_ARGUMENTS",
        f"Table '{table.full_name}' has no version {table.version} that can be read; the oldest readable one is "
        f"{oldest}, the newest {newest}.",
    )


def check_still_there(table: TableHandle, files: Iterable[DataFile], live: Iterable[DataFile]) -> None:
    """Check that the files of an earlier version are there, before it becomes the newest one again.

    Args:
        table: the table, pinned to the version.
        files: its files, those of the sidecar among them.
        live: the files of the newest version, which are there.

    Raises:
        TrinityError: INVALID_ARGUMENTS naming one that is gone.
    """
    store, known = ObjectStore(table.location), {path for file in live for path in file.needs}
    for path in dict.fromkeys(path for file in files for path in file.needs):
        if path not in known and not store.exists(path):
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"Table '{table.full_name}' cannot be restored to version {table.version}: '{path}' is gone, as after "
                "a vacuum by another engine. Choose a later version.",
            )


def no_readable_version(table: TableHandle) -> TrinityError:
    """Return the error of a repair that finds no readable version."""
    return TrinityError(
        "BAD_DATA",
        f"Table '{table.full_name}' has no version that can be read; restore its metadata from a copy, or drop it.",
    )


def oldest_needed(history: Sequence[HistoryEntry], older_than_ms: int) -> int:
    """Return the oldest version that a vacuum keeps: the one that was the newest at that time (L10)."""
    kept = [entry for entry, following in pairwise(history) if following.timestamp_ms > older_than_ms]
    return (kept[0] if kept else history[-1]).version
