"""JSON files of a registry: of concurrent calls that add or remove the same file one succeeds, also in a bucket.

A file is added in two steps: a claim, which no reader sees, becomes the file when a check passed meanwhile. Who makes
what excludes the file withdraws the claims, and then knows whether the file is there.
"""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeGuard

from trinity.storage import AlreadyExists, Entry, ObjectStore

__all__ = ["SUFFIX", "Entries", "entries_of"]

SUFFIX: Final = ".json"
"""Suffix of every file's name."""
_GONE: Final = 32
"""Most bytes of an object that marks a file as removed."""
_CLAIM: Final = 16
"""Bytes of an object that claims a file."""


_CLAIM_NAME: Final = re.compile(r"\.[^.]+\.json-[0-9a-f]+")
"""Names of files on a disk that claim another one; one that is being put has a dot more before it."""


class Entries(Protocol):
    """The files below a location, whose names end with :data:`SUFFIX`, and have no other ``.``."""

    def get(self, file: str) -> bytes:
        """Return a file's bytes. Raise FileNotFoundError."""

    def add(self, file: str, data: bytes, check: Callable[[], object]) -> None:
        """Put a new file after a check, once more when :meth:`settle` has withdrawn it. Raise AlreadyExists.

        Args:
            file: the file.
            data: its bytes.
            check: raises an error for a file that must not be put.
        """

    def replace(self, file: str, data: bytes) -> None:
        """Replace a file's bytes."""

    def remove(self, file: str) -> bool:
        """Remove a file; return False when it does not exist, or a concurrent call removes it."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in any order."""

    def settle(self, folder: str, name: str | None = None) -> list[str]:
        """Return the names of the files in a folder, after withdrawing those that are being added.

        Args:
            folder: the folder.
            name: withdraws the file of this name alone.
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
        folder, _, name = file.rpartition("/")
        while True:
            claim = f"{folder}/{_claims_of(name)}{secrets.token_hex(6)}"
            self._store.put_if_absent(claim, data, commits=False)
            try:
                check()
                with suppress(FileNotFoundError):  # withdrawn
                    return self._store.link(claim, file)
            finally:
                self._store.delete([claim])

    def replace(self, file: str, data: bytes) -> None:
        self._store.put(file, data)

    def remove(self, file: str) -> bool:
        taken = f"{file.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        try:
            self._store.move(file, taken)  # of concurrent moves one succeeds
        except FileNotFoundError:
            return False
        self._store.delete([taken])
        return True

    def names(self, folder: str) -> list[str]:
        return [name for name in self._store.names(folder) if name.endswith(SUFFIX) and not name.startswith(".")]

    def settle(self, folder: str, name: str | None = None) -> list[str]:
        found = [n for n in self._store.names(folder) if _CLAIM_NAME.fullmatch(n)]
        found = [n for n in found if name is None or n.startswith(_claims_of(name))]
        self._store.delete(f"{folder}/{claim}" for claim in found)
        return self.names(folder)


def _claims_of(name: str) -> str:
    """Return how the names of all claims of a file begin."""
    return f".{name}-"


class _InBucket:
    """The files in a bucket: each is a series of objects, of which the last one counts.

    ``t.json`` is the first object, ``t.json.0000000001`` the next. One of at most 32 bytes marks the file as removed:
    after the deletion of an object no caller could know whether the deletion was its own. One of 16 bytes claims it.
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
                if _is_claim(last):  # its own, or that of another call, of which one puts the file
                    check()
                    return self._store.put_if_absent(_next(file, last), _marked(data))
                self._store.put_if_absent(_next(file, last), secrets.token_hex(_CLAIM // 2).encode(), commits=False)
        raise AlreadyExists(file)

    def replace(self, file: str, data: bytes) -> None:
        self._put_behind(file, _marked(data))

    def remove(self, file: str) -> bool:
        return self._put_behind(file, _gone())

    def names(self, folder: str) -> list[str]:
        return [name for name, last in self._rows(folder).items() if _is_file(last)]

    def settle(self, folder: str, name: str | None = None) -> list[str]:
        while True:
            found = self._rows(folder)
            claimed = [n for n, last in found.items() if _is_claim(last) and name in (None, n)]
            if not claimed:
                return [n for n, last in found.items() if _is_file(last)]
            for n in claimed:
                with suppress(AlreadyExists):  # the file was put, or another call has withdrawn it
                    self._store.put_if_absent(_next(f"{folder}/{n}", found[n]), _gone(), commits=False)

    def _put_behind(self, file: str, data: bytes) -> bool:
        """Put the next object of a file; return False when the file does not exist."""
        while _is_file(last := self._last(file)):
            with suppress(AlreadyExists):  # a concurrent call has changed or removed it
                self._store.put_if_absent(_next(file, last), data)
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


def _is_claim(last: Entry | None) -> bool:
    return last is not None and last.size == _CLAIM


def _gone() -> bytes:
    return uuid.uuid4().hex.encode()


def _marked(data: bytes) -> bytes:
    """Add a unique ``id`` to a file: two callers that put the same bytes could not tell which one was first."""
    return json.dumps({**json.loads(data), "id": uuid.uuid4().hex}).encode()


def _next(file: str, last: Entry | None) -> str:
    if last is None:
        return file
    number = last.path.rpartition(SUFFIX)[2]
    return f"{file}.{int(number[1:] or 0) + 1:010d}"
