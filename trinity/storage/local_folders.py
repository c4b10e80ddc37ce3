"""Folders of a local disk as schemas and tables: listed, made, and removed whole by a rename.

A folder that is renamed is a grave, which is out of sight and is removed later.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["bury", "entries", "files_below", "folders_in", "is_folder", "make_new", "remove_empty", "sweep", "walk"]

_GRAVE: Final = re.compile(r"\.dropped-[0-9a-f]{32}")

Folder = str | os.PathLike[str]


def is_folder(folder: Folder) -> bool:
    """True when there is a folder, or a link to one."""
    return os.path.isdir(folder)


def folders_in(parent: Folder) -> Iterator[str]:
    """The names of the folders in a folder, in no order."""
    return (found.name for found in Path(parent).iterdir() if found.is_dir())


def entries(folder: Folder) -> list[str]:
    """The names in a folder but for graves, sorted."""
    return sorted(name for name in os.listdir(folder) if not _GRAVE.fullmatch(name))


def files_below(folder: Folder) -> Iterator[str]:
    """The files below a folder, by their paths relative to it; none where there is no folder."""
    return (str(path.relative_to(folder)) for path in Path(folder).rglob("*") if not path.is_dir())


def walk(folder: Folder, hidden: str, endings: tuple[str, ...]) -> Iterator[str]:
    """The files below a folder that have one of some endings, by their absolute paths, in no order.

    What begins with a hidden sign is passed over, and links to folders are.
    """
    for parent, below, names in os.walk(folder):
        below[:] = [name for name in below if name[0] not in hidden]
        yield from (os.path.join(parent, n) for n in names if n[0] not in hidden and n.endswith(endings))


def make_new(folder: Folder) -> None:
    """Makes a folder. Raises FileExistsError."""
    os.mkdir(folder)


def remove_empty(folder: Folder) -> None:
    """Removes a folder that is empty. Raises OSError for one that is not, or that is a link."""
    os.rmdir(folder)


def bury(folder: Folder) -> None:
    """Takes a table's folder away, whole or not at all: renamed, it is a grave, which :func:`sweep` removes.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    path = Path(folder)
    path.rename(path.with_name(f".dropped-{uuid.uuid4().hex}"))


def sweep(parent: Folder) -> None:
    """Removes the graves in a schema's folder, also what processes left that died in a drop; of a link, the link."""
    with contextlib.suppress(FileNotFoundError):  # another process has dropped the schema
        for name in filter(_GRAVE.fullmatch, os.listdir(parent)):
            grave = Path(parent, name)
            if grave.is_symlink():
                grave.unlink(missing_ok=True)
            else:
                shutil.rmtree(grave, ignore_errors=True)
