"""The location of a table, a folder or a file, and its text for each reader. Nothing here touches a disk."""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from trinity.errors import TrinityError
from trinity.storage.store_kind import StoreKind
from trinity.storage.store_kinds import KINDS, by_scheme, kind_of

_SCHEME: Final = re.compile(r"[A-Za-z][\w+.-]+:(/|.*://)")
"""The beginning of a URI; ``pathlib`` turns two slashes into one."""
_STORED: Final = re.compile(r"(?P<scheme>[a-z0-9]+)://?(?P<authority>[^/]*)(?P<path>/.*)?", re.DOTALL)
_EXAMPLES: Final = ", ".join(kind.example.replace("/path", "/…") for kind in KINDS)
_NOT_IN_URI: Final = re.compile(r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]""")
_PATTERN: Final = re.compile(r"([\[\]{}*?\\])")


@dataclass(frozen=True)
class Location:
    """A path in a store, in normal form: equal paths are equal locations. Made by :meth:`of` or :meth:`of_uri`.

    Its text, in handles and file lists, is an absolute path, or a URI without escapes such as ``s3://bucket/path``.
    :meth:`of` reads that text back.

    Attributes:
        path: path from the root of the store: ``/``, or ``/`` before each part and none at the end; no part is ``.``
            or ``..``.
        store: beginning of a bucket's URIs, such as ``s3://bucket``, ``gs://bucket`` or
            ``abfss://container@account.dfs.core.windows.net``; empty for the local disk.
    """

    path: str
    store: str = ""

    @classmethod
    def of(cls, text: str) -> Location:
        """Return the location of a path, or of a URI without escapes, as table formats write it.

        A relative path begins at the working directory, ``~`` at a home directory.

        Raises:
            TrinityError: NOT_SUPPORTED for schemes other than ``file`` and those of object stores;
                CONFIGURATION_INVALID for a text that cannot name a bucket.
        """
        if text.startswith("file:"):
            text = "/" + text.removeprefix("file:").lstrip("/")
        elif (found := _store_of(text)) is not None:
            kind, authority, path = found
            return cls(_normal(os.path.normpath(path)), f"{kind.scheme}://{authority}")
        elif _SCHEME.match(text):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Location '{text}': only local paths, file: URIs, {_EXAMPLES} are supported. Mount the store as a "
                "folder, or write there by the format's own writers.",
            )
        return cls(_normal(os.path.abspath(os.path.expanduser(text))))

    @classmethod
    def of_uri(cls, text: str) -> Location:
        """Return the location of an escaped URI, such as Spark's ``_metadata.file_path``, or of a path, unescaped."""
        return cls.of(text if text.startswith("/") else unquote(text))

    def __str__(self) -> str:
        return self.store + self.path

    def __fspath__(self) -> str:
        """Return the path on the local disk. Raises NOT_SUPPORTED for a location in an object store."""
        if self.store:
            raise TrinityError("NOT_SUPPORTED", f"'{self}' is in an object store, and is no file of this machine.")
        return self.path

    @property
    def on_disk(self) -> bool:
        """True for a location on the local disk."""
        return not self.store

    @property
    def kind(self) -> StoreKind[Any]:
        """The kind of object store. Raises KeyError for the local disk."""
        return kind_of(self.store)

    @property
    def bucket(self) -> str:
        """The name of the bucket, or of Azure's container; empty for the local disk."""
        return self.kind.bucket(self.store) if self.store else ""

    @property
    def key(self) -> str:
        """The key of a bucket's object: the path without its first ``/``."""
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
        """Return the location of names below this one; a name may have several parts (``a/b``), and ``..`` goes up."""
        return replace(self, path=_normal(os.path.normpath("/".join((self.path, *names)))))

    def relative(self, other: Location) -> str | None:
        """Return the name below this location that another one has, empty for this one; None if it is not below."""
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
        """The URI without escapes, as in Iceberg's metadata."""
        return f"{self.store or 'file://'}{self.path}"

    @property
    def for_spark(self) -> str:
        """The text for Spark's readers, which get an option not to expand patterns."""
        return f"{self._hadoop}{self.path}"

    @property
    def for_sql(self) -> str:
        """The text for SQL that reads files by path, which expands patterns."""
        return self._hadoop + _PATTERN.sub(r"\\\1", self.path)

    @property
    def for_arrow(self) -> str:
        """The text for :attr:`~trinity.storage.ObjectStore.filesystem`."""
        return f"{self.bucket}{self.path}"

    @property
    def _hadoop(self) -> str:
        """The store in the spelling of Hadoop's file systems; empty for the local disk."""
        return f"{self.kind.hadoop_scheme}:{self.store.partition(':')[2]}" if self.store else ""


def _normal(path: str) -> str:
    return "/" + path.lstrip("/")  # ``normpath`` keeps two slashes at the beginning, as POSIX says


def _store_of(text: str) -> tuple[StoreKind[Any], str, str] | None:
    """Return the kind of store, the authority in normal form and the path; None for a text of no object store."""
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
    """Return True for an absolute path or a URI, False for a name below another location."""
    return text.startswith(("/", "file:")) or in_bucket(text)


def in_bucket(text: str) -> bool:
    """Return whether a text that :meth:`Location.of` takes is in an object store."""
    found = None if text.startswith("/") else _STORED.match(text)
    return found is not None and by_scheme(found["scheme"]) is not None


def local_path(location: str) -> str:
    """Return the text of a location in normal form."""
    return str(Location.of(location))


def path_sql(column: str) -> str:
    """Return Spark SQL for :func:`local_path` of a column whose texts begin with ``file:///``, ``file:/`` or ``/``."""
    local = f"concat('/', ltrim('/', substr({column}, 6)))"
    return f"CASE WHEN startswith({column}, 'file:') THEN {local} ELSE {column} END"


def file_uri(path: str) -> str:
    """Return the :attr:`~Location.uri` of a path."""
    return Location.of(path).uri
