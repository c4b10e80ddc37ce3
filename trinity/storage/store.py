"""The seam to storage: a folder of objects with an atomic put-if-absent.

Local disk today; S3, GCS and Azure come through the same obstore calls. Paths are relative to the store's
root, ``/`` between parts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from trinity.errors import TrinityError
from trinity.secrets import logger
from trinity.storage.sync import make_folder, sync_folders

if TYPE_CHECKING:
    from obstore.store import LocalStore

__all__ = [
    "AlreadyExists",
    "Entry",
    "ObjectStore",
    "after_commit",
    "file_uri",
    "local_path",
    "spark_path",
    "system_trouble",
]

_log = logger(__name__)
_LACKING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)
_SIGNS: Final = ("Too many open files", "No space left on device", "Cannot allocate memory", "OutOfMemoryError")
"""The same as other libraries and Java say it."""
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""What file systems without hard links answer."""
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


_SCHEME: Final = re.compile(r"[A-Za-z][\w+.-]+:(/|.*://)")
"""How a URI begins; ``pathlib`` makes one slash of two."""


def local_path(location: str) -> str:
    """The absolute path of a location given as a path or a ``file:`` URI.

    Raises:
        TrinityError: NOT_SUPPORTED for other schemes.
    """
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    elif _SCHEME.match(location):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Location '{location}': only local paths and file: URIs are supported. Mount the store as a folder, or "
            "write there by the format's own writers.",
        )
    return os.path.abspath(os.path.expanduser(location))


def file_uri(path: str) -> str:
    """An absolute path as Spark's ``_metadata.file_path`` writes it."""
    return "file:" + _NOT_IN_URI.sub(lambda found: quote(found[0]), path)


def spark_path(path: str) -> str:
    """A file's path as SQL over Parquet files by their paths takes it, which expands patterns."""
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
        crash. (``O_EXCL`` would leave a torn file.) An answer that is not clear is settled by looking: it stands
        when the name is a link to our own file. From then on nothing is told but success.

        Raises:
            AlreadyExists: another writer was first.
            TrinityError: NOT_SUPPORTED on a file system without hard links.
        """
        target = Path(self.path(name))
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        with _errors(str(target)):
            make_folder(target.parent)
            try:
                with open(temporary, "xb") as out:
                    out.write(data)
                    out.flush()
                    os.fsync(out.fileno())
                _link(temporary, target)
            finally:
                with contextlib.suppress(OSError):
                    temporary.unlink()
        after_commit(f"'{target}' is in place, its folder not synced", lambda: sync_folders([target.parent]))

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

        if (trouble := system_trouble(error, self.path)) is not None:
            raise trouble from error
        if isinstance(error, OSError | BaseError):
            raise TrinityError("FILESYSTEM_ERROR", f"'{self.path}' cannot be read or written: {error}.") from error


def system_trouble(error: BaseException, path: str) -> TrinityError | None:
    """For an error of reading a file: what the system lacks for it, where the file itself is not at fault.

    That is permission, file handles, memory or space, a disk that answers. A missing or corrupt file gives None.
    """
    if isinstance(error, PermissionError):
        return TrinityError("PERMISSION_DENIED", f"No permission for '{path}': {error}.")
    short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _LACKING)
    if short or any(sign in str(error) for sign in _SIGNS):
        return TrinityError(
            "FILESYSTEM_ERROR", f"'{path}' cannot be read now, for want of what the system has: {error}."
        )
    return None


def _link(temporary: Path, target: Path) -> None:
    try:
        os.link(temporary, target)
    except OSError as error:
        if _same(temporary, target):  # NFS repeats a request whose answer was lost, and then says EEXIST
            return
        if isinstance(error, FileExistsError):
            raise AlreadyExists(target.name) from error
        if error.errno in _NO_LINKS:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"'{target.parent}' is on a file system without hard links ({error.strerror}), on which of two writers "
                "both could win; put the table on a local disk or on NFS.",
            ) from error
        raise


def _same(temporary: Path, target: Path) -> bool:
    try:
        return os.path.samefile(temporary, target)
    except OSError:
        return False


def after_commit(what: str, work: Callable[[], object]) -> None:
    """Does what is useful after a commit and not part of it; when it fails, that is logged, and the commit stands.

    Args:
        what: what it means when the work fails.
        work: the work.
    """
    try:
        work()
    except Exception as error:
        _log.warning("%s: %s", what, error)
