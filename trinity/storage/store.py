"""The seam to storage: the objects below one location, with an atomic put-if-absent.

Whatever is read or written of a table goes through here. Names are relative to the store's location, ``/`` between
parts. What a local disk alone has, hard links, renames, syncs and locks, is in the modules ``local_…`` of this package,
which answer for the one kind of store that there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from trinity.storage import local_files as local
from trinity.storage.errors import after_commit, storage_errors
from trinity.storage.local_folders import is_folder, walk
from trinity.storage.local_sync import SyncedWriter, make_folder, sync_file, sync_folders
from trinity.storage.location import Location, is_absolute

if TYPE_CHECKING:
    from obstore.store import LocalStore
    from pyarrow.fs import FileSystem

__all__ = ["Entry", "ObjectStore", "Stat"]


@dataclass(frozen=True)
class Entry:
    """One object: path relative to the store, bytes, milliseconds since the epoch."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Stat:
    """Facts about an object that a store knows without reading it; another object under its name has others.

    Attributes:
        size: bytes.
        modified_ns: when it was put, nanoseconds since the epoch.
        tag: tells it from an object of the same size and time: the inode of a disk, as an ETag does elsewhere.
    """

    size: int
    modified_ns: int
    tag: str


class ObjectStore:
    """The objects below one location.

    Args:
        location: a location, or a text as :meth:`Location.of` takes it.

    Raises, from every method that reads or writes objects:
        TrinityError: FILESYSTEM_ERROR or PERMISSION_DENIED naming the object, for anything but a missing one.
    """

    def __init__(self, location: str | Location) -> None:
        self.location = location if isinstance(location, Location) else Location.of(location)
        self.root = self.location.path

    @cached_property
    def client(self) -> LocalStore:
        """The obstore client, made by the first use (an object store of a table that is never read costs nothing)."""
        from obstore.store import LocalStore

        return LocalStore(self.root, mkdir=True)

    @cached_property
    def filesystem(self) -> FileSystem:
        """The file system with which pyarrow opens the store's objects, by :attr:`Location.for_arrow`."""
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    # -- names ------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Absolute path of an object, as lists of files have it; an absolute path stays as it is."""
        if name.startswith("/"):
            return name
        return f"{self.root}/{name}" if name else self.root

    def resolve(self, text: str) -> str:
        """Absolute path of what a format's metadata says, by names below this store or by a path or URI of its own."""
        return Location.of(text).path if is_absolute(text) else self.path(text)

    def relative(self, path: str) -> str:
        """The part of an absolute path below this store's root; other paths as they are."""
        return path.removeprefix(self.root + "/")

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        """True when the object, or a folder of that name, exists."""
        return local.exists(self.path(name))

    def is_folder(self, name: str = "") -> bool:
        """True when there is a folder of that name; where there are no folders, when objects have names below it."""
        return is_folder(self.path(name))

    def stat(self, name: str) -> Stat | None:
        """Facts about an object, or a folder of that name; None when it is missing."""
        with storage_errors(self.path(name)):
            found = local.stat(self.path(name))
        return Stat(*found) if found else None

    def get(self, name: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when it is missing."""
        with storage_errors(self.path(name)):
            return local.read(self.path(name))

    def list(self, prefix: str = "", *, after: str | None = None) -> list[Entry]:
        """Objects below a folder, sorted by path; only those behind ``after`` when given."""
        if not self.exists(prefix):
            return []
        with storage_errors(self.path(prefix)):
            found = [
                Entry(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
                for page in self.client.list(prefix or None, offset=after)
                for meta in page
            ]
        return sorted(found, key=lambda e: e.path)

    def names(self, folder: str = "") -> Sequence[str]:
        """Names of the objects and folders right in a folder, in no order; none where there is no folder."""
        with storage_errors(self.path(folder)):
            return local.names_in(self.path(folder))

    def walk(self, *endings: str, hidden: str) -> Iterator[tuple[str, Stat]]:
        """Objects with one of some endings, and what is known of each, in no order; without those that go meanwhile.

        Args:
            endings: how the names end.
            hidden: signs; an object or folder whose own name begins with one of them is passed over.
        """
        for name in map(self.relative, walk(self.root, hidden, endings)):
            if (found := self.stat(name)) is not None:
                yield name, found

    # -- writing ----------------------------------------------------------------------------------------

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Puts an object whole, or not at all: the name appears with its bytes, also after a crash.

        From then on nothing is told but success.

        Raises:
            AlreadyExists: another writer was first.
            TrinityError: NOT_SUPPORTED on a file system without hard links.
        """
        with storage_errors(self.path(name)):
            local.link_new(self.path(name), data)
        self._sync_around(name)

    def put(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Puts an object, or another one in the place of one that is there, whole or not at all.

        Args:
            name: the object's, in a folder that is there.
            data: its bytes.
            sync: False for one that may be lost with a crash of the machine.
        """
        with storage_errors(self.path(name)):
            local.replace(self.path(name), data, sync=sync)
        if sync:
            self._sync_around(name)

    def _sync_around(self, name: str) -> None:
        path = self.path(name)
        after_commit(f"'{path}' is in place, its folder not synced", lambda: sync_folders([_folder(path)]))

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those already gone do not matter."""
        for name in names:
            with storage_errors(self.path(name)):
                local.remove(self.path(name))

    def delete_below(self, folder: str) -> None:
        """Deletes the objects below a folder, as far as they can be."""
        local.remove_below(self.path(folder))

    # -- streams, and what others than this store put; errors are the system's ----------------------------

    def make_folder(self, name: str = "", *, sync: bool = True) -> None:
        """Makes a folder, with those above it.

        Args:
            name: the folder's.
            sync: whether it is on disk before this returns.
        """
        make_folder(self.path(name), sync=sync)

    def writer(self, name: str, *, new: bool = True, listed: bool = False) -> BinaryIO:
        """A stream into an object, which is on disk when it is closed; its folder is made.

        Args:
            name: the object's.
            new: False for one that may take the place of another; otherwise that is a FileExistsError.
            listed: whether its name is on disk by then, too.
        """
        path = self.path(name)
        make_folder(_folder(path))
        return SyncedWriter(path, new=new, listed=listed)

    def move(self, name: str, new: str) -> None:
        """Gives an object another name, in one step; one that has that name goes.

        Raises:
            FileNotFoundError: there is no object of the first name.
        """
        local.move(self.path(name), self.path(new))

    def set_modified(self, name: str, modified_ns: int) -> None:
        """Says of an object that it was put at another time, nanoseconds since the epoch."""
        local.set_modified(self.path(name), modified_ns)

    def sync(self, name: str) -> None:
        """Waits until the bytes of an object are on disk."""
        sync_file(self.path(name))

    def sync_folders(self, names: Iterable[str]) -> None:
        """Waits until the entries of folders are on disk, each once."""
        sync_folders(map(self.path, names))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
