"""Removal of data files that no readable version needs; shared by the adapters' vacuum."""

from __future__ import annotations

from collections.abc import Callable, Collection

from trinity.storage.store import Entry, ObjectStore

__all__ = ["delete_around", "delete_orphans"]


def delete_around(delete: Callable[[], list[Entry]], forget: Callable[[], bool]) -> list[Entry]:
    """The order of a vacuum: a full disk has no place for what forgets versions until something was deleted.

    Args:
        delete: deletes what no readable version needs, and returns it.
        forget: commits that versions are forgotten; whether any was.

    Returns:
        all that was deleted.
    """
    gone = delete()
    return [*gone, *delete()] if forget() else gone


def delete_orphans(
    store: ObjectStore, referenced: Collection[str], older_than_ms: int, folder: str = ""
) -> list[Entry]:
    """Deletes Parquet files below a folder that are not referenced.

    Args:
        store: the table's store.
        referenced: absolute paths of all files that a readable version needs.
        older_than_ms: younger files stay, a statement may be writing them; milliseconds since the epoch.
        folder: where to look, relative to the store.

    Returns:
        what was deleted.
    """
    keep = {store.relative(path) for path in referenced}
    orphans = [
        entry
        for entry in store.list(folder)
        if entry.path.endswith(".parquet") and entry.path not in keep and entry.modified_ms <= older_than_ms
    ]
    store.delete(entry.path for entry in orphans)
    return orphans
