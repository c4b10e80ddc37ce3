"""The interface of kinds of object stores: S3, Google's and Azure's. Each kind is a module of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from trinity.errors import ErrorCode
from trinity.limits import Limit
from trinity.spi import SparkRequirements
from trinity.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from pyarrow.fs import FileSystem

_O = TypeVar("_O", bound=StoreOptions)

Cause = tuple[str, ErrorCode, str]
"""A cause of errors: a pattern for libraries' error texts, the error's code, and a message with a remedy.

The message may contain ``{bucket}``, ``{region}`` and ``{reason}``.
"""

_ATTEMPTS: Final = 6
SILENCE: Final = Limit(timedelta(seconds=10))
"""How long a store may stay silent."""
PATIENCE: Final = Limit(timedelta(seconds=18))
"""How long a request is retried, so that an error is raised within half a minute."""
UNSURE: Final = Limit(timedelta(seconds=60))
"""How long a writer tries to learn an unknown outcome."""
FIRST_PAUSE: Final = Limit(timedelta(milliseconds=100))
LONGEST_PAUSE: Final = Limit(timedelta(seconds=3))
"""Pauses between requests grow from :data:`FIRST_PAUSE` to this."""


class StoreKind(ABC, Generic[_O]):
    """A kind of object store.

    A store is a text: the beginning of the URIs of its objects, such as ``s3://bucket``. The part after ``//`` is its
    authority.
    """

    name: ClassVar[str]
    """Name, for messages."""
    container: ClassVar[str] = "bucket"
    """The kind's word for a bucket, for messages."""
    scheme: ClassVar[str]
    """URI scheme of a store's text."""
    schemes: ClassVar[tuple[str, ...]]
    """All URI schemes that are understood."""
    hadoop_scheme: ClassVar[str]
    """URI scheme of Hadoop's file system."""
    example: ClassVar[str]
    """An example of a location, for messages."""
    options: ClassVar[type[StoreOptions]]
    obstore_class: ClassVar[str]
    """Name of obstore's class for such stores."""
    causes: ClassVar[tuple[Cause, ...]]
    """Causes of errors; the first one whose pattern is found counts."""
    arrow_sign: ClassVar[str | None] = None
    """Text that marks the store's errors in Arrow's own client; None where that client is not used."""
    at_once: ClassVar[int] = 1000
    """Number of objects that one request may delete."""
    deletes_others: ClassVar[bool] = True
    """True if a delete request that reports a missing object has deleted the others."""
    longest_copy: ClassVar[Limit[int] | None] = None
    """Size in bytes of the largest object that one request can copy; None for no limit."""
    spark: ClassVar[SparkRequirements]
    """JARs and settings that Hadoop's file system needs in Spark."""
    pyiceberg_prefix: ClassVar[str]
    """Prefix of PyIceberg's own properties for such stores."""

    @abstractmethod
    def authority(self, text: str) -> str | None:
        """Return the normal form of an authority; None for a text that cannot be one."""

    def bucket(self, store: str) -> str:
        """Return the name of the bucket."""
        return store.partition("://")[2]

    def client(self, store: str, options: _O, *, once: bool = False) -> ObjectStore:
        """Return the obstore client of a store.

        Args:
            store: the bucket.
            options: resolved options.
            once: True for a client that does not retry requests.
        """
        return made_client(self, store, options, once)

    @abstractmethod
    def client_options(self, store: str, options: _O) -> Mapping[str, Any]:
        """Return obstore's options for a client; those that are None are left out."""

    def filesystem(self, options: _O) -> FileSystem | None:
        """Return Arrow's own client, which opens objects as ``bucket/key``; None where it cannot take the options."""
        return None

    @abstractmethod
    def hadoop_settings(self, store: str, options: _O) -> Mapping[str, str]:
        """Return the settings by which Hadoop's file system reaches a store; options are resolved.

        Raises:
            TrinityError: NOT_SUPPORTED naming an option that the file system does not know.
        """

    def hadoop_needs(self, options: _O) -> Mapping[str, str]:
        """Return further settings that hold for all stores, and so must be set when Spark starts."""
        return {}

    def hadoop_patience(self, store: str) -> Mapping[str, str]:
        """Return settings by which Hadoop's file system gives up within half a minute; its defaults take longer.

        Settings with which Spark was started take precedence.
        """
        return {}


@lru_cache(maxsize=64)
def made_client(kind: StoreKind[Any], store: str, options: StoreOptions, once: bool) -> ObjectStore:
    """Return the client of a store; arguments as for :meth:`StoreKind.client`."""
    import obstore

    given = kind.client_options(store, options)
    config = {name: value for name, value in given.items() if value is not None}
    made: ObjectStore = getattr(obstore.store, kind.obstore_class)(
        kind.bucket(store), config=config, **_patience(options, once=once)
    )
    return made


def _patience(options: StoreOptions, *, once: bool) -> dict[str, Any]:
    """Return obstore's options for timeouts and retries, and for endpoints without TLS."""
    return {
        "client_options": {
            "allow_http": bool(options.allow_http),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": SILENCE.value,
            "timeout": timedelta(minutes=10),
        },
        "retry_config": {
            "max_retries": 0 if once else _ATTEMPTS,
            "retry_timeout": PATIENCE.value,
            "backoff": {"init_backoff": FIRST_PAUSE.value, "max_backoff": LONGEST_PAUSE.value, "base": 2},
        },
    }
