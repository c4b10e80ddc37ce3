"""Names in a store with put-if-absent only: each name has a log of numbered objects.

The objects are ``<folder>/<name>/<10 digits>``, the name spelled as a folder; the highest number counts. An object with
JSON says that the name is taken, and by what. An object of at most 32 bytes, a mark of who freed it, says that the name
is free again. Numbers are put if absent, so one of two concurrent writers wins.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from trinity.storage.cache import Cache
from trinity.storage.errors import AlreadyExists
from trinity.storage.folder_names import folder_name, name_of
from trinity.storage.store import Entry, ObjectStore

__all__ = ["NameLog"]

_KEPT: Final = 1000
_FREED: Final = 32
"""Maximum bytes of an object that frees a name. Older ones are empty and do not say who freed it."""


class NameLog:
    """The names below one folder.

    Args:
        store: the store of the folder.
        folder: the folder's name in it.
    """

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._contents: Cache[str, dict[str, Any]] = Cache(_KEPT)  # an object never changes

    def taken(self, below: str = "") -> list[str]:
        """Return the taken names, sorted. Takes one request for a thousand of them.

        Args:
            below: for names of two parts, the first part.
        """
        found = [(name, entry) for name, entry in self._newest(*filter(None, [below])).items() if _takes(entry)]
        return sorted(name_of(name) or str(self._read(entry)["name"]) for name, entry in found)

    def find(self, *name: str) -> Mapping[str, Any] | None:
        """Return the facts of a taken name; None when it is free. One request, two for facts that are not cached."""
        found = self._entry(*name)
        return self._read(found) if _takes(found) else None

    def take(self, *name: str, **facts: str) -> None:
        """Take a name. Raises AlreadyExists when it is taken, also when another writer takes it at this moment."""
        found = self._entry(*name)
        if _takes(found):
            raise AlreadyExists(name[-1])
        self._put(name, found, json.dumps({"name": name[-1], **facts, "id": uuid.uuid4().hex}).encode())

    def free(self, *name: str, **facts: str) -> bool:
        """Free a name that is taken with these facts. Return False when it is not, or another writer frees it now."""
        found = self._entry(*name)
        if not (_takes(found) and facts.items() <= self._read(found).items()):
            return False
        try:
            self._put(name, found, uuid.uuid4().hex.encode())
        except AlreadyExists:
            return False
        return True

    def history(self, *spelled: str) -> dict[str, list[Mapping[str, Any] | None]]:
        """Return the facts with which names were taken, in order; None for each time that they were freed.

        Args:
            spelled: the first parts of the names, or all, spelled as folders.

        Returns:
            the last part of each name, spelled as a folder -> its history.
        """
        found: dict[str, list[Mapping[str, Any] | None]] = {}
        for entry in self._store.list("/".join((self._folder, *spelled))):
            found.setdefault(entry.path.split("/")[-2], []).append(self._read(entry) if _takes(entry) else None)
        return found

    def _entry(self, *name: str) -> Entry | None:
        return next(iter(self._newest(*name).values()), None)

    def _put(self, name: tuple[str, ...], before: Entry | None, data: bytes) -> None:
        number = 1 + (int(before.path.rpartition("/")[2]) if before else 0)
        self._store.put_if_absent(f"{self._place(*name)}/{number:010d}", data)

    def _place(self, *name: str) -> str:
        return "/".join((self._folder, *map(folder_name, name)))

    def _newest(self, *below: str) -> dict[str, Entry]:
        """Return spelled name -> its object of the highest number; objects are listed in the order of their numbers."""
        return {entry.path.split("/")[-2]: entry for entry in self._store.list(self._place(*below))}

    def _read(self, entry: Entry) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self._store.get(entry.path))
            return found

        return self._contents.get(entry.path, read)


def _takes(entry: Entry | None) -> TypeGuard[Entry]:
    return entry is not None and entry.size > _FREED
