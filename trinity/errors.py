"""The one error class that Trinity raises.

Every error carries a code, from Trino's ``StandardErrorCode`` or one of a few of Trinity's own. Programs branch on
``error.code``; people read the message: what is wrong, where, and what to do.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, Literal, get_args

from trinity.messages import presentable

__all__ = ["CODES", "HTTP_STATUS", "RETRYABLE", "ErrorCode", "TrinityError", "first_line", "nearest", "system_code"]

ErrorCode = Literal[
    "NOT_SUPPORTED",
    "SCHEMA_NOT_FOUND",
    "SCHEMA_ALREADY_EXISTS",
    "SCHEMA_NOT_EMPTY",
    "CATALOG_NOT_FOUND",
    "TABLE_NOT_FOUND",
    "TABLE_ALREADY_EXISTS",
    "COLUMN_NOT_FOUND",
    "COLUMN_ALREADY_EXISTS",
    "DUPLICATE_COLUMN_NAME",
    "TYPE_MISMATCH",
    "CONSTRAINT_VIOLATION",
    "INVALID_ARGUMENTS",
    "INVALID_TABLE_PROPERTY",
    "SYNTAX_ERROR",
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
    "SUBQUERY_MULTIPLE_ROWS",
    "TRANSACTION_CONFLICT",
    "COMMIT_STATE_UNKNOWN",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "CONFIGURATION_INVALID",
    "FILESYSTEM_ERROR",
    "BAD_DATA",
    "GENERIC_INTERNAL_ERROR",
]
"""The codes of errors, with Trino's names where Trino has one. docs/errors.md has causes and remedies."""

CODES: Final[frozenset[str]] = frozenset(get_args(ErrorCode))
"""All error codes."""

RETRYABLE: Final[frozenset[ErrorCode]] = frozenset({"TRANSACTION_CONFLICT", "FILESYSTEM_ERROR"})
"""Codes of errors after which the same call may succeed: another writer came first, or storage was unavailable."""

HTTP_STATUS: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    {
        "SYNTAX_ERROR": 400,
        "INVALID_ARGUMENTS": 400,
        "INVALID_TABLE_PROPERTY": 400,
        "COLUMN_NOT_FOUND": 400,
        "DUPLICATE_COLUMN_NAME": 400,
        "TYPE_MISMATCH": 400,
        "PERMISSION_DENIED": 403,
        "CATALOG_NOT_FOUND": 404,
        "SCHEMA_NOT_FOUND": 404,
        "TABLE_NOT_FOUND": 404,
        "SCHEMA_ALREADY_EXISTS": 409,
        "TABLE_ALREADY_EXISTS": 409,
        "COLUMN_ALREADY_EXISTS": 409,
        "SCHEMA_NOT_EMPTY": 409,
        "TRANSACTION_CONFLICT": 409,
        "CONSTRAINT_VIOLATION": 422,
        "NUMERIC_VALUE_OUT_OF_RANGE": 422,
        "MERGE_TARGET_ROW_MULTIPLE_MATCHES": 422,
        "SUBQUERY_MULTIPLE_ROWS": 422,
        "GENERIC_INTERNAL_ERROR": 500,
        "BAD_DATA": 500,
        "CONFIGURATION_INVALID": 500,
        "NOT_SUPPORTED": 501,
        "FILESYSTEM_ERROR": 503,
        "COMMIT_STATE_UNKNOWN": 504,
    }
)
"""Error code -> HTTP status with which a service may answer."""


class TrinityError(Exception):
    """The error of every failure in Trinity: a message for people, and a stable code.

    Attributes:
        code: one of :data:`CODES`; never changes between releases.
        message: one or two sentences for a person: what is wrong, where, what to do. No secret, no long value (N4).
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code: ErrorCode = code
        self.message = presentable(message)
        super().__init__(f"[{code}] {self.message}")

    def __reduce__(self) -> tuple[type[TrinityError], tuple[ErrorCode, str]]:
        """Make the error picklable: Spark's workers send it to the driver."""
        return type(self), (self.code, self.message)

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed when it is repeated (:data:`RETRYABLE`).

        COMMIT_STATE_UNKNOWN is not among these: without a ``txn`` a second call may write rows twice.
        """
        return self.code in RETRYABLE

    @property
    def http_status(self) -> int:
        """The HTTP status with which a service may answer (:data:`HTTP_STATUS`)."""
        return HTTP_STATUS[self.code]

    def to_json(self) -> str:
        """Return the error as one JSON object, the form in which an executor sends it to the driver."""
        return json.dumps({"code": self.code, "message": self.message})

    @classmethod
    def from_json(cls, text: str | bytes) -> TrinityError:
        """Return the error that :meth:`to_json` wrote."""
        fields = json.loads(text)
        return cls(fields["code"], fields["message"])


@contextmanager
def ignoring(*codes: ErrorCode) -> Iterator[None]:
    """Suppress an error of one of these codes that the block raises."""
    try:
        yield
    except TrinityError as error:
        if error.code not in codes:
            raise


def system_code(error: OSError) -> ErrorCode:
    """Return PERMISSION_DENIED for a missing permission or a read-only disk, else FILESYSTEM_ERROR."""
    denied = isinstance(error, PermissionError) or error.errno == errno.EROFS
    return "PERMISSION_DENIED" if denied else "FILESYSTEM_ERROR"


def first_line(error: object) -> str:
    """Return the first line of a text, or of an error's message, without its full stop.

    For an error without a message, return the name of its class.
    """
    lines = str(error).strip().splitlines()
    name = type(error).__name__ if isinstance(error, BaseException) else ""
    return lines[0].rstrip(" .") if lines else name


_LONGEST_NAME: Final = 255
"""Maximum characters of a name that is compared with others: a longer text takes long, and is close to no name."""


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return a hint for an error message, `` Did you mean 'x'?``; empty when no known name is close."""
    close = get_close_matches(name, known, n=1, cutoff=0.6) if len(name) <= _LONGEST_NAME else ()
    return f" Did you mean '{close[0]}'?" if close else ""


def not_pickled(what: str, remedy: str) -> TrinityError:
    """Return NOT_SUPPORTED for a session or table that was to be pickled; ``remedy`` says what to call instead."""
    return TrinityError(
        "NOT_SUPPORTED",
        f"A {what} holds connections of this process and cannot be pickled; {remedy} in the process that needs it.",
    )
