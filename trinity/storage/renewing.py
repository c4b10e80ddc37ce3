"""The objects of a bucket, with keys that a catalog gives out: a refused request is retried once with newer keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from trinity.errors import TrinityError
from trinity.storage.entries import Entry, Objects, Stat
from trinity.storage.errors import store_trouble
from trinity.storage.grants import is_granted, options_at, renew_refused
from trinity.storage.location import Location

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["RenewingObjects", "with_renewed_keys"]

_R = TypeVar("_R")


def with_renewed_keys(location: Location, call: Callable[[], _R]) -> _R:
    """Return the result of a call about a location. If the store refuses its keys, retry once with newer ones.

    Args:
        location: an object or a folder.
        call: leaves nothing when it is refused.
    """
    if not is_granted(location):
        return call()
    used = options_at(location)
    try:
        return call()
    except (TrinityError, OSError) as error:
        trouble = error if isinstance(error, TrinityError) else store_trouble(error, str(location))
        if trouble is None or trouble.code != "PERMISSION_DENIED" or not renew_refused(location, used):
            raise
        return call()


class RenewingObjects:
    """See :class:`~trinity.storage.entries.Objects`. Without keys of a catalog it only passes calls on.

    Args:
        objects: the bucket's objects.
        root: the location whose keys are used.
    """

    def __init__(self, objects: Objects, root: Location) -> None:
        self._objects = objects
        self._root = root

    def _twice(self, call: Callable[[], _R]) -> _R:
        return with_renewed_keys(self._root, call)

    @property
    def filesystem(self) -> FileSystem:
        return self._objects.filesystem

    def exists(self, path: str) -> bool:
        return self._twice(lambda: self._objects.exists(path))

    def is_folder(self, path: str) -> bool:
        return self._twice(lambda: self._objects.is_folder(path))

    def stat(self, path: str) -> Stat | None:
        return self._twice(lambda: self._objects.stat(path))

    def read(self, path: str) -> bytes:
        return self._twice(lambda: self._objects.read(path))

    def list(self, root: str, prefix: str, after: str | None) -> Iterable[Entry]:
        if not is_granted(self._root):
            return self._objects.list(root, prefix, after)
        return self._twice(lambda: [*self._objects.list(root, prefix, after)])

    def names_in(self, folder: str) -> Sequence[str]:
        return self._twice(lambda: self._objects.names_in(folder))

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        if not is_granted(self._root):
            return self._objects.walk(root, hidden, endings)
        return iter(self._twice(lambda: [*self._objects.walk(root, hidden, endings)]))

    def put_new(self, path: str, data: bytes) -> None:
        self._objects.put_new(path, data)  # it retries each of its requests itself

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        self._twice(lambda: self._objects.replace(path, data, sync=sync))

    def remove(self, paths: Iterable[str]) -> None:
        left = [*paths]
        self._twice(lambda: self._objects.remove(left))

    def remove_below(self, folder: str) -> None:
        self._objects.remove_below(folder)

    def make_folder(self, path: str, *, sync: bool) -> None:
        self._objects.make_folder(path, sync=sync)

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        return self._objects.writer(path, new=new, listed=listed)

    def move(self, path: str, new: str) -> None:
        self._twice(lambda: self._objects.move(path, new))

    def set_modified(self, path: str, modified_ns: int) -> None:
        self._objects.set_modified(path, modified_ns)

    def sync(self, path: str) -> None:
        self._objects.sync(path)

    def sync_folders(self, folders: Iterable[str]) -> None:
        self._objects.sync_folders(folders)
