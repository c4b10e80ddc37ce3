"""Folders that are Trinity's: removed with their table, so none is taken that holds anything else (N1)."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.parquet_sink import is_sink_file

__all__ = ["bury", "check_free", "check_only_graves", "sweep"]

_METADATA: Final = frozenset({"_trinity", "_delta_log", "metadata"})
"""Folders of a table in which a crashed CREATE may have left something."""
_GRAVE: Final = re.compile(r"\.dropped-[0-9a-f]{32}")


def bury(folder: Path) -> None:
    """Takes a table's folder away, whole or not at all: renamed, it is a grave, which :func:`sweep` removes.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    folder.rename(folder.with_name(f".dropped-{uuid.uuid4().hex}"))


def sweep(parent: Path) -> None:
    """Removes the graves in a schema's folder, also what processes left that died in a drop; of a link, the link."""
    with contextlib.suppress(FileNotFoundError):  # another process has dropped the schema
        for grave in filter(_GRAVE.fullmatch, os.listdir(parent)):
            if (parent / grave).is_symlink():
                (parent / grave).unlink(missing_ok=True)
            else:
                shutil.rmtree(parent / grave, ignore_errors=True)


def check_only_graves(folder: Path, schema: str) -> None:
    """Refuses to drop a schema whose folder holds something beside graves.

    Args:
        folder: the schema's folder.
        schema: its full name, for the message.

    Raises:
        TrinityError: SCHEMA_NOT_EMPTY naming what is there.
    """
    found = sorted(name for name in os.listdir(folder) if not _GRAVE.fullmatch(name))
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise TrinityError(
            "SCHEMA_NOT_EMPTY",
            f"Folder '{folder}' of schema '{schema}' holds {', '.join(found[:5])}{more}, and Trinity removes nothing "
            "that is no table of its own; move that away first.",
        )


def check_free(folder: Path, table: str) -> None:
    """Refuses a folder for a new table that holds files of others: a DROP of the table would remove them.

    What writers to an earlier table of that name have left does not matter.

    Args:
        folder: of the table that is about to be made.
        table: its full name, for the message.

    Raises:
        TrinityError: FILESYSTEM_ERROR naming a file.
    """
    for path in folder.rglob("*"):
        if not (path.is_dir() or is_sink_file(path.name) or path.relative_to(folder).parts[0] in _METADATA):
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"Folder '{folder}' of new table '{table}' holds '{path.name}', which Trinity has not written; move it "
                "away, or make a table of these files with session.register().",
            )
