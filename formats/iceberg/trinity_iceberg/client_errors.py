"""Errors of the libraries by which PyIceberg reaches a catalog: HTTP, databases, AWS.

Nothing is imported for them: they take long to load, and a library that is not loaded has not raised an error.
"""

from __future__ import annotations

import sys
from itertools import chain

__all__ = ["broken_integrity", "failed", "unanswered", "unsent"]


def failed() -> tuple[type[Exception], ...]:
    """Return the errors of all the libraries."""
    return _classes(
        ("requests.exceptions", "RequestException"),
        ("sqlalchemy.exc", "SQLAlchemyError"),
        ("botocore.exceptions", "BotoCoreError", "ClientError"),
    )


def unanswered() -> tuple[type[Exception], ...]:
    """Return the errors of requests that got no answer, or none from the catalog itself."""
    return _classes(("requests.exceptions", "RequestException"), ("botocore.exceptions", "HTTPClientError"))


def unsent() -> tuple[type[Exception], ...]:
    """Return the errors of requests that never reached the catalog."""
    return _classes(
        ("requests.exceptions", "ConnectTimeout"),
        ("botocore.exceptions", "ConnectTimeoutError", "EndpointConnectionError"),
    )


def broken_integrity() -> tuple[type[Exception], ...]:
    """Return the error of a database in which somebody else was first."""
    return _classes(("sqlalchemy.exc", "IntegrityError"))


def _classes(*wanted: tuple[str, ...]) -> tuple[type[Exception], ...]:
    """Return classes of modules, of each its name and theirs; those of modules that are loaded."""
    return tuple(chain.from_iterable(_of_module(*names) for names in wanted))


def _of_module(module: str, *names: str) -> list[type[Exception]]:
    found = (getattr(sys.modules.get(module), name, None) for name in names)
    return [kind for kind in found if kind is not None]
