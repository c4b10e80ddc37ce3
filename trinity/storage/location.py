"""The place of a table, a folder or a file: one value, and how it is written for each of those who read it.

Nothing here touches a disk.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from trinity.errors import TrinityError
from trinity.storage.store_kind import StoreKind
from trinity.storage.store_kinds import KINDS, by_scheme, kind_of

__all__ = ["Location", "file_uri", "in_bucket", "is_absolute", "local_path", "path_sql", "spark_path"]

_SCHEME: Final = re.compile(r"[A-Za-z][\w+.-]+:(/|.*://)")
"""The beginning of a URI; ``pathlib`` makes one slash of two."""
_STORED: Final = re.compile(r"(?P<scheme>[a-z0-9]+)://?(?P<authority>[^/]*)(?P<path>/.*)?", re.DOTALL)
_EXAMPLES: Final = ", ".join(kind.example.replace("/path", "/…") for kind in KINDS)
_NOT_IN_URI: Final = re.compile(r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]""")
_PATTERN: Final = re.compile(r"([\[\]{}*?\\])")


@dataclass(frozen=True)
class Location:
    """A place in a store, in normal form: made by :meth:`of` or :meth:`of_uri`, equal when it is the same place.

    As a text, which handles and lists of files have, it is an absolute path, or a URI with nothing escaped, as
    ``s3://bucket/path``; :meth:`of` makes it of that again.

    Attributes:
        path: from the root of the store: ``/``, or ``/`` before each part and none at the end; no part is ``.`` or
            ``..``.
        store: the beginning of the URIs of a bucket, as ``s3://bucket``, ``gs://bucket`` or
            ``abfss://container@account.dfs.core.windows.net``; empty for the local disk.
    """

    path: str
    store: str = ""

    @classmethod
    def of(cls, text: str) -> Location:
        """The location of a path, or of a URI as table formats write it: with nothing escaped.

        A relative path begins at the working directory, ``~`` at a home.

        Raises:
            TrinityError: NOT_SUPPORTED for schemes that are neither ``file`` nor those of object stores;
                CONFIGURATION_INVALID for what cannot be a bucket.
        """
        if (found := _stored(text)) is not None:
            kind, authority, path = found
            return cls(_normal(os.path.normpath(path)), f"{kind.scheme}://{authority}")
        if text.startswith("file:"):
            text = "/" + text.removeprefix("file:").lstrip("/")
        elif _SCHEME.match(text):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Location '{text}': only local paths, file: URIs, {_EXAMPLES} are supported. Mount the store as a "
                "folder, or write there by the format's own writers.",
            )
        return cls(_normal(os.path.abspath(os.path.expanduser(text))))

    @classmethod
    def of_uri(cls, text: str) -> Location:
        """The location of a URI as Spark's ``_metadata.file_path`` has it: escaped. A path is taken as it is."""
        return cls.of(text if text.startswith("/") else unquote(text))

    def __str__(self) -> str:
        return self.store + self.path

    def __fspath__(self) -> str:
        """The path on the local disk. Raises NOT_SUPPORTED for a place in an object store."""
        if self.store:
            raise TrinityError("NOT_SUPPORTED", f"'{self}' is in an object store, and is no file of this machine.")
        return self.path

    @property
    def on_disk(self) -> bool:
        """True for a place on the local disk."""
        return not self.store

    @property
    def kind(self) -> StoreKind:
        """The kind of object store. Raises KeyError for the local disk."""
        return kind_of(self.store)

    @property
    def bucket(self) -> str:
        """The name of the bucket, or of what a kind of store calls otherwise; empty for the local disk."""
        return self.kind.bucket(self.store) if self.store else ""

    @property
    def key(self) -> str:
        """The path as a bucket's objects have it, with no ``/`` before it."""
        return self.path.removeprefix("/")

    @property
    def name(self) -> str:
        """The last part; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The location above this one; the root's is the root."""
        return replace(self, path=self.path.rpartition("/")[0] or "/")

    def join(self, *names: str) -> Location:
        """A location below this one, by names with ``/`` between parts; ``..`` goes up."""
        return replace(self, path=_normal(os.path.normpath("/".join((self.path, *names)))))

    def relative(self, other: Location) -> str | None:
        """The names by which :meth:`join` comes to the other location, which is this one or below; else None."""
        if self == other:
            return ""
        above = self.path.rstrip("/") + "/"
        if self.store != other.store:
            return None
        return other.path.removeprefix(above) if other.path.startswith(above) else None

    @property
    def uri(self) -> str:
        """The escaped URI, as Spark's ``_metadata.file_path`` writes it."""
        return f"{self._hadoop or 'file:'}{_NOT_IN_URI.sub(lambda found: quote(found[0]), self.path)}"

    @property
    def format_uri(self) -> str:
        """The URI as Iceberg's metadata has it: with nothing escaped."""
        return f"{self.store or 'file://'}{self.path}"

    @property
    def for_spark(self) -> str:
        """The text for Spark's readers, which are told to expand no patterns."""
        return f"{self._hadoop}{self.path}"

    @property
    def for_sql(self) -> str:
        """The text for SQL over files by their paths, which expands patterns."""
        return self._hadoop + _PATTERN.sub(r"\\\1", self.path)

    @property
    def for_arrow(self) -> str:
        """The text for :attr:`~trinity.storage.ObjectStore.filesystem`."""
        return f"{self.bucket}{self.path}"

    @property
    def _hadoop(self) -> str:
        """The store as Hadoop's file systems know it; empty for the local disk."""
        return f"{self.kind.hadoop_scheme}:{self.store.partition(':')[2]}" if self.store else ""


def _normal(path: str) -> str:
    return "/" + path.lstrip("/")  # two slashes at the beginning stay two in POSIX's normal form


def _stored(text: str) -> tuple[StoreKind, str, str] | None:
    """The kind of store, the authority in normal form and the path; None for what is in no object store."""
    found = _STORED.fullmatch(text)
    kind = by_scheme(found["scheme"]) if found else None
    if found is None or kind is None:
        return None
    authority = kind.authority(found["authority"])
    if authority is None:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"Location '{text}' names no {kind.container}. Write {kind.example}, and give credentials by "
            "storage_options.",
        )
    return kind, authority, found["path"] or "/"


def is_absolute(text: str) -> bool:
    """True for a path or a URI of its own, False for names below another location."""
    return text.startswith(("/", "file:")) or in_bucket(text)


def in_bucket(text: str) -> bool:
    """True for a location in an object store, as :meth:`Location.of` takes it."""
    found = None if text.startswith("/") else _STORED.match(text)
    return found is not None and by_scheme(found["scheme"]) is not None


def local_path(location: str) -> str:
    """The text of :meth:`Location.of`."""
    return str(Location.of(location))


def path_sql(column: str) -> str:
    """Spark's SQL for :func:`local_path` of a column; what it holds begins with ``file:///``, ``file:/`` or ``/``."""
    local = f"concat('/', ltrim('/', substr({column}, 6)))"
    return f"CASE WHEN startswith({column}, 'file:') THEN {local} ELSE {column} END"


def file_uri(path: str) -> str:
    """The :attr:`~Location.uri` of a path."""
    return Location.of(path).uri


def spark_path(path: str) -> str:
    """The path as :attr:`~Location.for_sql` says."""
    return Location.of(path).for_sql
