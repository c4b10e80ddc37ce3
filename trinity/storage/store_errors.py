"""Translates failures of object stores to TrinityErrors: what is wrong with which store, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.grants import is_granted, options_known
from trinity.storage.location import Location
from trinity.storage.store_kind import Cause

__all__ = ["object_trouble", "plain_text", "reporting_store_errors", "without_conditional_put"]

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
    """Return the error of a failed request about an object, by the library's error."""
    location, text = Location.of(path), plain_text(error)
    place = options_known(location).place
    for signs, code, remedy in (*location.kind.causes, *_COMMON):
        if re.search(signs, f"{type(error).__name__} {text}", re.IGNORECASE):
            region = _REGION.search(text)
            named = f" ('{region[1] or region[2]}')" if region else ""
            if code == "PERMISSION_DENIED" and is_granted(location):
                remedy = _OF_GRANTED
            reason = remedy.format(bucket=location.bucket, region=named, reason=text[-160:].strip(". "))
            return TrinityError(code, f"'{path}' at {place}: {reason}")
    return TrinityError("FILESYSTEM_ERROR", f"'{path}' at {place} cannot be read or written: {text[:300]}.")


@contextmanager
def reporting_store_errors(path: str) -> Iterator[None]:
    """Raise obstore's errors as TrinityErrors; a missing object stays a FileNotFoundError.

    Its readers and writers of files raise OSError and PermissionError.
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
        f"The store of {location.kind.container} '{location.bucket}' at {options_known(location).place} has no "
        "conditional put (put if there is none): of two commits at once one would be lost. Use a store, or a version "
        "of it, that has it.",
    )


def plain_text(error: BaseException) -> str:
    """Return the text of an error, without the debug output that obstore adds."""
    return " ".join(str(error).partition("\n\nDebug source:")[0].split())
