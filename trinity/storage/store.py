"""The seam to storage: a folder of objects with an atomic put-if-absent.

Local disk today; S3, GCS and Azure come through the same obstore calls. Paths are relative to the store's
root, ``/`` between parts.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from trinity.errors import TrinityError

if TYPE_CHECKING:
    from obstore.store import LocalStore

__all__ = ["AlreadyExists", "Entry", "ObjectStore", "file_uri", "local_path", "spark_path"]

_NOT_IN_URI: Final = re.compile(r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]""")
_PATTERN: Final = re.compile(r"([\[\]{}*?\\])")


class AlreadyExists(Exception):
    """Another writer put this object first."""


@dataclass(frozen=True)
class Entry:
    """One object: path relative to the store, bytes, milliseconds since the epoch."""

    path: str
    size: int
    modified_ms: int


def local_path(location: str) -> str:
    """The absolute path of a location given as a path or a ``file:`` URI.

    Raises:
        TrinityError: NOT_SUPPORTED for other schemes.
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    elif "://" in location:
        raise TrinityError("NOT_SUPPORTED", f"Location '{location}': only local paths and file: URIs are supported.")
    return os.path.abspath(os.path.expanduser(location))


def file_uri(path: str) -> str:
    """An absolute path as Spark's ``_metadata.file_path`` writes it."""
    return "file:" + _NOT_IN_URI.sub(lambda found: quote(found[0]), path)


def spark_path(path: str) -> str:
    """A file's path as Spark's readers take it, which expand patterns otherwise."""
    return _PATTERN.sub(r"\\\1", path)


class ObjectStore:
    """The objects below one folder.

    Raises, from every method:
        TrinityError: FILESYSTEM_ERROR naming the object, for anything but a missing one.
    """

    def __init__(self, location: str) -> None:
        self.root = local_path(location)
        self._client: LocalStore | None = None

    @property
    def client(self) -> LocalStore:
        """The obstore client, made by the first use (an object store of a table that is never read costs nothing)."""
        if self._client is None:
            from obstore.store import LocalStore

            self._client = LocalStore(self.root, mkdir=True)
        return self._client

    def path(self, name: str) -> str:
        """Absolute path of an object, as Spark and pyarrow open it."""
        return f"{self.root}/{name}"

    def relative(self, path: str) -> str:
        """The part of an absolute path below this store's root; other paths as they are."""
        return path.removeprefix(self.root + "/")

    def exists(self, name: str) -> bool:
        """True when the object, or a folder of that name, exists."""
        return os.path.exists(self.path(name))

    def get(self, name: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when it is missing."""
        with _errors(self.path(name)):
            return bytes(self.client.get(name).bytes())

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Puts an object whole, or not at all.

        On disk through a synced temporary file and a link: the name appears with its bytes, also after a
        crash. (``O_EXCL`` would leave a torn file.)

        Raises:
            AlreadyExists: another writer was first.
        """
        target = Path(self.path(name))
        with _errors(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            try:
                with open(temporary, "xb") as out:
                    out.write(data)
                    out.flush()
                    os.fsync(out.fileno())
                os.link(temporary, target)
            except FileExistsError as taken:
                raise AlreadyExists(name) from taken
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(target.parent)

    def list(self, prefix: str = "", *, after: str | None = None) -> list[Entry]:
        """Objects below a folder, sorted by path; only those behind ``after`` when given."""
        if not self.exists(prefix):
            return []
        with _errors(self.path(prefix)):
            found = [
                Entry(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
                for page in self.client.list(prefix or None, offset=after)
                for meta in page
            ]
        return sorted(found, key=lambda e: e.path)

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those already gone do not matter."""
        for name in names:
            with _errors(self.path(name)):
                Path(self.path(name)).unlink(missing_ok=True)


class _errors:
    """Maps the errors of the operating system and of obstore to FILESYSTEM_ERROR, at one seam."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, AlreadyExists | FileNotFoundError | TrinityError):
            return
        from obstore.exceptions import BaseError

        if isinstance(error, PermissionError):
            raise TrinityError("PERMISSION_DENIED", f"No permission for '{self.path}': {error}.") from error
        if isinstance(error, OSError | BaseError):
            raise TrinityError("FILESYSTEM_ERROR", f"'{self.path}' cannot be read or written: {error}.") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
