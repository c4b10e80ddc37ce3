"""JSON files of a registry: of concurrent calls that add or remove the same file one succeeds, also in a bucket.

:meth:`Entries.excluding` runs a block that must not coincide with adding a file. On a disk it holds a lock. In a bucket
a file is added in two steps: first a claim, which no reader sees; then, after a check, the file. A block that excludes
a file announces itself, withdraws pending claims, and then sees whether the file exists: later claimants wait until the
block ends. A block that excludes all files of a folder first closes the folder: then claimants of its files wait.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, Protocol, TypeGuard

from trinity.errors import TrinityError
from trinity.storage import AlreadyExists, Entry, ObjectStore, asking_again
from trinity.storage.local_objects import folder_lock

SUFFIX: Final = ".json"
"""Suffix of every file's name."""
_GONE: Final = 32
"""Maximum bytes of an object that marks a file as removed."""
_CLAIM: Final = 16
"""Bytes of an object that claims a file."""
_CLOSED: Final = f"%closed{SUFFIX}"
"""A file of this name is claimed while its folder is closed. No table's file has this name."""
_MAKERS: Final = "%makers"
"""A folder with an object for each block that excludes a file, below the file's name."""


class Entries(Protocol):
    """The files below a location. Their names end with :data:`SUFFIX`, and have no other ``.``."""

    def get(self, file: str) -> bytes:
        """Return a file's bytes. Raises FileNotFoundError."""

    def add(self, file: str, data: bytes, check: Callable[[], object]) -> None:
        """Put a new file, after ``check``, which raises an error if the file must not be put.

        Raises:
            AlreadyExists: the file exists; errors of ``check``.
        """

    def change(self, file: str, changed: Callable[[bytes], bytes]) -> bool:
        """Replace a file's bytes by a function of them; return False if the file does not exist."""

    def remove(self, file: str) -> bool:
        """Remove a file; return False if it does not exist, or if a concurrent call removes it."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in any order."""

    def excluding(
        self, folder: str, check: Callable[[list[str]], object], name: str | None = None
    ) -> AbstractContextManager[None]:
        """Run a block that must not coincide with adding a file of a folder.

        Args:
            folder: the folder.
            check: is given the names of the files in the folder, and raises an error if the block must not run. It is
                called before the block, and again after it if the block may have taken longer than others wait for it.
            name: the only file that the block excludes; None for all files of the folder.
        """


def entries_of(store: ObjectStore) -> Entries:
    """Return the files of a store."""
    return _OnDisk(store) if store.on_disk else _InBucket(store)


class _OnDisk:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, file: str) -> bytes:
        return self._store.get(file)

    def add(self, file: str, data: bytes, check: Callable[[], object]) -> None:
        with suppress(OSError):  # the next step reports the error
            self._store.make_folder()  # a missing folder cannot be locked
        with self._lock(exclusive=True):
            check()
            self._store.put_if_absent(file, data)

    def change(self, file: str, changed: Callable[[bytes], bytes]) -> bool:
        with self._lock(exclusive=True), suppress(FileNotFoundError):
            self._store.put(file, changed(self.get(file)))
            return True
        return False

    def remove(self, file: str) -> bool:
        taken = f"{file.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        with self._lock(exclusive=True), suppress(FileNotFoundError):
            self._store.move(file, taken)  # on a file system without locks: of concurrent moves one succeeds
            self._store.delete([taken])
            return True
        return False

    def names(self, folder: str) -> list[str]:
        return [name for name in self._store.names(folder) if name.endswith(SUFFIX) and not name.startswith(".")]

    @contextmanager
    def excluding(self, folder: str, check: Callable[[list[str]], object], name: str | None = None) -> Iterator[None]:
        if not self._store.is_folder():  # nothing is registered, and nothing can be locked
            yield
            with self._lock():
                check(self.names(folder))
            return
        with self._lock():
            check(self.names(folder))
            yield

    def _lock(self, *, exclusive: bool = False) -> AbstractContextManager[None]:
        """Lock the warehouse: exclusively for a call that changes files, shared for blocks that exclude them."""
        return folder_lock(self._store.root, exclusive=exclusive)


