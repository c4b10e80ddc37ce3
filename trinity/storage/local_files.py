"""Files of a local disk as objects: put whole or not at all, by links and renames.

Paths are absolute. Errors are those of the operating system.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.errors import AlreadyExists, OutcomeUnknown
from trinity.storage.local_sync import make_folder

__all__ = [
    "exists",
    "link",
    "link_new",
    "move",
    "names_in",
    "read",
    "remove",
    "remove_below",
    "replace",
    "set_modified",
    "stat",
]

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""Error numbers of file systems without hard links."""
_UNCLEAR: Final = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR)
"""Error numbers after which the link may exist."""
_PAUSES_S: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
"""Pauses between attempts to ask a disk that does not answer."""
_ABSENT: Final = (FileNotFoundError, NotADirectoryError)


def read(path: str) -> bytes:
    """Return a file's bytes. Raises FileNotFoundError."""
    with open(path, "rb") as file:
        return file.read()


def exists(path: str) -> bool:
    """Return whether a file or a folder exists."""
    return os.path.exists(path)


def stat(path: str) -> tuple[int, int, str] | None:
    """Return a file's size in bytes, its modification time in nanoseconds and its inode; None if it is missing."""
    try:
        found = os.stat(path)
    except _ABSENT:
        return None
    return found.st_size, found.st_mtime_ns, str(found.st_ino)


def names_in(folder: str) -> list[str]:
    """Return the names in a folder, in no order; none without a folder."""
    try:
        return os.listdir(folder)
    except _ABSENT:
        return []


def link_new(path: str, data: bytes) -> None:
    """Put a new file, through a synced temporary file and a hard link.

    The name appears with its bytes, also after a crash; ``O_EXCL`` could leave a torn file. After an unclear answer
    the put has succeeded if the name is a link to our own file. The folder is not synced.

    Raises:
        AlreadyExists: another writer was first.
        OutcomeUnknown: the disk does not say who was first.
        TrinityError: NOT_SUPPORTED on a file system without hard links.
    """
    target = Path(path)
    make_folder(target.parent)
    with _temporary(target, data) as temporary:
        _link(temporary, target)


def link(path: str, new: str) -> None:
    """Give a file a second path. Raises FileNotFoundError; and AlreadyExists, OutcomeUnknown as :func:`link_new`."""
    _link(Path(path), Path(new))


def replace(path: str, data: bytes, *, sync: bool) -> None:
    """Put a file, or replace it, by renaming a temporary one. The folder is not synced.

    Args:
        path: the file's path.
        data: its bytes.
        sync: whether they are on disk before the rename.
    """
    with _temporary(Path(path), data, sync=sync) as temporary:
        temporary.replace(path)


@contextmanager
def _temporary(target: Path, data: bytes, *, sync: bool = True) -> Iterator[Path]:
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as out:
            out.write(data)
            out.flush()
            if sync:
                os.fsync(out.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _link(temporary: Path, target: Path) -> None:
    try:
        os.link(temporary, target)
    except OSError as error:
        same = _same(temporary, target)
        if same:  # NFS repeats a request whose answer was lost, and then says EEXIST
            return
        if same is None and (isinstance(error, FileExistsError) or error.errno in _UNCLEAR):
            raise OutcomeUnknown(f"the disk says of it {error.strerror!r}, and cannot be asked") from error
        if isinstance(error, FileExistsError):
            raise AlreadyExists(target.name) from error
        if error.errno in _NO_LINKS:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"'{target.parent}' is on a file system without hard links ({error.strerror}), on which of two writers "
                "both could win; put the table on a local disk or on NFS.",
            ) from error
        raise


def _same(temporary: Path, target: Path) -> bool | None:
    """Return whether both names are links to one file; None when the disk does not say."""
    for pause in _PAUSES_S:
        try:
            return os.path.samefile(temporary, target)
        except _ABSENT:
            return False
        except OSError:
            time.sleep(pause)
    return None


def move(path: str, new: str) -> None:
    """Give a file another path, in one step; it replaces a file there. Raises FileNotFoundError."""
    os.rename(path, new)


def set_modified(path: str, modified_ns: int) -> None:
    """Set a file's modification time. Raises FileNotFoundError."""
    os.utime(path, ns=(modified_ns, modified_ns))


def remove(path: str) -> None:
    """Remove a file; one already gone does not matter."""
    Path(path).unlink(missing_ok=True)


def remove_below(folder: str) -> None:
    """Remove a folder with all its content, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)
