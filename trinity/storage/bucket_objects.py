"""The objects of a bucket, by obstore; data files are opened by the file system of the bucket's kind of store.

There are no folders, and nothing is synced: an object that was put is there for everybody. Another name is given by a
copy that the store makes. All answers are those of the newest state; each is one request, but for listings of many
objects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from trinity.errors import TrinityError
from trinity.storage.bucket_puts import put_settled
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import AlreadyExists
from trinity.storage.grants import options_at
from trinity.storage.location import Location
from trinity.storage.renewing import with_renewed_keys
from trinity.storage.store_errors import object_trouble, plain_text, told_of, without_conditional_put
from trinity.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore
    from pyarrow.fs import FileSystem

__all__ = ["BucketObjects"]

_proven: set[tuple[str, str]] = set()
_proving = threading.Lock()


class BucketObjects:
    """See :class:`~trinity.storage.entries.Objects`; paths are the texts of locations.

    Args:
        root: a location in the bucket, below which there is permission to write.
    """

    def __init__(self, root: Location) -> None:
        self._root = root

    @property
    def _client(self) -> ObjectStore:
        return self._reached(once=False)

    def _reached(self, *, once: bool) -> ObjectStore:
        with told_of(str(self._root)):
            return self._root.kind.client(self._root.store, self._options, once=once)

    @property
    def filesystem(self) -> FileSystem:
        found = self._root.kind.filesystem(self._options)
        if found is None:
            from trinity.storage.bucket_files import bucket_files

            found = bucket_files(self._root.store, self._client)
        return found

    @property
    def _options(self) -> StoreOptions:
        return options_at(self._root).resolved()

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def is_folder(self, path: str) -> bool:
        with told_of(path):
            pages = self._client.list(f"{_key(path)}/".lstrip("/") or None, chunk_size=1)
            return any(len(page) for page in pages)

    def stat(self, path: str) -> Stat | None:
        import obstore

        with told_of(path), suppress(FileNotFoundError):
            found = obstore.head(self._client, _key(path))
            return Stat(found["size"], int(found["last_modified"].timestamp()) * 10**9, found["e_tag"] or "")
        return None

    def read(self, path: str) -> bytes:
        return self._read(path, once=False)

    def _read(self, path: str, *, once: bool) -> bytes:
        import obstore

        with told_of(path):
            return bytes(obstore.get(self._reached(once=once), _key(path)).bytes())

    def list(self, root: str, prefix: str, after: str | None) -> Iterator[Entry]:
        for name, meta in self._listed(root, prefix, after):
            yield Entry(name, meta["size"], _ms(meta), meta["e_tag"] or "")

    def _listed(self, root: str, prefix: str, after: str | None) -> Iterator[tuple[str, ObjectMeta]]:
        below = _key(f"{root}/{prefix}" if prefix else root)
        top = f"{_key(root)}/".lstrip("/")
        with told_of(root):
            for page in self._client.list(below or None, offset=f"{top}{after}" if after else None):
                for meta in page:
                    name = str(meta["path"]).removeprefix(top)
                    if after and name <= after:  # Azure begins with it, and Azurite at the beginning
                        continue
                    yield name, meta

    def names_in(self, folder: str) -> Sequence[str]:
        with told_of(folder):
            found = self._client.list_with_delimiter(_key(folder) or None)
        objects = [str(meta["path"]) for meta in found["objects"]]
        return [path.rpartition("/")[2] for path in (*objects, *found["common_prefixes"])]

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        for name, meta in self._listed(root, "", None):
            if name.endswith(endings) and not any(part[:1] in hidden for part in name.split("/")):
                yield f"{root}/{name}", Stat(meta["size"], _ms(meta) * 10**6, meta["e_tag"] or "")

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        with_renewed_keys(self._root, self._prove)

        def put() -> None:
            with_renewed_keys(self._root, lambda: self._put_new(path, data, once=True))

        def look() -> bytes:
            return with_renewed_keys(self._root, lambda: self._read(path, once=True))

        if not put_settled(data, put, look):
            raise AlreadyExists(path.rpartition("/")[2])

    def _put_new(self, path: str, data: bytes, *, once: bool = False) -> None:
        """Put an object. Raises AlreadyExists when there is one."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            obstore.put(self._reached(once=once), _key(path), data, mode="create")
        except FileNotFoundError as error:  # not the object: what it was to be put into
            raise object_trouble(error, path) from error
        except BaseError as error:
            # a conflict: another one is being put at this moment
            if isinstance(error, AlreadyExistsError) and "ConditionalRequestConflict" not in plain_text(error):
                raise AlreadyExists(path.rpartition("/")[2]) from error
            raise object_trouble(error, path) from error

    def _prove(self) -> None:
        """Refuses a store that would put over what is there. Once for each bucket and its place.

        The object that shows it stays: the next process finds it there, and one that is killed leaves nothing else.
        """
        known = self._root.store, self._options.place
        with _proving:
            if known in _proven:
                return
            probe = str(self._root.join("_trinity", "probe"))
            try:
                with suppress(AlreadyExists):
                    self._put_new(probe, b"1")
                    self._put_new(probe, b"2")
                    self.remove([probe])
                    raise without_conditional_put(probe)
            except TrinityError as error:
                raise _lacking(error, probe) from error
            _proven.add(known)

    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        import obstore

        try:
            with told_of(path):
                obstore.put(self._client, _key(path), data)
        except FileNotFoundError as error:
            raise object_trouble(error, path) from error

    def remove(self, paths: Iterable[str]) -> None:
        left, at_once = list(paths), self._root.kind.at_once
        for start in range(0, len(left), at_once):
            some = left[start : start + at_once]
            try:
                self._delete(some)
            except FileNotFoundError:  # of one of them, which some stores tell of
                for path in () if self._root.kind.deletes_others else some:
                    with suppress(FileNotFoundError):
                        self._delete([path])

    def _delete(self, paths: Sequence[str]) -> None:
        import obstore

        with told_of(paths[0]):
            obstore.delete(self._client, [_key(path) for path in paths])

    def remove_below(self, folder: str) -> None:
        with suppress(TrinityError):
            self.remove(f"{folder}/{entry.path}" for entry in list(self.list(folder, "", None)))

    def make_folder(self, path: str, *, sync: bool) -> None:
        """Nothing: names need no folders."""

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        raise _unsupported(path, "a stream into an object")

    def move(self, path: str, new: str) -> None:
        """By a copy that the store makes; the first name goes when all bytes have the second one.

        Whoever does it again where it was cut off comes to the same, and so do several at once.
        """
        import obstore

        there = self.stat(path)
        if there is None:
            raise FileNotFoundError(path)
        with told_of(path):
            obstore.copy(self._client, _key(path), _key(new))
        copied = self.stat(new)
        if copied is None or copied.size != there.size:  # Azure may answer before it is done
            size = copied.size if copied else 0
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"The store did not copy '{path}' to '{new}', which has {size} of its {there.size} bytes; it stays "
                "where it is. Try again later.",
            )
        self.remove([path])

    def set_modified(self, path: str, modified_ns: int) -> None:
        raise _unsupported(path, "another time for an object")

    def sync(self, path: str) -> None:
        """Nothing: an object that was put lasts."""

    def sync_folders(self, folders: Iterable[str]) -> None:
        """Nothing."""


def _ms(meta: ObjectMeta) -> int:
    return int(meta["last_modified"].timestamp() * 1000)


def _key(path: str) -> str:
    return Location.of(path).key


def _lacking(error: TrinityError, probe: str) -> TrinityError:
    known = "NotImplemented" in error.message or "501" in error.message
    return without_conditional_put(probe) if known else error


def _unsupported(path: str, what: str) -> NoReturn:
    name = Location.of(path).kind.name
    raise TrinityError("NOT_SUPPORTED", f"'{path}': {name} does not have {what}, which this would need.")
