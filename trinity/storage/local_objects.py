"""The objects of a local disk: files, by their absolute paths, put whole or not at all by links and renames.

Files, their folders and the folders above are synced to the disk before a commit names them. A commit reads a table and
then puts a file by its path. The lock of the folder keeps others from replacing the table in between: else the commit
to the old table would go to the new one.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from trinity.errors import TrinityError
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import AlreadyExists, OutcomeUnknown, after_commit, storage_errors
from trinity.storage.local_folders import is_folder, walk
from trinity.storage.location import Location, local_path

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
"""Error numbers of file systems without hard links."""
_UNCLEAR: Final = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR)
"""Error numbers after which the link may exist."""
_PAUSES_S: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
"""Seconds to wait before each further question to a disk that does not answer."""
_ABSENT: Final = (FileNotFoundError, NotADirectoryError)


class LocalObjects:
    """The objects of the local disk (:class:`~trinity.storage.entries.Objects`)."""

    @cached_property
    def filesystem(self) -> FileSystem:
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return is_folder(path)

    def stat(self, path: str) -> Stat | None:
        try:
            found = os.stat(path)
        except _ABSENT:
            return None
        return Stat(found.st_size, found.st_mtime_ns, str(found.st_ino))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def list(self, root: str, prefix: str, after: str | None) -> Iterable[Entry]:
        import obstore

        if not self.exists(f"{root}/{prefix}" if prefix else root):
            return
        for page in obstore.store.LocalStore(root, mkdir=True).list(prefix or None, offset=after):
            for meta in page:
                yield Entry(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))

    def names_in(self, folder: str) -> Sequence[str]:
        try:
            return os.listdir(folder)
        except _ABSENT:
            return []

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        for path in walk(root, hidden, endings):
            if (found := self.stat(path)) is not None:
                yield path, found

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        """Put a new file, through a synced temporary file and a hard link.

        The name appears with all bytes, also after a crash; opening it with ``O_EXCL`` could leave a torn file.
        """
        make_folder(_folder(path))
        with _temporary(path, data) as temporary:
            _link(temporary, path)
        _sync_around(path)

    def link(self, path: str, new: str) -> None:
        _link(path, new)
        _sync_around(new)

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        with _temporary(path, data, sync=sync) as temporary:
            os.replace(temporary, path)
        if sync:
            _sync_around(path)

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with storage_errors(path):
                Path(path).unlink(missing_ok=True)

    def remove_below(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def make_folder(self, path: str, *, sync: bool) -> None:
        make_folder(path, sync=sync)

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        make_folder(_folder(path))
        return SyncedWriter(path, new=new, listed=listed)

    def move(self, path: str, new: str) -> None:
        os.rename(path, new)

    def set_modified(self, path: str, modified_ns: int) -> None:
        os.utime(path, ns=(modified_ns, modified_ns))

    def sync(self, path: str) -> None:
        _sync_file(path)

    def sync_folders(self, folders: Iterable[str]) -> None:
        sync_folders(folders)


@contextmanager
def _temporary(path: str, data: bytes, *, sync: bool = True) -> Iterator[str]:
    """Write a temporary file beside a path, and remove it at the end."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with open(temporary, "xb") as out:
            out.write(data)
            out.flush()
            if sync:
                os.fsync(out.fileno())
        yield temporary
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _link(path: str, new: str) -> None:
    """Give a file a second path. If the answer is unclear, it has taken effect if the path is a link to the file.

    Raises:
        FileNotFoundError: there is no such file.
        AlreadyExists: another writer was first.
        OutcomeUnknown: the disk does not say who was first.
        TrinityError: NOT_SUPPORTED on a file system without hard links.
    """
    try:
        os.link(path, new)
    except OSError as error:
        same = _same_file(path, new)
        if same:  # NFS repeats a request whose answer was lost, and then says EEXIST
            return
        if same is None and (isinstance(error, FileExistsError) or error.errno in _UNCLEAR):
            raise OutcomeUnknown(f"the disk says of it {error.strerror!r}, and cannot be asked") from error
        if isinstance(error, FileExistsError):
            raise AlreadyExists(new.rpartition("/")[2]) from error
        if error.errno in _NO_LINKS:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"'{_folder(new)}' is on a file system without hard links ({error.strerror}), on which of two writers "
                "both could win; put the table on a local disk or on NFS.",
            ) from error
        raise


