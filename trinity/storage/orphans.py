"""Removal of data files that no readable version needs, and what commits make of it; shared by the adapters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from trinity.errors import TrinityError
from trinity.spi import DataFile, TableHandle
from trinity.storage.parquet_sink import is_parquet
from trinity.storage.store import Entry, ObjectStore

__all__ = ["CHANGELOG", "check_present", "delete_around", "delete_orphans"]

CHANGELOG: Final = "_trinity/changelog"
"""Folder of a table's changelog, below the table's: its files are in no version, and no orphans."""


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
    store: ObjectStore,
    referenced: Collection[str],
    older_than_ms: int,
    folder: str = "",
    *,
    also: Callable[[str], bool] = lambda _: False,
) -> list[Entry]:
    """Deletes Parquet files below a folder that are not referenced, but for those of the table's changelog.

    Args:
        store: the table's store.
        referenced: absolute paths of all files that a readable version needs.
        older_than_ms: younger files stay, a statement may be writing them; milliseconds since the epoch.
        folder: where to look, relative to the store.
        also: True for the paths of files of the format's own that go likewise.

    Returns:
        what was deleted.
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


def check_present(table: TableHandle, files: Iterable[DataFile], further: Iterable[str] = ()) -> None:
    """Refuses files that a drop or a vacuum has removed since they were written; asked in each attempt at a commit.

    Args:
        table: the table.
        files: data files.
        further: paths of other files.

    Raises:
        TrinityError: TRANSACTION_CONFLICT naming the file.
    """
    store = ObjectStore(table.location)
    for path in (*(file.path for file in files), *further):
        if not store.exists(path):
            raise TrinityError(
                "TRANSACTION_CONFLICT",
                f"'{path}', written by this statement, is gone: table '{table.full_name}' was dropped and made "
                "anew, or vacuumed, meanwhile. Run the statement again.",
            )
