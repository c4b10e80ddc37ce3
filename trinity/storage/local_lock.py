"""Locks of table folders on a local disk: while one process commits, no other drops the folder and makes a new one.

A commit reads a table and then puts a file by its path. If the folder were replaced in between, a new table would get
a file of the old one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.location import Location, local_path

__all__ = ["folder_lock"]

_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.002


@contextmanager
def folder_lock(location: str, *, alone: bool = False) -> Iterator[None]:
    """Hold a shared lock on a folder, or an exclusive one. A missing folder is not locked.

    The kernel releases the lock when the process dies. On a file system without locks nothing is locked.

    Args:
        location: the table's folder.
        alone: True for an exclusive lock, to remove the folder: waits until nobody else holds it.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when others held it for a minute.
    """
    if not Location.of(location).on_disk:  # in a bucket a new table never lies where an old one did
        yield
        return
    folder, deadline = local_path(location), time.monotonic() + _PATIENCE_S
    while True:
        handle = _opened(folder)
        if handle is None:
            yield
            return
        try:
            if _locked(handle, alone) and _is_same_folder(handle, folder):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() > deadline:
            raise TrinityError("TRANSACTION_CONFLICT", f"Others keep committing to '{folder}'; try again later.")
        time.sleep(_PAUSE_S)


def _opened(folder: str) -> int | None:
    with suppress(OSError):  # the next access to the table reports it
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return None


def _locked(handle: int, alone: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
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
