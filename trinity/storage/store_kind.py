"""The kind of an object store: all that tells S3 from Google's and from Azure's. Each is a module of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trinity.errors import ErrorCode
from trinity.spi import SparkRequirements
from trinity.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from pyarrow.fs import FileSystem

__all__ = ["ATTEMPTS", "PATIENCE", "SILENCE", "Cause", "StoreKind", "patience"]

Cause = tuple[str, ErrorCode, str]
"""A pattern of what libraries say of an error, the error's code, and what is wrong with what helps.

The last one is told of ``{bucket}``, ``{region}`` and ``{said}``.
"""

ATTEMPTS: Final = 6
SILENCE: Final = timedelta(seconds=10)
"""The time for which a store may say nothing."""
PATIENCE: Final = timedelta(seconds=18)
"""The time for which a request is made again, so that an error is told within half a minute."""
UNSURE: Final = timedelta(seconds=60)
"""The time for which an outcome that is not known is asked for."""
FIRST_PAUSE: Final = timedelta(milliseconds=100)
LONGEST_PAUSE: Final = timedelta(seconds=3)
"""The pauses between requests grow from the first one to this."""


class StoreKind(ABC):
    """A kind of object store.

    A store is a text: the beginning of the URIs of all that is in it, ``s3://bucket``. What is behind ``//`` is its
    authority.
    """

    name: ClassVar[str]
    """For messages."""
    container: ClassVar[str] = "bucket"
    """The word for what has the objects, for messages."""
    scheme: ClassVar[str]
    """The one of a store's text."""
    schemes: ClassVar[tuple[str, ...]]
    """All that are understood."""
    hadoop_scheme: ClassVar[str]
    """The one of Hadoop's file system."""
    example: ClassVar[str]
    """A place in such a store, for messages."""
    options: ClassVar[type[StoreOptions]]
    causes: ClassVar[tuple[Cause, ...]]
    """The first pattern that is found counts."""
    arrow_sign: ClassVar[str | None] = None
    """The word by which Arrow's own client tells of the store's errors; None where it is not used."""
    at_once: ClassVar[int] = 1000
    """Objects that one request deletes."""
    deletes_others: ClassVar[bool] = True
    """True where the others are gone when a request tells of one that was missing."""
    longest_copy: ClassVar[int | None] = None
    """The bytes of the largest object that one request copies; None where there is no such limit."""
    spark: ClassVar[SparkRequirements]
    """The requirement of Hadoop's file system."""
    pyiceberg_prefix: ClassVar[str]
    """The beginning of PyIceberg's own properties for such stores."""

    @abstractmethod
    def authority(self, text: str) -> str | None:
        """The normal form of an authority, None for what cannot be one."""

    def bucket(self, store: str) -> str:
        """The name of the bucket."""
        return store.partition("://")[2]

    @abstractmethod
    def client(self, store: str, options: StoreOptions, *, once: bool = False) -> ObjectStore:
        """Return the obstore client of a store.

        Args:
            store: the bucket.
            options: resolved ones.
            once: True for one that makes each request once, whatever the answer is.
        """

    def filesystem(self, options: StoreOptions) -> FileSystem | None:
        """Arrow's own client, which opens objects as ``bucket/key``; None where it cannot take the options.

        Args:
            options: resolved ones.
        """
        return None

    @abstractmethod
    def hadoop_settings(self, store: str, options: StoreOptions) -> Mapping[str, str]:
        """The settings by which Hadoop's file system reaches a store; options are resolved.

        Raises:
            TrinityError: NOT_SUPPORTED naming an option that the file system does not know.
        """

    def hadoop_needs(self, options: StoreOptions) -> Mapping[str, str]:
        """Settings that a store needs, too, and that hold for others as well: who starts Spark has to make them.

        Args:
            options: resolved ones.
        """
        return {}

    def hadoop_patience(self, store: str) -> Mapping[str, str]:
        """The settings by which Hadoop's file system gives up within half a minute; by itself it goes on for longer.

        Those that Spark was started with hold before these.

        Args:
            store: the bucket.
        """
        return {}


def patience(options: StoreOptions, *, once: bool) -> dict[str, Any]:
    """Return the part of obstore's options about waiting and asking again, and about TLS that may be missing."""
    return {
        "client_options": {
            "allow_http": bool(options.allow_http),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": SILENCE,
            "timeout": timedelta(minutes=10),
        },
        "retry_config": {
            "max_retries": 0 if once else ATTEMPTS,
            "retry_timeout": PATIENCE,
            "backoff": {"init_backoff": FIRST_PAUSE, "max_backoff": LONGEST_PAUSE, "base": 2},
        },
    }
