"""Names in a store that can only put if absent: each name has a log of numbered objects.

The objects are ``<folder>/<name>/<10 digits>``, with the name spelled as a folder; the one with the highest number
counts. An object with JSON says that the name is taken, and by what. An object of at most 32 bytes says that the name
is free again; its bytes are an id of the writer that freed it. Objects are put if absent, so one of two concurrent
writers wins.

A table's name depends on its schema's. So there are two states between free and taken, each of which ends with a check:

=======  ==================  ================  =======================================================================
state    newest object       readers see       next state
=======  ==================  ================  =======================================================================
free     none, or a mark     a free name       claimed, by who wants to take the name
claimed  16 bytes            a free name       taken, by who claimed it; free, by who frees the name it depends on
taken    JSON                a taken name      closing, by who wants to free the name
closing  JSON that says so   a taken name      free, by who closed it; taken, by who takes a name that depends on it
=======  ==================  ================  =======================================================================

So if two calls exclude each other, at least one of them sees the other before it is done.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeGuard

from trinity.errors import TrinityError
from trinity.storage.cache import Cache
from trinity.storage.entries import Entry
from trinity.storage.errors import AlreadyExists
from trinity.storage.folder_names import folder_name, name_of
from trinity.storage.store import ObjectStore

_KEPT: Final = 1000
_FREED: Final = 32
"""Maximum bytes of an object that frees a name. Those of older releases are empty, without an id."""
_CLAIM: Final = 16
"""Bytes of an object that claims a name."""
_CLOSING: Final = "closing"
"""Key in the JSON of a name that is about to be freed."""


class NameLog:
    """The names below one folder."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._contents: Cache[str, dict[str, Any]] = Cache(_KEPT)  # an object never changes

    def taken(self, below: str = "") -> list[str]:
        """Return the taken names, sorted. It takes a request for each thousand objects.

        Args:
            below: for names of two parts, the first part.
        """
        found = [(name, entry) for name, entry in self._newest(*filter(None, [below])).items() if _takes(entry)]
        return sorted(name_of(name) or str(self._read(entry)["name"]) for name, entry in found)

    def find(self, *name: str) -> Mapping[str, Any] | None:
        """Return the facts of a taken name; None if it is free. It takes a request, and one more for uncached facts."""
        found = self._entry(*name)
        return self._read(found) if _takes(found) else None

    def take(self, *name: str, check: Callable[[], object] | None = None, **facts: str) -> None:
        """Take a name. Raises AlreadyExists if it is taken, or if another writer takes it at this moment.

        Args:
            name: its parts.
            check: called once the name is claimed, and again if :meth:`settle` has withdrawn the claim. It raises an
                error for a name that must not be taken.
            facts: what :meth:`find` returns.
        """
        data = json.dumps({"name": name[-1], **facts, "id": uuid.uuid4().hex}).encode()
        while not _takes(found := self._entry(*name)):
            if check is None:
                return self._put(name, found, data)
            with suppress(AlreadyExists):  # another writer has claimed or taken it, or withdrawn the claim
                if _claims(found):  # this writer's claim or another's: one of them takes the name
                    check()
                    return self._put(name, found, data)
                self._put(name, found, secrets.token_hex(_CLAIM // 2).encode(), commits=False)
        raise AlreadyExists(name[-1])

    def settle(self, below: str) -> None:
        """Withdraw the claims to the names of two parts with this first part."""
        for entry in self._newest(below).values():
            if _claims(entry):
                with suppress(AlreadyExists):  # the name was taken, or another writer has withdrawn the claim
                    self._store.put_if_absent(_next_path(entry.path), uuid.uuid4().hex.encode(), commits=False)

    def open(self, *name: str) -> bool:
        """Keep a name that is closing from being freed. Return False for one that is not taken."""
        while _takes(found := self._entry(*name)):
            facts = self._read(found)
            if not facts.get(_CLOSING):
                return True
            with suppress(AlreadyExists):
                self._put(name, found, _opened(facts), commits=False)
        return False

    def free(self, *name: str, **facts: str) -> bool:
        """Free a name that is taken with these facts. Return False if it is not, or if another writer was first."""
        found = self._entry(*name)
        if not (_takes(found) and facts.items() <= self._read(found).items()):
            return False
        try:
            self._put(name, found, uuid.uuid4().hex.encode())
        except AlreadyExists:
            return False
        return True

    def close(self, *name: str, check: Callable[[], object]) -> bool:
        """Free a name on which other names may depend. Return False if it is not taken, or if another writer frees it.

        Args:
            name: its parts.
            check: called once the name is closing, and again if :meth:`open` has opened it. It raises an error for a
                name that must stay, as others depend on it.
        """
        while _takes(found := self._entry(*name)):
            facts = self._read(found)
            with suppress(AlreadyExists):  # another writer has freed, closed or opened it
                if facts.get(_CLOSING):
                    try:
                        check()
                    except TrinityError:
                        with suppress(AlreadyExists):
                            self._put(name, found, _opened(facts), commits=False)
                        raise
                    self._put(name, found, uuid.uuid4().hex.encode())
                    return True
                self._put(name, found, json.dumps({**facts, _CLOSING: uuid.uuid4().hex}).encode(), commits=False)
        return False

    def history(self, *spelled: str) -> dict[str, list[Mapping[str, Any] | None]]:
        """Return the history of names: in order, the facts of each time that they were taken, None for each freeing.

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

    def _put(self, name: tuple[str, ...], before: Entry | None, data: bytes, *, commits: bool = True) -> None:
        first = f"{self._folder_of(*name)}/{1:010d}"
        self._store.put_if_absent(_next_path(before.path) if before else first, data, commits=commits)

    def _folder_of(self, *name: str) -> str:
        return "/".join((self._folder, *map(folder_name, name)))

    def _newest(self, *below: str) -> dict[str, Entry]:
        """Return spelled name -> its object of the highest number, which a listing has last."""
        return {entry.path.split("/")[-2]: entry for entry in self._store.list(self._folder_of(*below))}

    def _read(self, entry: Entry) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self._store.get(entry.path))
            return found

        return self._contents.get(entry.path, read)


def _next_path(path: str) -> str:
    """Return the path of the next object of a name."""
    folder, _, number = path.rpartition("/")
    return f"{folder}/{int(number) + 1:010d}"


def _opened(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(
        {key: value for key, value in facts.items() if key != _CLOSING} | {"id": uuid.uuid4().hex}
    ).encode()


def _claims(entry: Entry | None) -> bool:
    return entry is not None and entry.size == _CLAIM


def _takes(entry: Entry | None) -> TypeGuard[Entry]:
    return entry is not None and entry.size > _FREED
