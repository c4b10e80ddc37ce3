"""The storage seam: the objects below one location, with an atomic put-if-absent.

All reads and writes of tables go through here. Names are relative to the store's location, with ``/`` between parts.
The modules ``local_…`` of this package are about the local disk: hard links, renames, syncs and locks. Those named
``bucket_…`` and ``store_…`` are about all object stores, and ``s3``, ``gcs``, ``azure`` about one kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias, TypeVar

from trinity.errors import TrinityError
from trinity.storage.entries import Entry, Objects, Stat
from trinity.storage.errors import OutcomeUnknown, commit_unknown, storage_errors
from trinity.storage.local_objects import LocalObjects
from trinity.storage.location import Location, in_bucket, is_absolute

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

T = TypeVar("T")
Watch: TypeAlias = Callable[[Objects], Objects]
"""A function from the objects of a store to those that are used instead."""
CommitWatch: TypeAlias = Callable[[str, Callable[[], Any]], Any]
"""A function that is given a commit in words and a call that makes it; it makes the call and returns its result."""

_watches: list[tuple[Watch, CommitWatch]] = []


@contextmanager
def watched_by(watch: Watch, commits: CommitWatch) -> Iterator[None]:
    """Within the block, pass this process's operations of all stores, and its other commits, through two watches."""
    _watches.append((watch, commits))
    try:
        yield
    finally:
        _watches.remove((watch, commits))


def _as_watched(objects: Objects) -> Objects:
    """Return the objects wrapped by the current watches."""
    for watch, _ in _watches:
        objects = watch(objects)
    return objects


