"""A catalog that does not answer, or says no: told by its name, in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchPropertyException,
    NoSuchTableError,
    OAuthError,
    RESTError,
    ServerError,
    UnauthorizedError,
)
from pyiceberg.table import Table
from requests.exceptions import ConnectTimeout, RequestException
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from trinity.errors import TrinityError, first_line

try:
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
    )
except ImportError:  # what Glue needs is an extra
    _AWS: tuple[type[Exception], ...] = ()
    _UNANSWERED_BY_AWS: tuple[type[Exception], ...] = ()
    _UNSENT: tuple[type[Exception], ...] = (ConnectTimeout,)
else:
    _AWS = (BotoCoreError, ClientError)
    _UNANSWERED_BY_AWS = (HTTPClientError,)
    _UNSENT = (ConnectTimeout, ConnectTimeoutError, EndpointConnectionError)

__all__ = [
    "TROUBLE",
    "catalog_errors",
    "catalog_trouble",
    "is_denied",
    "is_refused",
    "load_table",
    "may_be_under_way",
    "of_another_kind",
]

TROUBLE: Final[tuple[type[Exception], ...]] = (RESTError, RequestException, SQLAlchemyError, *_AWS)
"""The errors by which a catalog, or the way to it, fails; what it knows better of names are others."""
_UNANSWERED: Final[tuple[type[Exception], ...]] = (
    CommitStateUnknownException,
    ServerError,
    RequestException,
    *_UNANSWERED_BY_AWS,
)
"""Errors of requests to which no answer came, or none of the catalog's own."""
_DENIED: Final = (ForbiddenError, UnauthorizedError, OAuthError, AuthorizationExpiredError)
_DENIED_BY_AWS: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""Codes of AWS' errors for keys, and for what they allow; ``NoCredentialsError`` and its like are told as they are."""


_DENIED_STATES: Final = frozenset({"28000", "28P01", "42501"})
_DENIED_TEXTS: Final = (
    "attempt to write a readonly database",
    "no pg_hba.conf entry",  # connections that are refused have no state
    "password authentication failed",
    "permission denied",
)


def catalog_trouble(catalog: str, error: Exception) -> TrinityError:
    """The error of a call that a catalog did not answer.

    Args:
        catalog: its name.
        error: one of :data:`TROUBLE`.
    """
    said = first_line(error)
    if is_denied(error):
        return TrinityError(
            "PERMISSION_DENIED", f"Catalog '{catalog}' refuses: {said}. Check its credentials, and what they allow."
        )
    return TrinityError("FILESYSTEM_ERROR", f"Catalog '{catalog}' cannot be read or written: {said}.")


def is_refused(error: TrinityError) -> bool:
    """Return True where a catalog, or the seam to storage, has told that it did nothing, or told its outcome."""
    unsent = "NewConnectionError" in repr(error.__cause__) or isinstance(error.__cause__, _UNSENT)
    return unsent or error.code in ("PERMISSION_DENIED", "COMMIT_STATE_UNKNOWN")


def may_be_under_way(error: Exception) -> bool:
    """Return True for an error after which a catalog may still do what it was asked: its answer did not come."""
    cause = error.__cause__
    return isinstance(cause, _UNANSWERED) or (isinstance(cause, DBAPIError) and cause.connection_invalidated)


def is_denied(error: Exception) -> bool:
    """Return True for an error by which a catalog, or the database or the file that it is in, allows no access."""
    return isinstance(error, _DENIED) or _aws_code(error) in _DENIED_BY_AWS or _denied_by_database(error)


def _denied_by_database(error: Exception) -> bool:
    """Return True for what PostgreSQL says of users and rights, and SQLite of a file that may not be written."""
    said = getattr(error, "orig", None)
    return getattr(said, "sqlstate", None) in _DENIED_STATES or any(text in str(said) for text in _DENIED_TEXTS)


def _aws_code(error: Exception) -> str | None:
    answer = getattr(error, "response", None)  # of requests' errors it is no mapping
    return answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None


def load_table(catalog: Catalog, name: tuple[str, ...]) -> Table:
    """The table of a name as it is now.

    Raises:
        NoSuchTableError: there is none, or one of another kind; and what PyIceberg raises else.
    """
    try:
        return catalog.load_table(name)
    except (NoSuchPropertyException, ValueError) as error:
        if of_another_kind(error):
            raise NoSuchTableError(f"{'.'.join(name)} is none of Iceberg's") from error
        raise


def of_another_kind(error: Exception) -> bool:
    """True for what PyIceberg says of an entry of Glue that is no table of Iceberg's."""
    return isinstance(error, NoSuchPropertyException) or "missing Parameters property" in str(error)


@contextlib.contextmanager
def catalog_errors(catalog: str) -> Iterator[None]:
    """Maps the errors of :data:`TROUBLE`, but for IntegrityError: somebody else was first."""
    try:
        yield
    except IntegrityError:
        raise
    except TROUBLE as error:
        raise catalog_trouble(catalog, error) from error