class _InBucket:
    """The files in a bucket: each is a series of objects, of which the last one counts.

    ``t.json`` is the first object, ``t.json.0000000001`` the next. An object of at most 32 bytes marks the file as
    removed: if objects were deleted instead, no caller could know whether the deletion was its own. An object of 16
    bytes claims the file.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, file: str) -> bytes:
        last = self._last(file)
        if not _is_file(last):
            raise FileNotFoundError(file)
        return self._store.get(last.path)

    def add(self, file: str, data: bytes, check: Callable[[], object]) -> None:
        while not _is_file(last := self._last(file)):
            with suppress(AlreadyExists):  # another call has added or withdrawn it
                if _is_claim(last):  # this call's claim or another's: one of them puts the file
                    self._wait_until_open(file.rpartition("/")[0])
                    self._wait_for_makers(_makers(file))
                    check()
                    return self._store.put_if_absent(_next(file, last), _with_id(data))
                self._store.put_if_absent(_next(file, last), _claim(), commits=False)
        raise AlreadyExists(file)

    def change(self, file: str, changed: Callable[[bytes], bytes]) -> bool:
        return self._put_next(file, lambda last: _with_id(changed(self._store.get(last.path))))

    def remove(self, file: str) -> bool:
        return self._put_next(file, lambda _: _removal_mark())

    def names(self, folder: str) -> list[str]:
        return [name for name, last in self._rows(folder).items() if _is_file(last)]

    @contextmanager
    def excluding(self, folder: str, check: Callable[[list[str]], object], name: str | None = None) -> Iterator[None]:
        if name is not None:
            with self._announced(f"{folder}/{name}"):
                check(self._settled_names(folder, name))
                yield
                check(self._settled_names(folder, name))
            return
        closed = self._close(folder)
        try:
            check(self._settled_names(folder))
            yield
        except BaseException:
            self._open(closed)
            raise
        if not self._open(closed):  # the block took longer than others wait
            check(self._settled_names(folder))

    def _close(self, folder: str) -> str:
        """Keep files from being added to a folder until :meth:`_open`, and return the object that closes it."""
        while True:
            closed = _next(f"{folder}/{_CLOSED}", self._wait_until_open(folder))
            with suppress(AlreadyExists):  # another call has closed it
                self._store.put_if_absent(closed, _claim(), commits=False)
                return closed

    def _wait_until_open(self, folder: str) -> Entry | None:
        """Wait until a folder is open, or the call that closed it must have been killed; then open it.

        Return the last object of :data:`_CLOSED`; None if the folder was never closed.
        """
        for _ in asking_again():
            last = self._rows(folder).get(_CLOSED)
            if not _is_claim(last):
                return last
            closed = last.path
        self._open(closed)
        return self._wait_until_open(folder)

    def _open(self, closed: str) -> bool:
        """Allow files to be added again; return False if another call has done so.

        If the store fails, claimants wait as for a call that was killed.
        """
        try:
            with suppress(TrinityError):
                self._store.put_if_absent(_path_after(closed), _removal_mark(), commits=False)
        except AlreadyExists:
            return False
        return True

    @contextmanager
    def _announced(self, file: str) -> Iterator[None]:
        """Keep a file from being added during a block.

        If the store fails, claimants wait as for a call that was killed.
        """
        maker = f"{_makers(file)}/{uuid.uuid4().hex}"
        self._store.put_if_absent(maker, b"", commits=False)
        try:
            yield
        finally:
            with suppress(TrinityError):
                self._store.delete([maker])

    def _wait_for_makers(self, makers: str) -> None:
        """Wait until no block excludes a file, or until its holder is presumed dead."""
        found: list[Entry] = []
        for _ in asking_again():
            if not (found := self._store.list(makers)):
                return
        self._store.delete(maker.path for maker in found)

    def _settled_names(self, folder: str, name: str | None = None) -> list[str]:
        """Return the names of the files in a folder, after withdrawing all claims, or only those of ``name``."""
        while True:
            found = self._rows(folder)
            claimed = [n for n, last in found.items() if _is_claim(last) and name in (None, n) and n != _CLOSED]
            if not claimed:
                return [n for n, last in found.items() if _is_file(last)]
            for n in claimed:
                with suppress(AlreadyExists):  # the file was put, or another call has withdrawn it
                    self._store.put_if_absent(_next(f"{folder}/{n}", found[n]), _removal_mark(), commits=False)

    def _put_next(self, file: str, data: Callable[[Entry], bytes]) -> bool:
        """Put the next object of a file, which ``data`` makes of the last one; return False if the file is missing."""
        while _is_file(last := self._last(file)):
            with suppress(AlreadyExists):  # a concurrent call has changed or removed it
                self._store.put_if_absent(_next(file, last), data(last))
                return True
        return False

    def _last(self, file: str) -> Entry | None:
        folder, _, name = file.rpartition("/")
        return self._rows(folder).get(name)

    def _rows(self, folder: str) -> dict[str, Entry]:
        """Return file -> the last of its objects, which are listed in the order of their numbers."""
        found = ((entry.path.rpartition("/")[2], entry) for entry in self._store.list(folder))
        return {name.partition(SUFFIX)[0] + SUFFIX: entry for name, entry in found if SUFFIX in name}


def _is_file(last: Entry | None) -> TypeGuard[Entry]:
    return last is not None and last.size > _GONE


def _is_claim(last: Entry | None) -> TypeGuard[Entry]:
    return last is not None and last.size == _CLAIM


def _claim() -> bytes:
    return secrets.token_hex(_CLAIM // 2).encode()


def _removal_mark() -> bytes:
    return uuid.uuid4().hex.encode()


def _with_id(data: bytes) -> bytes:
    """Return a file's bytes with a unique ``id``: of two callers that put the same bytes each has to know its own."""
    return json.dumps({**json.loads(data), "id": uuid.uuid4().hex}).encode()


def _makers(file: str) -> str:
    folder, _, name = file.rpartition("/")
    return f"{folder}/{_MAKERS}/{name}"


def _next(file: str, last: Entry | None) -> str:
    return _path_after(last.path) if last else file


def _path_after(path: str) -> str:
    """Return the path of a file's next object."""
    stem, _, number = path.rpartition(SUFFIX)
    return f"{stem}{SUFFIX}.{int(number[1:] or 0) + 1:010d}"
