"""The readable versions of a table, as a restore, a vacuum and a repair need them (L10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Final, TypeVar

from trinity.errors import TrinityError
from trinity.spi import CommitResult, DataFile, HistoryEntry, LostCommit, RepairResult, TableHandle
from trinity.storage.store import ObjectStore


def check_still_there(table: TableHandle, files: Iterable[DataFile], live: Iterable[DataFile]) -> None:
    """Check that the files of an earlier version exist, before it becomes the newest one again.

    Args:
        table: the table, pinned to the version.
        files: the version's files, with those of the sidecar.
        live: the files of the newest version, which are known to exist.

    Raises:
        TrinityError: INVALID_ARGUMENTS naming a missing file.
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
    """Return the oldest version that a vacuum keeps: the newest one at ``older_than_ms`` since the epoch (L10)."""
    kept = [entry for entry, following in pairwise(history) if following.timestamp_ms > older_than_ms]
    return (kept[0] if kept else history[-1]).version


_Found = TypeVar("_Found")


_SHOWN: Final = 5


def newest_readable(
    table: TableHandle, newest: int, read: Callable[[int], _Found], is_damaged: Callable[[int], bool]
) -> tuple[_Found, tuple[LostCommit, ...]]:
    """Return the newest readable version, and the commits after it.

    Args:
        table: the table.
        newest: number of the newest version.
        read: reads a version.
        is_damaged: returns whether an unreadable version is damaged itself, and not only built on a damaged one.

    Raises:
        TrinityError: BAD_DATA if no version can be read; any other error of ``read``, as the version may be undamaged.
    """
    lost: list[LostCommit] = []
    for number in range(newest, -1, -1):
        try:
            return read(number), tuple(lost)
        except TrinityError as error:
            if error.code != "BAD_DATA":
                raise
            lost.append(LostCommit(number, error.message, is_damaged(number)))
    raise no_readable_version(table)


def repair_preview(
    table: TableHandle, back_to: int, lost: Sequence[LostCommit], confirmed: int | None, *, dry_run: bool
) -> RepairResult | None:
    """Return the result of a repair that changes nothing; None if the repair is to be made.

    Args:
        table: the table.
        back_to: the newest readable version.
        lost: the commits after it.
        confirmed: the version that the caller names; needed if some of these commits are undamaged.
        dry_run: True to change nothing.

    Raises:
        TrinityError: INVALID_ARGUMENTS without that confirmation, naming the commits that would be lost.
    """
    if dry_run or not lost:
        return RepairResult(back_to, skipped=not lost, back_to=back_to, lost=tuple(lost))
    _check_confirmed(table, back_to, lost, confirmed)
    return None


def _check_confirmed(table: TableHandle, back_to: int, lost: Sequence[LostCommit], confirmed: int | None) -> None:
    whole = [commit for commit in lost if not commit.damaged]
    if confirmed == back_to or (confirmed is None and not whole):
        return
    named = "; ".join(f"{_name(commit)}: {commit.what}" for commit in lost[:_SHOWN])
    rest = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    why = f"not to version {confirmed}" if confirmed is not None else f"{len(whole)} of which may be whole"
    raise TrinityError(
        "INVALID_ARGUMENTS",
        f"A repair of '{table.full_name}' goes back to version {back_to}, {why}, and loses {len(lost)} commits: "
        f"{named}{rest}. Restore the damaged file from a copy; or say version={back_to} to lose them.",
    )


def _name(commit: LostCommit) -> str:
    return "a version whose number is not known" if commit.version is None else f"version {commit.version}"


def repair_result(done: CommitResult, back_to: int, lost: Sequence[LostCommit]) -> RepairResult:
    """Return the result of a finished repair."""
    return RepairResult(**asdict(done), back_to=back_to, lost=tuple(lost))
