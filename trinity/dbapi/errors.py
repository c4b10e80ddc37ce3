"""PEP 249's exceptions. Each is a TrinityError, so it has a code; one from PostgreSQL has its SQLSTATE too."""

from __future__ import annotations

from typing import Any, Final

from trinity.calls import as_trinity, translated_by
from trinity.errors import ErrorCode, TrinityError
from trinity.journal.batches import RowError


class Warning(Exception):  # noqa: A001 - PEP 249's name
    """PEP 249's class of warnings; nothing raises it."""


class Error(TrinityError):
    """Base of all errors of this module.

    Attributes:
        sqlstate: PostgreSQL's SQLSTATE, when the error comes from there.
    """

    sqlstate: str | None = None


class InterfaceError(Error):
    """Wrong use of the module or the model: a closed connection, a model that does not fit the database."""


class DatabaseError(Error):
    """Any error of the database."""


class DataError(DatabaseError):
    """A value that cannot be processed: out of range, division by zero."""


class OperationalError(DatabaseError):
    """An error beyond the program's control: the connection is lost, or another transaction committed first."""


class IntegrityError(DatabaseError):
    """A violation of a key, NOT NULL or check."""


class InternalError(DatabaseError):
    """An unexpected state of the database: the transaction has failed already."""


class ProgrammingError(DatabaseError):
    """A wrong statement: syntax, unknown names, wrong number of parameters."""


class NotSupportedError(DatabaseError):
    """A statement or call that is understood, and not supported."""


_CLASSES: Final[dict[str, type[Error]]] = {
    "NOT_SUPPORTED": NotSupportedError,
    "CONSTRAINT_VIOLATION": IntegrityError,
    "NUMERIC_VALUE_OUT_OF_RANGE": DataError,
    "BAD_DATA": DataError,
    "TRANSACTION_CONFLICT": OperationalError,
    "COMMIT_STATE_UNKNOWN": OperationalError,
    "FILESYSTEM_ERROR": OperationalError,
    "CONFIGURATION_INVALID": InterfaceError,
    "GENERIC_INTERNAL_ERROR": InternalError,
}
"""Code -> class; all others are ProgrammingError."""

_CODES: Final[dict[str, ErrorCode]] = {
    "0A": "NOT_SUPPORTED",
    "21": "SUBQUERY_MULTIPLE_ROWS",
    "22003": "NUMERIC_VALUE_OUT_OF_RANGE",
    "22": "BAD_DATA",
    "23": "CONSTRAINT_VIOLATION",
    "25": "INVALID_ARGUMENTS",
    "40003": "COMMIT_STATE_UNKNOWN",
    "40": "TRANSACTION_CONFLICT",
    "54": "NOT_SUPPORTED",
    "42501": "PERMISSION_DENIED",
    "42601": "SYNTAX_ERROR",
    "42701": "DUPLICATE_COLUMN_NAME",
    "42703": "COLUMN_NOT_FOUND",
    "42804": "TYPE_MISMATCH",
    "42P01": "TABLE_NOT_FOUND",
    "42P06": "SCHEMA_ALREADY_EXISTS",
    "42P07": "TABLE_ALREADY_EXISTS",
    "3F000": "SCHEMA_NOT_FOUND",
    "55P03": "TRANSACTION_CONFLICT",
    "57": "TRANSACTION_CONFLICT",
    "08007": "COMMIT_STATE_UNKNOWN",
    "08": "CONFIGURATION_INVALID",
    "28": "PERMISSION_DENIED",
}
"""SQLSTATE, or its class -> code; all others are INVALID_ARGUMENTS."""


def translated(error: TrinityError) -> Error:
    """Return PEP 249's exception for an error of Trinity."""
    if isinstance(error, Error):
        return error
    return _CLASSES.get(error.code, ProgrammingError)(error.code, error.message)


def _from_psycopg(error: Any) -> Error:
    """Return PEP 249's exception for one of psycopg, whose classes have the same names."""
    names = (c.__name__ for c in type(error).__mro__)
    known = {c.__name__: c for c in Error.__subclasses__() + DatabaseError.__subclasses__()}
    kind = next((known[n] for n in names if n in known), DatabaseError)
    state: str | None = error.sqlstate
    code = _CODES.get(state or "", _CODES.get((state or "")[:2], "INVALID_ARGUMENTS"))
    if state is None and kind is OperationalError:
        code = "CONFIGURATION_INVALID"
    found = kind(code, str(error).strip())
    found.sqlstate = state
    return found


def _pep249_error(error: Exception) -> Error:
    """Return PEP 249's exception for any exception."""
    if isinstance(error, RowError):
        inner = _pep249_error(error.error)
        return _at_row(inner, error)
    if type(error).__module__.partition(".")[0] == "psycopg":
        return _from_psycopg(error)
    return translated(as_trinity(error))


def _at_row(error: Error, row: RowError) -> Error:
    found = type(error)(error.code, f"{RowError.prefix(row.row, row.count)}{error.message}")
    found.sqlstate = error.sqlstate
    return found


api: Final = translated_by(_pep249_error)
"""The decorator of public functions and classes here: :func:`trinity.calls.public` with PEP 249's errors."""
