"""Failures of storage, as Trinity's errors."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Final

from trinity.errors import TrinityError, system_code
from trinity.secrets import logger
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
]

_log = logger(__name__)
_LACKING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)
_SIGNS: Final = ("Too many open files", "No space left on device", "Cannot allocate memory", "OutOfMemoryError")
"""The same as other libraries and Java say it."""


class AlreadyExists(Exception):
    """Another writer put this object first."""


class OutcomeUnknown(Exception):
    """Nobody can say whether an object was put, by what was said of it."""


class storage_errors:
    """Maps the errors of the operating system and of obstore to FILESYSTEM_ERROR, at one seam."""

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


def commit_unknown(what: str, said: object) -> TrinityError:
    """Return the error of a commit that may stand, and may not.

    Args:
        what: what was to be put or changed, as the beginning of a sentence.
        said: what was said instead of an answer.
    """
    return TrinityError(
        "COMMIT_STATE_UNKNOWN",
        f"{what} may have been written, and may not: {str(said).rstrip('.')}. Look at the table's history once there "
        "are answers again, or repeat the statement with the same txn, which never writes rows twice. What it has "
        "written stays.",
    )


def system_trouble(error: BaseException, path: str) -> TrinityError | None:
    """For an error of reading a file: what the system lacks for it, where the file itself is not at fault.

    That is permission, file handles, memory or space, a disk that answers. A missing or corrupt file gives None.
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
    """For an error of Arrow's about an object: the trouble with its store; None for others and for a missing object."""
    if not in_bucket(path) or not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
        return None
    from trinity.storage.store_errors import object_trouble

    sign = kind_of(path).arrow_sign
    return object_trouble(error, path) if sign and sign in str(error) else None


def after_commit(what: str, work: Callable[[], object]) -> None:
    """Does what is useful after a commit and not part of it; when it fails, that is logged, and the commit stands.

    Args:
        what: what it means when the work fails.
        work: the work.
    """
    try:
        work()
    except Exception as error:
        _log.warning("%s: %s", what, error)
