"""The objects of a bucket, by obstore. Data files are opened by the file system of the store's kind.

There are no folders, and nothing is synced: all clients see an object that was put. A move is a copy and a deletion.
All answers show the newest state. Each call is one request, except for listings of many objects.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, BinaryIO, Concatenate, NoReturn, ParamSpec, TypeVar

from trinity.errors import TrinityError
from trinity.storage.bucket_puts import put_settled
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import (
    AlreadyExists,
    object_trouble,
    plain_text,
    reporting_store_errors,
    with_renewed_credentials,
    without_conditional_put,
)
from trinity.storage.grants import is_granted, options_at
from trinity.storage.location import Location
from trinity.storage.store_options import StoreOptions

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore
    from pyarrow.fs import FileSystem

_P = ParamSpec("_P")
_R = TypeVar("_R")

_proven: set[tuple[str, str]] = set()
_proving = threading.Lock()


def _renewing(
    request: Callable[Concatenate[BucketObjects, _P], _R],
) -> Callable[Concatenate[BucketObjects, _P], _R]:
    """Return a request that is retried once, with newer credentials of the catalog, if the store refuses its own."""

    @wraps(request)
    def renewed(objects: BucketObjects, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return with_renewed_credentials(objects.root, lambda: request(objects, *args, **kwargs))

    return renewed


class BucketObjects:
    """The objects of a bucket (:class:`~trinity.storage.entries.Objects`); paths are the texts of locations.

    Args:
        root: a location in the bucket, below which the credentials allow writes.
    """

    def __init__(self, root: Location) -> None:
        self.root = root

    @property
    def _client(self) -> ObjectStore:
        return self._client_of(once=False)

    def _client_of(self, *, once: bool) -> ObjectStore:
        """Return the bucket's client with the present credentials; if ``once``, one that does not retry requests."""
        with reporting_store_errors(str(self.root)):
            return self.root.kind.client(self.root.store, self._options, once=once)

    @property
    def filesystem(self) -> FileSystem:
        found = self.root.kind.filesystem(self._options)
        if found is None:
            from trinity.storage.bucket_files import bucket_files

            found = bucket_files(self.root.store, self._client)
        return found

    @property
    def _options(self) -> StoreOptions:
        return options_at(self.root).resolved()

    # -- reading ----------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    @_renewing
    def is_folder(self, path: str) -> bool:
        with reporting_store_errors(path):
            pages = self._client.list(f"{_key(path)}/".lstrip("/") or None, chunk_size=1)
            return any(len(page) for page in pages)

    @_renewing
    def stat(self, path: str) -> Stat | None:
        import obstore

        with reporting_store_errors(path), suppress(FileNotFoundError):
            found = obstore.head(self._client, _key(path))
            return Stat(found["size"], int(found["last_modified"].timestamp()) * 10**9, found["e_tag"] or "")
        return None

    @_renewing
    def read(self, path: str) -> bytes:
        return self._read(path, once=False)

    def _read(self, path: str, *, once: bool) -> bytes:
        import obstore

        with reporting_store_errors(path):
            return bytes(obstore.get(self._client_of(once=once), _key(path)).bytes())

    def list(self, root: str, prefix: str, after: str | None) -> Iterator[Entry]:
        for name, meta in self._listed(root, prefix, after):
            yield Entry(name, meta["size"], _ms(meta), meta["e_tag"] or "")

    def _listed(self, root: str, prefix: str, after: str | None) -> Iterable[tuple[str, ObjectMeta]]:
        if not is_granted(self.root):
            return self._pages(root, prefix, after)
        return with_renewed_credentials(self.root, lambda: [*self._pages(root, prefix, after)])

    def _pages(self, root: str, prefix: str, after: str | None) -> Iterator[tuple[str, ObjectMeta]]:
        below = _key(f"{root}/{prefix}" if prefix else root)
        top = f"{_key(root)}/".lstrip("/")
        with reporting_store_errors(root):
            for page in self._client.list(below or None, offset=f"{top}{after}" if after else None):
                for meta in page:
                    name = str(meta["path"]).removeprefix(top)
                    if after and name <= after:  # Azure lists the offset itself too, and Azurite ignores the offset
                        continue
                    yield name, meta

    @_renewing
    def names_in(self, folder: str) -> Sequence[str]:
        with reporting_store_errors(folder):
            found = self._client.list_with_delimiter(_key(folder) or None)
        objects = [str(meta["path"]) for meta in found["objects"]]
        return [path.rpartition("/")[2] for path in (*objects, *found["common_prefixes"])]

    def walk(self, root: str, hidden: str, endings: tuple[str, ...]) -> Iterator[tuple[str, Stat]]:
        for name, meta in self._listed(root, "", None):
            if name.endswith(endings) and not any(part[:1] in hidden for part in name.split("/")):
                yield f"{root}/{name}", Stat(meta["size"], _ms(meta) * 10**6, meta["e_tag"] or "")

    # -- writing ----------------------------------------------------------------------------------------

    def put_new(self, path: str, data: bytes) -> None:
        with_renewed_credentials(self.root, self._prove)

        def put() -> None:
            with_renewed_credentials(self.root, lambda: self._put_new(path, data, once=True))

        def look() -> bytes:
            return with_renewed_credentials(self.root, lambda: self._read(path, once=True))

        if not put_settled(data, put, look):
            raise AlreadyExists(path.rpartition("/")[2])

    def _put_new(self, path: str, data: bytes, *, once: bool = False) -> None:
        """Put an object. Raises AlreadyExists if an object of that name exists."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        try:
            obstore.put(self._client_of(once=once), _key(path), data, mode="create")
        except FileNotFoundError as error:  # the bucket is missing
            raise object_trouble(error, path) from error
        except BaseError as error:
            # a ConditionalRequestConflict: another writer puts the object at this moment
            if isinstance(error, AlreadyExistsError) and "ConditionalRequestConflict" not in plain_text(error):
                raise AlreadyExists(path.rpartition("/")[2]) from error
            raise object_trouble(error, path) from error

    def _prove(self) -> None:
        """Check that the store does not overwrite existing objects, once for each bucket and service.

        The probe object stays: the next process finds it, and a killed process leaves nothing else.
        """
        known = self.root.store, self._options.service
        with _proving:
            if known in _proven:
                return
            probe = str(self.root.join("_trinity", "probe"))
            try:
                with suppress(AlreadyExists):
                    self._put_new(probe, b"1")
                    self._put_new(probe, b"2")
                    self.remove([probe])
                    raise without_conditional_put(probe)
            except TrinityError as error:
                raise _lacking(error, probe) from error
            _proven.add(known)

    @_renewing
    def replace(self, path: str, data: bytes, *, sync: bool) -> None:
        import obstore

        try:
            with reporting_store_errors(path):
                obstore.put(self._client, _key(path), data)
        except FileNotFoundError as error:
            raise object_trouble(error, path) from error

    def remove(self, paths: Iterable[str]) -> None:
        left, at_once = list(paths), self.root.kind.at_once
        for start in range(0, len(left), at_once):
            some = left[start : start + at_once]
            try:
                self._delete(some)
            except FileNotFoundError:  # one of the objects was missing, which some stores report
                for path in () if self.root.kind.deletes_others else some:
                    with suppress(FileNotFoundError):
                        self._delete([path])

    @_renewing
    def _delete(self, paths: Sequence[str]) -> None:
        import obstore

        with reporting_store_errors(paths[0]):
            obstore.delete(self._client, [_key(path) for path in paths])

    def remove_below(self, folder: str) -> None:
        with suppress(TrinityError):
            self.remove(f"{folder}/{entry.path}" for entry in list(self.list(folder, "", None)))

    def make_folder(self, path: str, *, sync: bool) -> None:
        """Do nothing: names need no folders."""

    def writer(self, path: str, *, new: bool, listed: bool) -> BinaryIO:
        raise _unsupported(path, "a stream into an object")

    def move(self, path: str, new: str) -> None:
        """Move an object by a copy within the store. The first name is removed once the copy has all bytes.

        A move may be repeated after an interruption, and made several times at once, with the same result.
        """
        there = self.stat(path)
        if there is None:
            raise FileNotFoundError(path)
        self._copy(path, new)
        copied = self.stat(new)
        if copied is None or copied.size != there.size:  # Azure may answer before the copy is complete
            size = copied.size if copied else 0
            raise TrinityError(
                "FILESYSTEM_ERROR",
                f"The store did not copy '{path}' to '{new}', which has {size} of its {there.size} bytes; it stays "
                "where it is. Try again later.",
            )
        self.remove([path])

    @_renewing
    def _copy(self, path: str, new: str) -> None:
        import obstore

        with reporting_store_errors(path):
            obstore.copy(self._client, _key(path), _key(new))

    def set_modified(self, path: str, modified_ns: int) -> None:
        raise _unsupported(path, "another time for an object")

    def sync(self, path: str) -> None:
        """Do nothing: an object that was put is durable."""

    def sync_folders(self, folders: Iterable[str]) -> None:
        """Do nothing."""


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
