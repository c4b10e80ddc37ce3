"""Commits to a folder of others: one object in its root claims the next number, and is the commit point.

``.trinity-commits/<20 digits>.json`` names the staged files that move into the folder, and the files that go once all
of them have; other engines skip both folders. A claim stands when it is there: whoever reads or writes next completes
it, so that of a crashed commit all files come, or none. Until then they are kept out of sight.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Final

from trinity.errors import TrinityError
from trinity.storage import COMMIT_TIMEOUT_S, AlreadyExists, CommitRaced, ObjectStore, Stat

__all__ = ["STAGING", "Claim", "Claims", "Mark", "Stage", "mark_of"]

STAGING: Final = ".trinity-staging"
_CLAIMS: Final = ".trinity-commits"

Mark = tuple[int, int]
"""The mark that a file is known by: modification time in nanoseconds, and bytes."""


def mark_of(found: Stat) -> Mark:
    """The mark of a file of which this is known."""
    return found.modified_ns, found.size


class Stage(Enum):
    """The stage that a claim has come to. It only goes on, from one to the next."""

    MOVING = "some files are still staged: none is in sight"
    REMOVING = "the files have moved: those that they replace are out of sight"
    DONE = "nothing is left to do"


@dataclass(frozen=True)
class Claim:
    """One commit; paths below the folder.

    Attributes:
        number: counts the commits of Trinity's writers.
        statement: whose staging folder holds the files.
        moves: staged file -> the file that it becomes.
        removed: file that is replaced -> its mark.
    """

    number: int
    statement: str
    moves: Mapping[str, str]
    removed: Mapping[str, Mark] = field(default_factory=dict)


class Claims:
    """The claims of one folder. Only the newest one can be incomplete: who claims the next number completes it first.

    Args:
        store: the folder.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._done = 0  # the highest number that is known to be complete

    def newest(self) -> Claim:
        """The newest claim; number 0, which does nothing, where there is none. Raises BAD_DATA naming a damaged one."""
        number = max(self._numbers(), default=0)
        self._done = min(self._done, number)  # somebody may have cleared the folder
        if number == self._done:
            return Claim(number, "", {})
        name = _name(number)
        try:
            found = json.loads(self._store.get(name))
            removed = {path: (time_ns, size) for path, (time_ns, size) in found["removed"].items()}
            return Claim(found["number"], found["statement"], found["moves"], removed)
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
            raise TrinityError(
                "BAD_DATA", f"'{self._store.path(name)}' is missing or corrupt ({error!r}); restore it from a copy."
            ) from error

    def settle(self) -> None:
        """Completes the newest claim."""
        claim = self.newest()
        if self.stage(claim) is not Stage.DONE:
            self.complete(claim)

    def hides(self, claim: Claim, stage: Stage, path: str, mark: Mark) -> bool:
        """True when a file of the folder is out of sight."""
        if stage is Stage.MOVING:
            return path in claim.moves.values()
        return stage is Stage.REMOVING and claim.removed.get(path) == mark

    def stage(self, claim: Claim) -> Stage:
        """The stage that a claim has come to."""
        if claim.number <= self._done:
            return Stage.DONE
        if any(map(self._store.exists, claim.moves)):
            return Stage.MOVING
        if any(self._is_there(path, mark) for path, mark in claim.removed.items()):
            return Stage.REMOVING
        self._done = claim.number
        return Stage.DONE

    def put(self, claim: Claim) -> None:
        """Makes a claim: the commit. Raises CommitRaced when another writer took the number."""
        try:
            self._store.put_if_absent(_name(claim.number), json.dumps(asdict(claim)).encode())
        except AlreadyExists as taken:
            raise CommitRaced(f"another writer added files to '{self._store.root}'") from taken

    def complete(self, claim: Claim, *, removing: bool = True) -> None:
        """Does what is left to do; several may at once. Readers move files, and leave the removal to writers."""
        for staged, path in claim.moves.items():
            self._move(staged, path)
        self._store.sync_folders(map(_folder, claim.moves.values()))
        if removing:
            self._store.delete(path for path, by in claim.removed.items() if self._is_there(path, by))
            self._store.delete_below(_staging(claim.statement))
            self._forget(claim.number)

    def discard(self, statement: str) -> None:
        """Removes what a statement has staged, unless a claim stands that needs it, or nobody can say."""
        with contextlib.suppress(OSError, TrinityError):
            if self.newest().statement != statement:
                self._store.delete_below(_staging(statement))

    def _move(self, staged: str, path: str) -> None:
        if self._store.exists(staged):
            self._store.make_folder(_folder(path))
            with contextlib.suppress(FileNotFoundError):  # another one did it
                self._store.move(staged, path)

    def _is_there(self, path: str, mark: Mark) -> bool:
        found = self._store.stat(path)
        return found is not None and mark_of(found) == mark

    def _forget(self, number: int) -> None:
        """Deletes claims that a writer who was slow to put the next one cannot take for absent any more."""
        limit = time.time_ns() - int(COMMIT_TIMEOUT_S * 1e9)
        for name in (_name(old) for old in self._numbers() if old < number):
            with contextlib.suppress(TrinityError):
                found = self._store.stat(name)
                if found is not None and found.modified_ns < limit:
                    self._store.delete([name])

    def _numbers(self) -> list[int]:
        names = self._store.names(_CLAIMS)
        return [int(n.removesuffix(".json")) for n in names if n.removesuffix(".json").isdecimal()]


def _name(number: int) -> str:
    return f"{_CLAIMS}/{number:020d}.json"


def _staging(statement: str) -> str:
    return f"{STAGING}/{statement}"


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
