"""Repairs: which commits may be lost, and which losses need a confirmation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Final, TypeVar

from trinity.errors import TrinityError
from trinity.spi import CommitResult, LostCommit, RepairResult, TableHandle
from trinity.storage.readable import no_readable_version

__all__ = ["newest_readable", "repair_preview", "repair_result"]

_V = TypeVar("_V")

_SHOWN: Final = 5


def newest_readable(
    table: TableHandle, newest: int, read: Callable[[int], _V], is_damaged: Callable[[int], bool]
) -> tuple[_V, tuple[LostCommit, ...]]:
    """Return the newest readable version, and the commits after it.

    Args:
        table: the table.
        newest: number of the newest version.
        read: reads a version.
        is_damaged: returns whether an unreadable version is damaged itself, and not only built on a damaged one.

    Raises:
        TrinityError: BAD_DATA when no version can be read; any other error of ``read``, since the version may be whole.
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
        TrinityError: INVALID_ARGUMENTS without that confirmation, saying what would be lost.
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
