"""Errors of a catalog that does not answer, or refuses: they are reported in one line, with the catalog's name.

They come from the libraries by which PyIceberg reaches catalogs: HTTP, databases, AWS.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Final

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchPropertyException,
    OAuthError,
    RESTError,
    ServerError,
    UnauthorizedError,
)

from trinity.errors import TrinityError, first_line

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
"""Codes of AWS' errors for keys and their rights; ``NoCredentialsError`` and the like keep their own message."""
_DENIED_STATES: Final = frozenset({"28000", "28P01", "42501"})
_DENIED_TEXTS: Final = (
    "attempt to write a readonly database",
    "no pg_hba.conf entry",  # the error of a refused connection has no SQLSTATE, but only a text
    "password authentication failed",
    "permission denied",
)


def trouble() -> tuple[type[Exception], ...]:
    """Return the classes of errors of a catalog that fails or is not reached, but not of its answers about names."""
    return (RESTError, *failed())


def catalog_trouble(catalog: str, error: Exception) -> TrinityError:
    """Return the error of a failed call to a catalog."""
    reason = first_line(error)
    if is_denied(error):
        return TrinityError(
            "PERMISSION_DENIED", f"Catalog '{catalog}' refuses: {reason}. Check its credentials, and what they allow."
        )
    return TrinityError("FILESYSTEM_ERROR", f"Catalog '{catalog}' cannot be read or written: {reason}.")


def is_refused(error: TrinityError) -> bool:
    """Return whether an error needs no look at the table.

    Then the request was not sent, access was denied, or the outcome is reported as unknown already.
    """
    not_sent = "NewConnectionError" in repr(error.__cause__) or isinstance(error.__cause__, _unsent())
    return not_sent or error.code in ("PERMISSION_DENIED", "COMMIT_STATE_UNKNOWN")


def may_be_under_way(error: Exception) -> bool:
    """Return whether a catalog may still execute a request after an error, since it has not answered."""
    cause = error.__cause__
    invalidated: bool | None = getattr(cause, "connection_invalidated", None)  # of a database's errors
    if invalidated is not None:
        return invalidated
    return isinstance(cause, (CommitStateUnknownException, ServerError, *_unanswered()))


def is_denied(error: Exception) -> bool:
    """Return whether an error means that a catalog, or its database or file, denies access."""
    return isinstance(error, _DENIED) or _aws_code(error) in _DENIED_BY_AWS or _denied_by_database(error)


def _denied_by_database(error: Exception) -> bool:
    """Return whether PostgreSQL reports a lack of rights, or SQLite a file that may not be written."""
    cause = getattr(error, "orig", None)
    return getattr(cause, "sqlstate", None) in _DENIED_STATES or any(text in str(cause) for text in _DENIED_TEXTS)


def _aws_code(error: Exception) -> str | None:
    answer = getattr(error, "response", None)  # in requests' errors it is no mapping
    return answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None


def of_another_kind(error: Exception) -> bool:
    """Return whether PyIceberg's error means that an entry of Glue is no Iceberg table."""
    return isinstance(error, NoSuchPropertyException) or "missing Parameters property" in str(error)


@contextlib.contextmanager
def catalog_errors(catalog: str) -> Iterator[None]:
    """Map the errors of :func:`trouble`, except IntegrityError, which means that another writer was first."""
    try:
        yield
    except trouble() as error:
        if isinstance(error, _broken_integrity()):
            raise
        raise catalog_trouble(catalog, error) from error


def failed() -> tuple[type[Exception], ...]:
    """Return the classes of errors of the libraries that are loaded."""
    return _classes(
        ("requests.exceptions", "RequestException"),
        ("sqlalchemy.exc", "SQLAlchemyError"),
        ("botocore.exceptions", "BotoCoreError", "ClientError"),
    )


def _unanswered() -> tuple[type[Exception], ...]:
    """Return the errors of requests that got no answer, or none from the catalog itself."""
    return _classes(("requests.exceptions", "RequestException"), ("botocore.exceptions", "HTTPClientError"))


def _unsent() -> tuple[type[Exception], ...]:
    """Return the errors of requests that never reached the catalog."""
    return _classes(
        ("requests.exceptions", "ConnectTimeout"),
        ("botocore.exceptions", "ConnectTimeoutError", "EndpointConnectionError"),
    )


def _broken_integrity() -> tuple[type[Exception], ...]:
    """Return the error of a database to which another writer has written first."""
    return _classes(("sqlalchemy.exc", "IntegrityError"))


def _classes(*wanted: tuple[str, ...]) -> tuple[type[Exception], ...]:
    """Return the classes named for each module, for modules that are loaded."""
    return tuple(chain.from_iterable(_of_module(*names) for names in wanted))


def _of_module(module: str, *names: str) -> list[type[Exception]]:
    found = (getattr(sys.modules.get(module), name, None) for name in names)
    return [kind for kind in found if kind is not None]
