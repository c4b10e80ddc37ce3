"""What a commit names is on disk before the commit: files, the folders that list them, the folders above."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final

__all__ = ["folders_up_to", "make_folder", "sync_file", "sync_folders"]

_CANNOT: Final = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""What file systems answer that cannot sync a folder (SMB, FUSE), and ones that may not be listed."""


def sync_file(path: str | Path) -> None:
    """Waits until a file's bytes are on disk. By path: whoever wrote it has closed it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(folders: Iterable[str | Path]) -> None:
    """Waits until the entries of folders are on disk, each once, as far as the file system can."""
    for folder in dict.fromkeys(map(str, folders)):
        try:
            sync_file(folder)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise


def make_folder(folder: str | Path) -> None:
    """Makes a folder and those above it that are missing, on disk as entries of the ones above."""
    whole = Path(folder)
    missing = list(takewhile(lambda f: not f.exists(), (whole, *whole.parents)))
    whole.mkdir(parents=True, exist_ok=True)
    sync_folders(made.parent for made in missing)


def folders_up_to(root: str, folder: str) -> list[str]:
    """The folder and those above it, of which ``root`` is the last."""
    found = [folder]
    while found[-1] != root and len(found[-1]) > len(root):
        found.append(os.path.dirname(found[-1]))
    return found
