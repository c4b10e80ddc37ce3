"""A hold on a table's folder on a local disk: while one process commits, none drops the folder and makes another.

A commit looks at a table and then puts a file by its path. A folder that is replaced in between would get the file of
a table that it is not.
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

__all__ = ["held"]

_PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.002


@contextmanager
def held(location: str, *, alone: bool = False) -> Iterator[None]:
    """Holds a folder, as many commits at once do; of a folder that is not there nothing is held.

    The kernel lets go when the process dies. A file system without such locks does without.

    Args:
        location: the table's folder.
        alone: True for who takes the folder away: waits until nobody else holds it.

    Raises:
        TrinityError: TRANSACTION_CONFLICT when others held it for a minute.
    """
    if not Location.of(location).on_disk:  # where a new table never lies where another one did
        yield
        return
    folder, deadline = local_path(location), time.monotonic() + _PATIENCE_S
    while True:
        handle = _opened(folder)
        if handle is None:
            yield
            return
        try:
            if _locked(handle, alone) and _same(handle, folder):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() > deadline:
            raise TrinityError("TRANSACTION_CONFLICT", f"Others keep committing to '{folder}'; try again later.")
        time.sleep(_PAUSE_S)


def _opened(folder: str) -> int | None:
    with suppress(OSError):  # who then looks at the table says what is wrong
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return None


def _locked(handle: int, alone: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # not on this file system
        return True
    return True


def _same(handle: int, folder: str) -> bool:
    """True when the folder is still the one that was opened."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False
