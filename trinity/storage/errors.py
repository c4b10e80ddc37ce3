"""Failures of disks and object stores as TrinityErrors, which say what is wrong with which store, and what helps.

A request that a store refuses with credentials from a catalog is made once more with newer ones.
"""

from __future__ import annotations

import errno
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from trinity.errors import TrinityError, system_code
from trinity.loggers import logger
from trinity.storage.grants import is_granted, options_at, options_known, renew_refused
from trinity.storage.location import Location, in_bucket
from trinity.storage.store_kind import FIRST_PAUSE, LONGEST_PAUSE, UNSURE, Cause
from trinity.storage.store_kinds import kind_of

_log = logger("trinity.storage")
_LACKING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)
_SIGNS: Final = ("Too many open files", "No space left on device", "Cannot allocate memory", "OutOfMemoryError")
"""Texts by which other libraries and Java report the errors of :data:`_LACKING`."""


class AlreadyExists(Exception):
    """The error of a put that another writer of the same object forestalled."""


class OutcomeUnknown(Exception):
    """The error of a put of which nobody can say whether it took effect."""


class storage_errors:
    """A context that translates errors of the operating system and of obstore to TrinityErrors that name a path."""

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
    """Return COMMIT_STATE_UNKNOWN, for a commit that may or may not have taken effect.

    Args:
        what: the object or table that was to be written, as the beginning of the message.
        reason: the error that came instead of an answer.
    """
    return TrinityError(
        "COMMIT_STATE_UNKNOWN",
        f"{what} may have been written, and may not: {str(reason).rstrip('.')}. Look at the table's history once there "
        "are answers again, or repeat the statement with the same txn, which never writes rows twice. What it has "
        "written stays.",
    )


@contextmanager
def undoing(what: str, why: TrinityError) -> Iterator[None]:
    """Raise COMMIT_STATE_UNKNOWN if the block fails to take back a step of a statement that failed.

    Args:
        what: the step's subject, as the beginning of the message.
        why: the statement's error.
    """
    try:
        yield
    except TrinityError as error:
        raise commit_unknown(what, f"{why.message} It cannot be taken back: {error.message}") from why


def system_trouble(error: BaseException, path: str) -> TrinityError | None:
    """Return the error for a failed read of a file if the file itself is not at fault; else None.

    At fault may be missing permissions, a lack of file handles, memory or space, or a disk that does not answer.
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

    sign = kind_of(path).arrow_sign
    return object_trouble(error, path) if sign and sign in str(error) else None


def after_commit(what: str, work: Callable[[], object]) -> None:
    """Do follow-up work that is not part of a commit. A failure is logged, and the commit stands.

    Args:
        what: the consequence of a failure, for the log.
        work: the work.
    """
    try:
        work()
    except Exception as error:
        _log.warning("%s: %s", what, error)


_COMMON: Final[tuple[Cause, ...]] = (
    (
        r"403 Forbidden|AccessDenied|ACCESS_DENIED|PermissionDenied",
        "PERMISSION_DENIED",
        "the key has no permission for this. Trinity lists, reads, puts and deletes objects below the warehouse.",
    ),
    (
        r"SlowDown|SLOW_DOWN|503 Service|THROTTLING|Too Many Requests|ServerBusy",
        "FILESYSTEM_ERROR",
        "the store is throttling, and went on for longer than it was asked again. Try again later.",
    ),
    (
        r"builder error|URL scheme is not allowed",
        "CONFIGURATION_INVALID",
        "the address is not accepted: without TLS it needs allow_http=True in storage_options.",
    ),
    (
        (
            r"error sending request|NETWORK_CONNECTION|timed? ?out|connection (?:closed|reset|refused)|dns error"
            r"|curlCode|HTTP error|incomplete message"
        ),
        "FILESYSTEM_ERROR",
        "it does not answer ({reason}). Check the endpoint and the network.",
    ),
)
"""Causes that all stores share, tried after a store's own."""
_OF_GRANTED: Final = (
    "the key that the catalog hands out for it was refused ({reason}). It has to be allowed to list, read, put and "
    "delete objects there: see to the catalog's role, or try again if the key has expired meanwhile."
)
_REGION: Final = re.compile(r"<Region>([\w-]{1,40})</Region>|expecting '([\w-]{1,40})'")


def object_trouble(error: BaseException, path: str) -> TrinityError:
    """Return the error of a failed request about an object, told from the library's error."""
    location, text = Location.of(path), plain_text(error)
    service = options_known(location).service
    for signs, code, remedy in (*location.kind.causes, *_COMMON):
        if re.search(signs, f"{type(error).__name__} {text}", re.IGNORECASE):
            region = _REGION.search(text)
            named = f" ('{region[1] or region[2]}')" if region else ""
            if code == "PERMISSION_DENIED" and is_granted(location):
                remedy = _OF_GRANTED
            reason = remedy.format(bucket=location.bucket, region=named, reason=text[-160:].strip(". "))
            return TrinityError(code, f"'{path}' at {service}: {reason}")
    return TrinityError("FILESYSTEM_ERROR", f"'{path}' at {service} cannot be read or written: {text[:300]}.")


@contextmanager
def reporting_store_errors(path: str) -> Iterator[None]:
    """Raise obstore's errors as TrinityErrors; a missing object stays a FileNotFoundError.

    OSErrors count too: obstore's readers and writers of files raise them.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        raise object_trouble(error, path) from error


def without_conditional_put(path: str) -> TrinityError:
    """Return the error for a store that overwrites an object despite a conditional put."""
    location = Location.of(path)
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"The store of {location.kind.container} '{location.bucket}' at {options_known(location).service} has no "
        "conditional put (put if there is none): of two commits at once one would be lost. Use a store, or a version "
        "of it, that has it.",
    )


def plain_text(error: BaseException) -> str:
    """Return the text of an error, without the debug output that obstore adds."""
    return " ".join(str(error).partition("\n\nDebug source:")[0].split())


_R = TypeVar("_R")


def with_renewed_credentials(location: Location, call: Callable[[], _R]) -> _R:
    """Return the result of a call about a location; retry it once, with newer credentials, if the store refuses them.

    Args:
        location: an object or a folder.
        call: makes the request; after a refusal it can be called again.
    """
    if location.on_disk or not is_granted(location):
        return call()
    used = options_at(location)
    try:
        return call()
    except (TrinityError, OSError) as error:
        trouble = error if isinstance(error, TrinityError) else store_trouble(error, str(location))
        if trouble is None or trouble.code != "PERMISSION_DENIED" or not renew_refused(location, used):
            raise
        return call()


def asking_again() -> Iterator[float]:
    """Yield the seconds since the start, as a schedule of retries: at once, then after growing pauses, for a minute."""
    began, pause = time.monotonic(), FIRST_PAUSE.value.total_seconds()
    while (spent := time.monotonic() - began) < UNSURE.value.total_seconds():
        yield spent
        time.sleep(random.uniform(pause / 2, pause))
        pause = min(pause * 2, LONGEST_PAUSE.value.total_seconds())
