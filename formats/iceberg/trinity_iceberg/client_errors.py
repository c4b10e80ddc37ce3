"""Errors of the libraries by which PyIceberg reaches a catalog: HTTP, databases, AWS. Loaded when something fails."""

from typing import Final

from requests.exceptions import ConnectTimeout, RequestException
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

try:
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
    )
except ImportError:  # Glue's packages are an extra
    _AWS: tuple[type[Exception], ...] = ()
    _UNANSWERED_BY_AWS: tuple[type[Exception], ...] = ()
    _UNSENT_BY_AWS: tuple[type[Exception], ...] = ()
else:
    _AWS = (BotoCoreError, ClientError)
    _UNANSWERED_BY_AWS = (HTTPClientError,)
    _UNSENT_BY_AWS = (ConnectTimeoutError, EndpointConnectionError)

__all__ = ["FAILED", "UNANSWERED", "UNSENT", "DBAPIError", "IntegrityError"]

FAILED: Final[tuple[type[Exception], ...]] = (RequestException, SQLAlchemyError, *_AWS)
"""Errors of the libraries."""
UNANSWERED: Final[tuple[type[Exception], ...]] = (RequestException, *_UNANSWERED_BY_AWS)
"""Errors of requests that got no answer, or none from the catalog itself."""
UNSENT: Final[tuple[type[Exception], ...]] = (ConnectTimeout, *_UNSENT_BY_AWS)
"""Errors of requests that never reached the catalog."""
