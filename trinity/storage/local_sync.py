"""Syncs files, their folders and the folders above to a local disk, before a commit names them."""

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
    """Wait until a file's bytes are on disk. It takes a path, since the writer has closed the file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Wait until the entries of folders are on disk, each once, as far as the file system can."""
    for folder in dict.fromkeys(os.fspath(folder) for folder in folders):
        try:
            sync_file(folder)
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
        except FileExistsError:  # a file is there; or a folder was, which was then removed with a dropped table
            if os.path.lexists(whole) and not whole.is_dir():
                raise
    sync_folders(made.parent for made in missing)


class SyncedWriter(io.BufferedWriter):
    """A stream into a file, which is on disk once the stream is closed.

    Args:
        path: the file's path, in a folder that exists.
        new: False to replace an existing file.
        listed: whether its name is then on disk too.

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
