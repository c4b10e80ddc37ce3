"""Requests with keys that a catalog gives out: a refused one is retried once with newer keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from trinity.errors import TrinityError
from trinity.storage.errors import store_trouble
from trinity.storage.grants import is_granted, options_at, renew_refused
from trinity.storage.location import Location

__all__ = ["with_renewed_keys"]

_R = TypeVar("_R")


def with_renewed_keys(location: Location, call: Callable[[], _R]) -> _R:
    """Return the result of a call about a location. If the store refuses its keys, retry once with newer ones.

    Args:
        location: an object or a folder.
        call: leaves nothing when it is refused.
    """
    if not is_granted(location):
        return call()
    used = options_at(location)
    try:
        return call()
    except (TrinityError, OSError) as error:
        trouble = error if isinstance(error, TrinityError) else store_trouble(error, str(location))
        if trouble is None or trouble.code != "PERMISSION_DENIED" or not renew_refused(location, used):
            raise
        return call()
