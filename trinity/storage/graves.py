"""Checks of folders that Trinity makes or removes, so that files of others are never removed (N1)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from trinity.errors import TrinityError
from trinity.storage.local_folders import entries, files_below
from trinity.storage.parquet_sink import is_sink_file

__all__ = ["check_free", "check_only_graves"]

_METADATA: Final = frozenset({"_trinity", "_delta_log", "metadata"})
"""Folders of a table in which a crashed CREATE may have left files."""


def check_only_graves(
    folder: os.PathLike[str], schema: str, is_renamed: Callable[[str], bool] = lambda name: False
) -> None:
    """Check that the folder of a schema holds only dropped tables, and those that were renamed into another schema.

    Args:
        folder: the schema's folder.
        schema: its full name, for the message.
        is_renamed: returns whether a name in the folder is that of a renamed table's folder.

    Raises:
        TrinityError: SCHEMA_NOT_EMPTY naming what is there.
    """
    if found := [name for name in entries(folder) if not is_renamed(name)]:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise TrinityError(
            "SCHEMA_NOT_EMPTY",
            f"Folder '{folder}' of schema '{schema}' holds {', '.join(found[:5])}{more}, and Trinity removes nothing "
            "that is no table of its own; move that away first.",
        )


def check_free(folder: os.PathLike[str], table: str) -> None:
    """Check that the folder of a new table holds no files of others, which a DROP of the table would remove.

    Files that writers to an earlier table of that name left are allowed.

    Raises:
        TrinityError: FILESYSTEM_ERROR naming a file.
    """
    for path in files_below(folder):
        name = path.rpartition("/")[2]
        if not (is_sink_file(name) or path.split("/")[0] in _METADATA):
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"Folder '{folder}' of new table '{table}' holds '{name}', which Trinity has not written; move it "
                "away, or make a table of these files with session.register().",
            )
