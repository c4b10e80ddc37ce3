"""The seam to storage: the objects below one location, with an atomic put-if-absent.

Whatever is read or written of a table goes through here. Names are relative to the store's location, ``/`` between
parts. What a local disk alone has, hard links, renames, syncs and locks, is in the modules ``local_…`` of this package,
what all object stores have in those named ``bucket_…`` and ``store_…``, what one kind alone has in ``s3``, ``gcs``,
``azure``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final

from trinity.errors import TrinityError
from trinity.storage.entries import Entry, Objects, Stat
from trinity.storage.errors import OutcomeUnknown, commit_unknown, storage_errors
from trinity.storage.local_objects import LocalObjects
from trinity.storage.location import Location, in_bucket, is_absolute

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["Entry", "ObjectStore", "Stat"]

_DISK: Final = LocalObjects()


class ObjectStore:
    """The objects below one location.

    Args:
        location: a location, or a text as :meth:`Location.of` takes it.

    Raises, from every method that reads or writes objects:
        TrinityError: FILESYSTEM_ERROR or PERMISSION_DENIED naming the object, for anything but a missing one.
    """

    def __init__(self, location: str | Location) -> None:
        self.location = location if isinstance(location, Location) else Location.of(location)
        self.root = str(self.location)

    @cached_property
    def _objects(self) -> Objects:
        """The kind of store, asked for by the first use: a store of a table that is never read costs nothing."""
        if self.location.on_disk:
            return _DISK
        from trinity.storage.bucket_objects import BucketObjects
        from trinity.storage.renewing import RenewingObjects

        return RenewingObjects(BucketObjects(self.location), self.location)

    @property
    def on_disk(self) -> bool:
        """True on the local disk, where looking costs nothing; False where each question is a request."""
        return self.location.on_disk

    @property
    def filesystem(self) -> FileSystem:
        """The file system with which pyarrow opens the store's objects, by :attr:`Location.for_arrow`."""
        return self._objects.filesystem

    # -- names ------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Absolute path of an object, as lists of files have it; an absolute path stays as it is."""
        if name.startswith("/") or in_bucket(name):
            return name
        return f"{self.root}/{name}" if name else self.root

    def resolve(self, text: str) -> str:
        """Absolute path of what a format's metadata says, by names below this store or by a path or URI of its own."""
        return str(Location.of(text)) if is_absolute(text) else self.path(text)

    def relative(self, path: str) -> str:
        """The part of an absolute path below this store's root; other paths as they are."""
        return path.removeprefix(self.root + "/")

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        """True when the object, or a folder of that name, exists; in a bucket there are no folders."""
        with storage_errors(self.path(name)):
            return self._objects.exists(self.path(name))

    def is_folder(self, name: str = "") -> bool:
        """True when there is a folder of that name; where there are no folders, when objects have names below it."""
        with storage_errors(self.path(name)):
            return self._objects.is_folder(self.path(name))

    def stat(self, name: str) -> Stat | None:
        """Facts about an object, or a folder of that name; None when it is missing."""
        with storage_errors(self.path(name)):
            return self._objects.stat(self.path(name))

    def get(self, name: str) -> bytes:
        """The object's bytes. Raises FileNotFoundError when it is missing."""
        with storage_errors(self.path(name)):
            return self._objects.read(self.path(name))

    def list(self, prefix: str = "", *, after: str | None = None) -> list[Entry]:
        """Objects below a folder, sorted by path; only those behind ``after`` when given."""
        with storage_errors(self.path(prefix)):
            return sorted(self._objects.list(self.root, prefix, after), key=lambda e: e.path)

    def names(self, folder: str = "") -> Sequence[str]:
        """Names of the objects and folders right in a folder, in no order; none where there is no folder."""
        with storage_errors(self.path(folder)):
            return self._objects.names_in(self.path(folder))

    def walk(self, *endings: str, hidden: str) -> Iterator[tuple[str, Stat]]:
        """Objects with one of some endings, and what is known of each, in no order; without those that go meanwhile.

        Args:
            endings: how the names end.
            hidden: signs; an object or folder whose own name begins with one of them is passed over.
        """
        with storage_errors(self.root):
            for path, found in self._objects.walk(self.root, hidden, endings):
                yield self.relative(path), found

    # -- writing ----------------------------------------------------------------------------------------

    def put_if_absent(self, name: str, data: bytes, *, commits: bool = True) -> None:
        """Put an object whole, or not at all: the name appears with its bytes, also after a crash.

        From then on nothing is told but success. An answer that is lost or not clear is settled by looking at what is
        there, for as long as a minute.

        Args:
            name: the object's.
            data: its bytes. Two writers at once put different ones, or none of them cares who was first.
            commits: False for an object that no version and no name hangs on.

        Raises:
            AlreadyExists: another writer was first.
            TrinityError: COMMIT_STATE_UNKNOWN when nobody can say whether it was put (FILESYSTEM_ERROR where nothing
                hangs on it); NOT_SUPPORTED on a file system without hard links; CONFIGURATION_INVALID in an object
                store that puts over what is there.
        """
        path = self.path(name)
        try:
            with storage_errors(path):
                self._objects.put_new(path, data)
        except OutcomeUnknown as unknown:
            if commits:
                raise commit_unknown(f"'{path}'", unknown) from unknown
            raise TrinityError("FILESYSTEM_ERROR", f"'{path}' cannot be written: {unknown}") from unknown

    def put(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Puts an object, or another one in the place of one that is there, whole or not at all.

        Args:
            name: the object's, in a folder that is there.
            data: its bytes.
            sync: False for one that may be lost with a crash of the machine.
        """
        with storage_errors(self.path(name)):
            self._objects.replace(self.path(name), data, sync=sync)

    def delete(self, names: Iterable[str]) -> None:
        """Deletes objects; those already gone do not matter."""
        self._objects.remove(map(self.path, names))

    def delete_below(self, folder: str) -> None:
        """Deletes the objects below a folder, as far as they can be."""
        self._objects.remove_below(self.path(folder))

    @property
    def longest_move(self) -> int | None:
        """The bytes of the largest object that may get another name; None where any may."""
        return None if self.on_disk else self.location.kind.longest_copy

    # -- streams, and what others than this store put; errors are the system's ----------------------------

    def make_folder(self, name: str = "", *, sync: bool = True) -> None:
        """Makes a folder, with those above it.

        Args:
            name: the folder's.
            sync: whether it is on disk before this returns.
        """
        self._objects.make_folder(self.path(name), sync=sync)

    def writer(self, name: str, *, new: bool = True, listed: bool = False) -> BinaryIO:
        """A stream into an object, which is on disk when it is closed; its folder is made.

        Args:
            name: the object's.
            new: False for one that may take the place of another; otherwise that is a FileExistsError.
            listed: whether its name is on disk by then, too.
        """
        return self._objects.writer(self.path(name), new=new, listed=listed)

    def move(self, name: str, new: str) -> None:
        """Gives an object another name, in one step; one that has that name goes.

        In a bucket it is two steps, a copy and a deletion: between them the object has both names.

        Raises:
            FileNotFoundError: there is no object of the first name.
        """
        self._objects.move(self.path(name), self.path(new))

    def set_modified(self, name: str, modified_ns: int) -> None:
        """Says of an object that it was put at another time, nanoseconds since the epoch."""
        self._objects.set_modified(self.path(name), modified_ns)

    def sync(self, name: str) -> None:
        """Waits until the bytes of an object are on disk."""
        self._objects.sync(self.path(name))

    def sync_folders(self, names: Iterable[str]) -> None:
        """Waits until the entries of folders are on disk, each once."""
        self._objects.sync_folders(map(self.path, names))
