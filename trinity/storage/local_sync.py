"""Syncing to a local disk, before a commit, of what it names: files, the folders that list them, the folders above."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final

__all__ = ["SyncedWriter", "make_folder", "sync_file", "sync_folders"]

_CANNOT: Final = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""Error numbers of file systems that cannot sync a folder (SMB, FUSE), and of folders that may not be listed."""


def sync_file(path: str | os.PathLike[str]) -> None:
    """Waits until a file's bytes are on disk. By path: whoever wrote it has closed it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Waits until the entries of folders are on disk, each once, as far as the file system can."""
    for folder in dict.fromkeys(os.fspath(folder) for folder in folders):
        try:
            sync_file(folder)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise


def make_folder(folder: str | os.PathLike[str], *, sync: bool = True) -> None:
    """Makes a folder and those above it that are missing, on disk as entries of the ones above.

    Args:
        folder: the folder.
        sync: False where a crash of the machine may take it.
    """
    whole = Path(folder)
    missing = list(takewhile(lambda f: not f.exists(), (whole, *whole.parents))) if sync else []
    while True:
        try:
            whole.mkdir(parents=True, exist_ok=True)
            break
        except FileExistsError:  # a file; or a folder that was gone at the next look, with a table that was dropped
            if os.path.lexists(whole) and not whole.is_dir():
                raise
    sync_folders(made.parent for made in missing)


class SyncedWriter(io.BufferedWriter):
    """A file that is written by and by, and on disk when it is closed.

    Args:
        path: the file's, in a folder that is there.
        new: False for a file that may take the place of another.
        listed: whether its name is on disk by then, too.

    Raises:
        FileExistsError: there is a file, and this one is new.
    """

    def __init__(self, path: str, *, new: bool, listed: bool) -> None:
        super().__init__(io.FileIO(path, "x" if new else "w"))
        self._path = path
        self._listed = listed

    def close(self) -> None:
        """Syncs the file."""
        if self.closed:
            return
        self.flush()
        os.fsync(self.fileno())
        super().close()
        if self._listed:
            sync_folders([os.path.dirname(self._path)])