def _same_file(path: str, other: str) -> bool | None:
    """Return whether both names are links to one file; None if the disk does not answer."""
    for pause in _PAUSES_S:
        try:
            return os.path.samefile(path, other)
        except _ABSENT:
            return False
        except OSError:
            time.sleep(pause)
    return None


def _sync_around(path: str) -> None:
    after_commit(f"'{path}' is in place, its folder not synced", lambda: sync_folders([_folder(path)]))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


_CANNOT: Final = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""Error numbers of file systems that cannot sync a folder (SMB, FUSE), and of folders that may not be listed."""


def _sync_file(path: str | os.PathLike[str]) -> None:
    """Wait until the bytes of a file, which its writer has closed, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Wait until the entries of folders are on disk, each once, as far as the file system can."""
    for folder in dict.fromkeys(os.fspath(folder) for folder in folders):
        try:
            _sync_file(folder)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise


def make_folder(folder: str | os.PathLike[str], *, sync: bool = True) -> None:
    """Make a folder and the missing ones above it, and sync their entries.

    Args:
        folder: the folder.
        sync: False if a crash of the machine may lose the folder.
    """
    whole = Path(folder)
    missing = list(takewhile(lambda f: not f.exists(), (whole, *whole.parents))) if sync else []
    while True:
        try:
            whole.mkdir(parents=True, exist_ok=True)
            break
        except FileExistsError:  # a file has that path; or a folder had it, which was removed with a dropped table
            if os.path.lexists(whole) and not whole.is_dir():
                raise
    sync_folders(made.parent for made in missing)


class SyncedWriter(io.BufferedWriter):
    """A stream into a file, which is on disk once the stream is closed.

    Args:
        path: the file's path, in a folder that exists.
        new: False to replace an existing file.
        listed: whether the file's name is on disk by then too.

    Raises:
        FileExistsError: the file exists, and ``new`` is True.
    """

    def __init__(self, path: str, *, new: bool, listed: bool) -> None:
        super().__init__(io.FileIO(path, "x" if new else "w"))
        self._path = path
        self._listed = listed

    def close(self) -> None:
        """Sync and close the file."""
        if self.closed:
            return
        self.flush()
        os.fsync(self.fileno())
        super().close()
        if self._listed:
            sync_folders([os.path.dirname(self._path)])


_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.002


@contextmanager
def folder_lock(location: str, *, exclusive: bool = False) -> Iterator[None]:
    """Hold a shared lock on a folder, or an exclusive one. A missing folder is not locked.

    The kernel releases the lock when the process dies. On a file system without locks nothing is locked.

    Args:
        location: the table's folder.
        exclusive: True for an exclusive lock, as for the removal of the folder: wait until nobody else holds a lock.

    Raises:
        TrinityError: TRANSACTION_CONFLICT if others held it for a minute.
    """
    if not Location.of(location).on_disk:  # in a bucket a new table never lies where an old one did
        yield
        return
    folder, deadline = local_path(location), time.monotonic() + _PATIENCE_S
    while True:
        handle = _open_folder(folder)
        if handle is None:
            yield
            return
        try:
            if _try_lock(handle, exclusive) and _is_same_folder(handle, folder):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() > deadline:
            raise TrinityError("TRANSACTION_CONFLICT", f"Others keep committing to '{folder}'; try again later.")
        time.sleep(_PAUSE_S)


def _open_folder(folder: str) -> int | None:
    with suppress(OSError):  # the next access to the table reports the error
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return None


def _try_lock(handle: int, exclusive: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no locks
        return True
    return True


def _is_same_folder(handle: int, folder: str) -> bool:
    """Return whether the folder is still the one that was opened."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False
