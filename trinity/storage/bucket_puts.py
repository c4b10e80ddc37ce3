"""Puts if absent in a bucket, with a known outcome.

A request may take effect although its answer is lost, is an error, or never comes. A client that retries by itself
cannot tell its writer's own object from another writer's. So the client here makes each request once. After an unclear
answer the object is read, until it is known who put it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.errors import AlreadyExists, OutcomeUnknown, asking_again
from trinity.storage.store_kind import PATIENCE

_STATUS: Final = re.compile(r"status code: (\d{3})")
_SERVER_ERROR: Final = 500
_NOT_IMPLEMENTED: Final = 501
_BUSY: Final = frozenset({408, 409, 425, 429})
"""HTTP status codes of temporary refusals."""


class _Doubt(IntEnum):
    """The degree of uncertainty whether a request put its object."""

    NONE = 0
    ANSWERED = 1
    """The request has ended, and may have taken effect."""
    UNDER_WAY = 2
    """The request may still take effect."""


def put_settled(data: bytes, put: Callable[[], None], read: Callable[[], bytes]) -> bool:
    """Put an object if there is none. Return True once it is there, False if another writer's object is there.

    Args:
        data: the object's bytes, which no other writer puts.
        put: makes one request.
        read: reads the object.

    Raises:
        TrinityError: the request was refused, and the object is not there.
        OutcomeUnknown: nobody can say whether it is there, or will be.
    """
    doubt = _Doubt.NONE
    for spent in asking_again():
        try:
            put()
            return True
        except (TrinityError, AlreadyExists) as error:
            failure = error
        doubt, there = max(doubt, _doubt_after(failure)), None
        ends = spent > PATIENCE.value.total_seconds() or not _may_pass(failure)
        if doubt and ends:
            there = _look_up(read)
            if isinstance(there, bytes):
                return there == data
            if there is None and isinstance(failure, AlreadyExists):  # it was removed meanwhile, with its table
                return False
            if there is None and doubt is _Doubt.ANSWERED:
                doubt = _Doubt.NONE
        if ends and not doubt:
            raise failure
    raise OutcomeUnknown(_text(failure) if there is None else f"{_text(failure)} Then: {_text(there)}") from failure


def _look_up(read: Callable[[], bytes]) -> bytes | TrinityError | None:
    """Return the object's bytes; None if there is no object; the error if the read fails."""
    try:
        return read()
    except FileNotFoundError:
        return None
    except TrinityError as error:
        return error


def _doubt_after(error: Exception) -> _Doubt:
    """Return how uncertain the outcome of a failed request is.

    An object that exists may be the writer's own: proxies and stores repeat requests by themselves.
    """
    status, text = _status(error), str(error.__cause__)
    if isinstance(error, AlreadyExists) or (status and status >= _SERVER_ERROR):
        return _Doubt.ANSWERED
    unanswered = status is None and "HTTP error" in text and "kind: Connect" not in text
    return _Doubt.UNDER_WAY if unanswered and _is_trouble(error) else _Doubt.NONE


def _may_pass(error: Exception) -> bool:
    """Return whether an error may pass, so that a retry may succeed."""
    if isinstance(error, AlreadyExists) or isinstance(error.__cause__, FileNotFoundError):
        return False
    if (status := _status(error)) is None:
        return _is_trouble(error)
    return status in _BUSY or (status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED)


def _text(found: object) -> str:
    return found.message if isinstance(found, TrinityError) else f"{found} is there."


def _is_trouble(error: Exception) -> bool:
    return isinstance(error, TrinityError) and error.code == "FILESYSTEM_ERROR"


def _status(error: Exception) -> int | None:
    """Return the HTTP status of the answer; None without an answer."""
    found = _STATUS.search(str(error.__cause__))
    return int(found[1]) if found else None
