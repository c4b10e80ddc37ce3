"""The objects of a local disk: files, by their absolute paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from trinity.storage import local_files as local
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import after_commit, storage_errors
from trinity.storage.local_folders import is_folder, walk
from trinity.storage.local_sync import SyncedWriter, make_folder, sync_file, sync_folders

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["LocalObjects"]


class LocalObjects:
    """See :class:`~trinity.storage.entries.Objects`."""

    @cached_property
    def filesystem(self) -> FileSystem:
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return local.exists(path)

    def is_folder(self, path: str) -> bool:
        return is_folder(path)

    def stat(self, path: str) -> Stat | None:
        found = local.stat(path)
        return Stat(*found) if found else None

    def read(self, path: str) -> bytes:
        return local.read(path)

    def list(self, root: str, prefix: str, after: str | None) -> Iterable[Entry]:
        from obstore.store import LocalStore

        if not local.exists(f"{root}/{prefix}" if prefix else root):
            return
        for page in LocalStore(root, mkdir=True).list(prefix or None, offset=after):
            for meta in page:
                yield Entry(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))

    def names_in(self, folder: str) -> Sequence[str]:
        return local.names_in(folder)

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        for path in walk(root, hidden, endings):
            if (found := self.stat(path)) is not None:
                yield path, found

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        local.link_new(path, data)
        _sync_around(path)

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        local.replace(path, data, sync=sync)
        if sync:
            _sync_around(path)

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with storage_errors(path):
                local.remove(path)

    def remove_below(self, folder: str) -> None:
        local.remove_below(folder)

    def make_folder(self, path: str, *, sync: bool) -> None:
        make_folder(path, sync=sync)

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        make_folder(_folder(path))
        return SyncedWriter(path, new=new, listed=listed)

    def link(self, path: str, new: str) -> None:
        local.link(path, new)
        _sync_around(new)

    def move(self, path: str, new: str) -> None:
        local.move(path, new)

    def set_modified(self, path: str, modified_ns: int) -> None:
        local.set_modified(path, modified_ns)

    def sync(self, path: str) -> None:
        sync_file(path)

    def sync_folders(self, folders: Iterable[str]) -> None:
        sync_folders(folders)


def _sync_around(path: str) -> None:
    after_commit(f"'{path}' is in place, its folder not synced", lambda: sync_folders([_folder(path)]))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
