"""Translates failures of storage to TrinityErrors."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from trinity.errors import TrinityError, system_code
from trinity.loggers import logger
from trinity.storage.location import in_bucket
from trinity.storage.store_kinds import kind_of

__all__ = [
    "AlreadyExists",
    "OutcomeUnknown",
    "after_commit",
    "commit_unknown",
    "storage_errors",
    "store_trouble",
    "system_trouble",
    "taking_back",
]

_log = logger("trinity.storage")
_LACKING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)
_SIGNS: Final = ("Too many open files", "No space left on device", "Cannot allocate memory", "OutOfMemoryError")
"""Texts of such errors in other libraries and Java."""


class AlreadyExists(Exception):
    """Another writer put this object first."""


class OutcomeUnknown(Exception):
    """Nobody can say whether an object was put."""


class storage_errors:
    """Translates errors of the operating system and of obstore to TrinityErrors that name a path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, AlreadyExists | OutcomeUnknown | FileNotFoundError | TrinityError):
            return
        from obstore.exceptions import BaseError

        if (trouble := system_trouble(error, self.path)) is not None:
            raise trouble from error
        if isinstance(error, OSError | BaseError):
            raise TrinityError("FILESYSTEM_ERROR", f"'{self.path}' cannot be read or written: {error}.") from error


def commit_unknown(what: str, reason: object) -> TrinityError:
    """Return COMMIT_STATE_UNKNOWN, for a commit of which nobody can say whether it took effect.

    Args:
        what: what was to be put or changed, as the beginning of a sentence.
        reason: the error that came instead of an answer.
    """
    return TrinityError(
        "COMMIT_STATE_UNKNOWN",
        f"{what} may have been written, and may not: {str(reason).rstrip('.')}. Look at the table's history once there "
        "are answers again, or repeat the statement with the same txn, which never writes rows twice. What it has "
        "written stays.",
    )


@contextmanager
def taking_back(what: str, why: TrinityError) -> Iterator[None]:
    """Raise COMMIT_STATE_UNKNOWN when the block fails to take back a step of a statement that failed.

    Args:
        what: the step, as the beginning of a sentence.
        why: the statement's error.
    """
    try:
        yield
    except TrinityError as error:
        raise commit_unknown(what, f"{why.message} It cannot be taken back: {error.message}") from why


def system_trouble(error: BaseException, path: str) -> TrinityError | None:
    """Return the error for a failed read of a file when the file itself is not at fault; else None.

    The system may lack permission, file handles, memory, space, or a disk that answers.
    """
    if (trouble := store_trouble(error, path)) is not None:
        return trouble
    if isinstance(error, OSError) and (code := system_code(error)) == "PERMISSION_DENIED":
        return TrinityError(code, f"No permission for '{path}': {error}.")
    short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _LACKING)
    if short or any(sign in str(error) for sign in _SIGNS):
        return TrinityError(
            "FILESYSTEM_ERROR", f"'{path}' cannot be read now, for want of what the system has: {error}."
        )
    return None


def store_trouble(error: BaseException, path: str) -> TrinityError | None:
    """Return the store's error behind an Arrow error about an object; None for others and for a missing object."""
    if not in_bucket(path) or not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
        return None
    from trinity.storage.store_errors import object_trouble

    sign = kind_of(path).arrow_sign
    return object_trouble(error, path) if sign and sign in str(error) else None


def after_commit(what: str, work: Callable[[], object]) -> None:
    """Do follow-up work that is not part of a commit. A failure is logged, and the commit stands.

    Args:
        what: what a failure means, for the log.
        work: the work.
    """
    try:
        work()
    except Exception as error:
        _log.warning("%s: %s", what, error)
