"""Removal of data files that no readable version needs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from trinity.storage.entries import Entry
from trinity.storage.parquet_sink import is_parquet
from trinity.storage.store import ObjectStore

CHANGELOG: Final = "_trinity/changelog"
"""A table's changelog folder, below the table's own. No version has its files, and yet they are no orphans."""


def delete_around(delete: Callable[[], list[Entry]], forget: Callable[[], bool]) -> list[Entry]:
    """Delete files, forget versions, and delete again: on a full disk the commit needs the space of the first deletion.

    Args:
        delete: deletes the files that no readable version needs, and returns them.
        forget: commits that versions are forgotten; returns whether any was.

    Returns:
        all deleted files.
    """
    gone = delete()
    return [*gone, *delete()] if forget() else gone


def delete_orphans(
    store: ObjectStore,
    referenced: Collection[str],
    older_than_ms: int,
    folder: str = "",
    *,
    also: Callable[[str], bool] = lambda _: False,
) -> list[Entry]:
    """Delete Parquet files below a folder that are not referenced, except those of the table's changelog.

    Args:
        store: the table's store.
        referenced: absolute paths of all files that a readable version needs.
        older_than_ms: milliseconds since the epoch; younger files stay, as a statement may be writing them.
        folder: where to look, relative to the store.
        also: returns True for paths of the format's own kinds of files that are deleted in the same way.

    Returns:
        the deleted files.
    """
    keep = {store.relative(path) for path in referenced}
    orphans = [
        entry
        for entry in store.list(folder)
        if (is_parquet(entry.path) or also(entry.path))
        and entry.path not in keep
        and entry.modified_ms <= older_than_ms
        and not entry.path.startswith(f"{CHANGELOG}/")
    ]
    store.delete(entry.path for entry in orphans)
    return orphans