def commit_point(what: str, commit: Callable[[], T]) -> T:
    """Make a commit that is no operation of a store, such as a database's, so that a watch can interrupt it.

    Args:
        what: the commit, in words.
        commit: makes it.
    """
    for _, watch in _watches:
        commit = partial(watch, what, commit)
    return commit()


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

    @property
    def _objects(self) -> Objects:
        """The objects of the store, wrapped by the current watches."""
        return _as_watched(self._of_kind)

    @cached_property
    def _of_kind(self) -> Objects:
        """The objects of the store's kind, made by the first use: a store that is never used costs nothing."""
        if self.location.on_disk:
            return _DISK
        from trinity.storage.bucket_objects import BucketObjects

        return BucketObjects(self.location)

    @property
    def on_disk(self) -> bool:
        """True on the local disk, where a look at an object is cheap; False in a bucket, where each is a request."""
        return self.location.on_disk

    @property
    def filesystem(self) -> FileSystem:
        """The file system by which pyarrow opens the store's objects; paths are :attr:`Location.for_arrow`."""
        return self._objects.filesystem

    # -- names ------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return the absolute path of an object, as file lists have it; an absolute path stays as it is."""
        if name.startswith("/") or in_bucket(name):
            return name
        return f"{self.root}/{name}" if name else self.root

    def resolve(self, text: str) -> str:
        """Return the absolute path of a text in a format's metadata: a name below this store, or a path or URI."""
        return str(Location.of(text)) if is_absolute(text) else self.path(text)

    def relative(self, path: str) -> str:
        """Return the part of an absolute path below this store's root; other paths as they are."""
        return path.removeprefix(self.root + "/")

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        """Return whether an object of that name exists; on a disk also for a folder."""
        with storage_errors(self.path(name)):
            return self._objects.exists(self.path(name))

    def is_folder(self, name: str = "") -> bool:
        """Return whether there is a folder of that name; in a bucket, whether objects have names below it."""
        with storage_errors(self.path(name)):
            return self._objects.is_folder(self.path(name))

    def stat(self, name: str) -> Stat | None:
        """Return facts about an object; on a disk also about a folder. None when it is missing."""
        with storage_errors(self.path(name)):
            return self._objects.stat(self.path(name))

    def get(self, name: str) -> bytes:
        """Return the object's bytes. Raises FileNotFoundError when it is missing."""
        with storage_errors(self.path(name)):
            return self._objects.read(self.path(name))

    def list(self, prefix: str = "", *, after: str | None = None) -> list[Entry]:
        """Return the objects below a folder, sorted by path; with ``after``, only those whose path sorts after it."""
        with storage_errors(self.path(prefix)):
            return sorted(self._objects.list(self.root, prefix, after), key=lambda e: e.path)

    def names(self, folder: str = "") -> Sequence[str]:
        """Return the names of the objects and folders directly in a folder, unordered; none if it is missing.

        On a disk these include temporary files of other writers' puts, whose names begin with a dot.
        """
        with storage_errors(self.path(folder)):
            return self._objects.names_in(self.path(folder))

    def walk(self, *endings: str, hidden: str) -> Iterator[tuple[str, Stat]]:
        """Yield objects whose names have one of the endings, with their facts, in no particular order.

        Objects that are removed meanwhile are left out.

        Args:
            endings: endings of the names.
            hidden: characters; objects and folders whose own name begins with one of them are skipped.
        """
        with storage_errors(self.root):
            for path, found in self._objects.walk(self.root, hidden, endings):
                yield self.relative(path), found

    # -- writing ----------------------------------------------------------------------------------------

    def put_if_absent(self, name: str, data: bytes, *, commits: bool = True) -> None:
        """Put an object whole, or not at all: the name appears with its bytes, also after a crash.

        No later failure is reported once the object is there. If an answer is lost or unclear, the object is read to
        learn the outcome, for up to a minute.

        Args:
            name: the object's name.
            data: its bytes. Concurrent writers must put different bytes, or not care who was first.
            commits: False for an object on which no version and no name depends.

        Raises:
            AlreadyExists: another writer was first.
            TrinityError: COMMIT_STATE_UNKNOWN if nobody can say whether it was put (FILESYSTEM_ERROR if not
                ``commits``); NOT_SUPPORTED on a file system without hard links; CONFIGURATION_INVALID in an object
                store that overwrites existing objects.
        """
        path = self.path(name)
        with _putting(path, commits=commits):
            self._objects.put_new(path, data)

    def put(self, name: str, data: bytes, *, sync: bool = True) -> None:
        """Put an object whole, or not at all; it replaces an existing one.

        Args:
            name: the object's name, in a folder that exists.
            data: its bytes.
            sync: False for an object that may be lost when the machine crashes.
        """
        with storage_errors(self.path(name)):
            self._objects.replace(self.path(name), data, sync=sync)

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those already gone do not matter."""
        self._objects.remove(map(self.path, names))

    def delete_below(self, folder: str) -> None:
        """Delete the objects below a folder, as far as possible."""
        self._objects.remove_below(self.path(folder))

    @property
    def longest_move(self) -> int | None:
        """Size in bytes of the largest object that :meth:`move` can move; None for no limit."""
        limit = None if self.on_disk else self.location.kind.longest_copy
        return limit.value if limit else None

    # -- streams, and objects that other programs write ----------------------------------------------------
    # these methods raise OSError, not TrinityError

    def make_folder(self, name: str = "", *, sync: bool = True) -> None:
        """Make a folder, with those above it.

        Args:
            name: the folder's name.
            sync: whether to wait until it is on disk.
        """
        self._objects.make_folder(self.path(name), sync=sync)

    def writer(self, name: str, *, new: bool = True, listed: bool = False) -> BinaryIO:
        """Return a stream into an object, which is on disk once the stream is closed. Makes its folder.

        Args:
            name: the object's name.
            new: True to raise FileExistsError for an existing object, False to replace it.
            listed: whether the object's name is on disk by then too.
        """
        return self._objects.writer(self.path(name), new=new, listed=listed)

    def link(self, name: str, new: str) -> None:
        """Give an object of a disk a second name, in one step.

        Raises:
            FileNotFoundError: there is no object of the first name.
            AlreadyExists, TrinityError: as :meth:`put_if_absent`.
        """
        with _putting(self.path(new)):
            _DISK.link(self.path(name), self.path(new))

    def move(self, name: str, new: str) -> None:
        """Give an object another name, in one step; it replaces an object of that name.

        In a bucket it is two steps, a copy and a deletion: between them the object has both names.

        Raises:
            FileNotFoundError: there is no object of the first name.
        """
        self._objects.move(self.path(name), self.path(new))

    def set_modified(self, name: str, modified_ns: int) -> None:
        """Set the modification time of an object, nanoseconds since the epoch."""
        self._objects.set_modified(self.path(name), modified_ns)

    def sync(self, name: str) -> None:
        """Wait until the bytes of an object are on disk."""
        self._objects.sync(self.path(name))

    def sync_folders(self, names: Iterable[str]) -> None:
        """Wait until the entries of folders are on disk, each once."""
        self._objects.sync_folders(map(self.path, names))


@contextmanager
def _putting(path: str, *, commits: bool = True) -> Iterator[None]:
    """Translate errors of a put: an unknown outcome is COMMIT_STATE_UNKNOWN if a version or name depends on the put."""
    try:
        with storage_errors(path):
            yield
    except OutcomeUnknown as unknown:
        if commits:
            raise commit_unknown(f"'{path}'", unknown) from unknown
        raise TrinityError("FILESYSTEM_ERROR", f"'{path}' cannot be written: {unknown}") from unknown
