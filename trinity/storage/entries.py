"""Facts about objects, and the interface of each kind of store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


@dataclass(frozen=True)
class Entry:
    """An object in a listing.

    Attributes:
        path: path relative to the store.
        size: bytes.
        modified_ms: when it was put, milliseconds since the epoch.
        tag: its ETag in a bucket; empty on a disk.
    """

    path: str
    size: int
    modified_ms: int
    tag: str = ""

    @property
    def stat(self) -> Stat:
        """The object's :class:`Stat`, for comparison with one from another listing."""
        return Stat(self.size, self.modified_ms * 10**6, self.tag)


@dataclass(frozen=True)
class Stat:
    """Facts about an object that a store knows without reading it. Another object under its name has other facts.

    Attributes:
        size: bytes.
        modified_ns: when it was put, nanoseconds since the epoch.
        tag: distinguishes objects of the same size and time: the inode on a disk, the ETag elsewhere.
    """

    size: int
    modified_ns: int
    tag: str


class Objects(Protocol):
    """The interface to the objects of one kind of store; paths are the texts of locations.

    :class:`~trinity.storage.ObjectStore` documents the methods, and translates errors of the system and of libraries.
    """

    @property
    def filesystem(self) -> FileSystem: ...

    def exists(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...

    def stat(self, path: str) -> Stat | None: ...

    def read(self, path: str) -> bytes: ...

    def list(self, root: str, prefix: str, after: str | None) -> Iterable[Entry]: ...

    def names_in(self, folder: str) -> Sequence[str]: ...

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]: ...

    def put_new(self, path: str, data: bytes) -> None: ...

    def replace(self, path: str, data: bytes, *, sync: bool) -> None: ...

    def remove(self, paths: Iterable[str]) -> None: ...

    def remove_below(self, folder: str) -> None: ...

    def make_folder(self, path: str, *, sync: bool) -> None: ...

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO: ...

    def move(self, path: str, new: str) -> None: ...

    def set_modified(self, path: str, modified_ns: int) -> None: ...

    def sync(self, path: str) -> None: ...

    def sync_folders(self, folders: Iterable[str]) -> None: ...
