"""JSON files of a registry: of several who add or remove one of a name at once one does it, in a bucket, too."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Final, Protocol, TypeGuard

from trinity.storage import AlreadyExists, Entry, ObjectStore

__all__ = ["SUFFIX", "Entries", "entries_of"]

SUFFIX: Final = ".json"
"""End of every file's name."""
_GONE: Final = 32
"""The most bytes of an object that says that there is no file any more."""


class Entries(Protocol):
    """The files below a location, by names with one ``.`` before their :data:`SUFFIX`."""

    def get(self, file: str) -> bytes:
        """A file's bytes. Raises FileNotFoundError."""

    def add(self, file: str, data: bytes) -> None:
        """Puts a file that is not there. Raises AlreadyExists."""

    def replace(self, file: str, data: bytes) -> None:
        """Gives a file other bytes."""

    def remove(self, file: str) -> bool:
        """Removes a file; False where there is none, or another one removes it at this moment."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in no order."""


def entries_of(store: ObjectStore) -> Entries:
    """The files of a store."""
    return _OnDisk(store) if store.on_disk else _InBucket(store)


class _OnDisk:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, file: str) -> bytes:
        return self._store.get(file)

    def add(self, file: str, data: bytes) -> None:
        self._store.put_if_absent(file, data)

    def replace(self, file: str, data: bytes) -> None:
        self._store.put(file, data)

    def remove(self, file: str) -> bool:
        taken = f"{file.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        try:
            self._store.move(file, taken)  # of several who take it one gets it
        except FileNotFoundError:
            return False
        self._store.delete([taken])
        return True

    def names(self, folder: str) -> list[str]:
        return [name for name in self._store.names(folder) if name.endswith(SUFFIX) and not name.startswith(".")]


class _InBucket:
    """A file is a row of objects of which the last one counts: a deletion would tell nobody whose it was.

    ``t.json`` is the first one, ``t.json.0000000001`` the next. One of 32 bytes at most says that there is no file.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, file: str) -> bytes:
        last = self._last(file)
        if not _is_file(last):
            raise FileNotFoundError(file)
        return self._store.get(last.path)

    def add(self, file: str, data: bytes) -> None:
        last = self._last(file)
        if _is_file(last):
            raise AlreadyExists(file)
        self._store.put_if_absent(_next(file, last), _marked(data))

    def replace(self, file: str, data: bytes) -> None:
        self._put_behind(file, _marked(data))

    def remove(self, file: str) -> bool:
        return self._put_behind(file, uuid.uuid4().hex.encode())

    def names(self, folder: str) -> list[str]:
        return [name for name, last in self._rows(folder).items() if _is_file(last)]

    def _put_behind(self, file: str, data: bytes) -> bool:
        """Puts what follows a file; False where there is none."""
        while _is_file(last := self._last(file)):
            with suppress(AlreadyExists):  # another one has changed or removed it
                self._store.put_if_absent(_next(file, last), data)
                return True
        return False

    def _last(self, file: str) -> Entry | None:
        folder, _, name = file.rpartition("/")
        return self._rows(folder).get(name)

    def _rows(self, folder: str) -> dict[str, Entry]:
        """File -> the last of its objects: they are listed in the order of their numbers."""
        found = ((entry.path.rpartition("/")[2], entry) for entry in self._store.list(folder))
        return {name.partition(SUFFIX)[0] + SUFFIX: entry for name, entry in found if SUFFIX in name}


def _is_file(last: Entry | None) -> TypeGuard[Entry]:
    return last is not None and last.size > _GONE


def _marked(data: bytes) -> bytes:
    """The file with an ``id`` of its own: of two who put the same nobody could tell who was first."""
    return json.dumps({**json.loads(data), "id": uuid.uuid4().hex}).encode()


def _next(file: str, last: Entry | None) -> str:
    if last is None:
        return file
    number = last.path.rpartition(SUFFIX)[2]
    return f"{file}.{int(number[1:] or 0) + 1:010d}"
