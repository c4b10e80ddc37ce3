"""Folders of a local disk as schemas and tables: they are listed, made, and removed whole by a rename.

A folder that was renamed in order to be removed is in the trash: no schema or table has its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError, system_code

_TRASHED: Final = re.compile(r"\.dropped-[0-9a-f]{32}")

Folder = str | os.PathLike[str]


def is_folder(folder: Folder) -> bool:
    """Return whether there is a folder, or a link to one."""
    return os.path.isdir(folder)


def check_warehouse(folder: Folder) -> None:
    """Check that a catalog's folder can be read or made. Does not make it: the first table or schema does.

    If only the folder itself is missing, a missing permission to make it shows when it is made.

    Raises:
        TrinityError: PERMISSION_DENIED; FILESYSTEM_ERROR when a file is in the way, or no folder can be there;
            CONFIGURATION_INVALID for a text that is no path.
    """
    path = Path(folder)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.stat()
        nearest = next(found for found in (path, *path.parents) if os.path.lexists(found))
        if not nearest.is_dir():
            raise _os_error(errno.ENOTDIR)
        needed = {path: os.R_OK | os.X_OK, path.parent: os.X_OK}.get(nearest, os.W_OK | os.X_OK)
        if not os.access(nearest, needed, effective_ids=os.access in os.supports_effective_ids):
            raise _os_error(errno.EACCES)
    except ValueError as error:
        raise TrinityError("CONFIGURATION_INVALID", f"Warehouse '{folder}' is no path of a folder: {error}.") from error
    except OSError as error:
        raise TrinityError(
            system_code(error), f"Warehouse folder '{folder}' cannot be read or made: {error.strerror}."
        ) from error


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def folders_in(parent: Folder) -> Iterator[str]:
    """Yield the names of the folders in a folder, in no particular order; none if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        yield from (found.name for found in Path(parent).iterdir() if found.is_dir())


def entries(folder: Folder) -> list[str]:
    """Return the names in a folder, without those in the trash, sorted."""
    return sorted(name for name in os.listdir(folder) if not _TRASHED.fullmatch(name))


def files_below(folder: Folder) -> Iterator[str]:
    """Yield the files below a folder, as paths relative to it, without those that are removed meanwhile.

    Raises:
        OSError: a folder cannot be listed.
    """
    for parent, _, names in os.walk(folder, onerror=_raise_unless_gone):
        yield from (os.path.relpath(os.path.join(parent, name), folder) for name in names)


def _raise_unless_gone(error: OSError) -> None:
    """Raise an error of listing a folder, except for a folder that is not there, or no longer."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def walk(folder: Folder, hidden: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the absolute paths of the files below a folder that have one of the endings, in no particular order.

    Names that begin with a hidden character are skipped, and so are links to folders.
    """
    for parent, below, names in os.walk(folder):
        below[:] = [name for name in below if name[0] not in hidden]
        yield from (os.path.join(parent, n) for n in names if n[0] not in hidden and n.endswith(endings))


def make_new(folder: Folder) -> None:
    """Make a folder. Raises FileExistsError."""
    os.mkdir(folder)


def remove_empty(folder: Folder) -> None:
    """Remove an empty folder. Raises OSError for a folder that is not empty, and for a link."""
    os.rmdir(folder)


def move(folder: Folder, to: Folder) -> None:
    """Rename a folder, in one step.

    Raises:
        FileNotFoundError: there is no such folder.
        FileExistsError: there is a folder of the new name that is not empty, or a file.
    """
    try:
        os.rename(folder, to)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            raise FileExistsError(str(to)) from error
        raise


def move_to_trash(folder: Folder) -> None:
    """Move a table's folder to the trash, whole or not at all. :func:`empty_trash` removes the trash.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    path = Path(folder)
    path.rename(path.with_name(f".dropped-{uuid.uuid4().hex}"))


def empty_trash(parent: Folder) -> None:
    """Remove the trash in a schema's folder, also that of killed processes. A link is removed, its target is not."""
    with contextlib.suppress(FileNotFoundError):  # another process has dropped the schema
        for name in filter(_TRASHED.fullmatch, os.listdir(parent)):
            trashed = Path(parent, name)
            if trashed.is_symlink():
                trashed.unlink(missing_ok=True)
            else:
                shutil.rmtree(trashed, ignore_errors=True)
