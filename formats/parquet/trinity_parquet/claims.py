"""Commits to a folder of others: one object in its root claims the next number, and is the commit point.

``.trinity-commits/<20 digits>.json`` names the staged files that move into the folder, and the files that go once all
of them have; other engines skip both folders. A claim stands when it is there: whoever reads or writes next completes
it, so that of a crashed commit all files come, or none. Until then they are kept out of sight.

In a bucket a file moves by a copy, and its commit is under way as long as the staged one is there. Several may copy it
at once, and a store that is slow with one of the copies may bring a file back that a compaction has replaced since. So
``<20 digits>.replaces`` tells of claims that replaced files: what they replaced stays out of sight as long as the claim
is remembered, which is longer than a request may last, and the next writer deletes it again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Final

from trinity.errors import TrinityError
from trinity.storage import COMMIT_TIMEOUT_S, AlreadyExists, CommitRaced, ObjectStore
from trinity_parquet.arrival import Mark, mark_of, walk

__all__ = ["AT_ONCE", "STAGING", "Claim", "Claims", "Stage"]

STAGING: Final = ".trinity-staging"
_CLAIMS: Final = ".trinity-commits"
_CLAIM: Final = ".json"
_REPLACES: Final = ".replaces"
AT_ONCE: Final = 16
"""Files of a bucket that are asked for side by side."""
_ABANDONED_MS: Final = 7 * 24 * 3600 * 1000
"""The age from which on files that are staged are nobody's: their process was killed before it made its claim."""


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
        self._done = -1  # the highest number that is known to be complete
        self.replaced: Mapping[int, Mapping[str, Mark]] = {}
        """Number of a claim that is remembered -> the files that it replaced; in a bucket."""

    def known(self) -> Claim:
        """The newest claim that this process knows to be complete, without a look; the newest of all at first."""
        return Claim(self._done, "", {}) if self._done >= 0 else self.newest()

    def newest(self) -> Claim:
        """The newest claim; number 0, which does nothing, where there is none. Raises BAD_DATA naming a damaged one."""
        names = self._store.names(_CLAIMS)
        number = max(_numbers(names, _CLAIM), default=0)
        self._done = min(self._done, number) if number else 0  # somebody may have cleared the folder
        self._remember(names)
        if number == self._done:
            return Claim(number, "", {})
        claim = self._read(number)
        if claim.removed and not self._store.on_disk:
            self.replaced = {**self.replaced, number: claim.removed}
        return claim

    def _remember(self, names: Iterable[str]) -> None:
        """Reads what claims replaced that others tell of."""
        told = set(_numbers(names, _REPLACES)) | {max(_numbers(names, _CLAIM), default=0)}
        kept = {number: files for number, files in self.replaced.items() if number in told}
        for number in set(_numbers(names, _REPLACES)) - kept.keys():
            try:
                kept[number] = self._read(number).removed
            except TrinityError as error:
                if error.code != "BAD_DATA":  # else it was forgotten meanwhile
                    raise
        self.replaced = kept

    def _read(self, number: int) -> Claim:
        name = _name(number)
        try:
            found = json.loads(self._store.get(name))
            removed = {path: tuple(mark) for path, mark in found["removed"].items()}
            return Claim(found["number"], found["statement"], found["moves"], removed)
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
            raise TrinityError(
                "BAD_DATA",
                f"'{self._store.path(name)}' is missing or corrupt ({error}); restore it from a copy.",
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
        if stage is Stage.REMOVING and claim.removed.get(path) == mark:
            return True
        return self._is_replaced(path, mark)

    def stage(self, claim: Claim) -> Stage:
        """The stage that a claim has come to."""
        if claim.number <= self._done:
            return Stage.DONE
        if self._is_staged(claim):
            return Stage.MOVING
        if self._replaced(claim):
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
        self._move_all(claim.moves)
        self._store.sync_folders(map(_folder, claim.moves.values()))
        if removing:
            if claim.removed and not self._store.on_disk:
                self._store.put(f"{_CLAIMS}/{claim.number:020d}{_REPLACES}", b"")
                self.replaced = {**self.replaced, claim.number: claim.removed}
            self._store.delete(self._replaced(claim))
            self._done = max(self._done, claim.number)
            with contextlib.suppress(TrinityError):
                self._clear(claim)

    def discard(self, statement: str) -> None:
        """Removes what a statement has staged, unless a claim stands that needs it, or nobody can say."""
        with contextlib.suppress(OSError, TrinityError):
            if self.newest().statement != statement:
                self._store.delete_below(_staging(statement))

    def _move_all(self, moves: Mapping[str, str]) -> None:
        """Moves files; in a bucket, where each is some requests, side by side."""
        if self._store.on_disk or len(moves) == 1:
            for names in moves.items():
                self._move(*names)
            return
        with ThreadPoolExecutor(AT_ONCE) as movers:
            list(movers.map(self._move, moves.keys(), moves.values()))

    def _move(self, staged: str, path: str) -> None:
        self._store.make_folder(_folder(path))
        with contextlib.suppress(FileNotFoundError):  # another one did it
            self._store.move(staged, path)

    def _is_staged(self, claim: Claim) -> bool:
        """True while a file has not moved; in a bucket one listing tells."""
        if self._store.on_disk:
            return any(map(self._store.exists, claim.moves))
        return any(entry.path in claim.moves for entry in self._store.list(_staging(claim.statement)))

    def _replaced(self, claim: Claim) -> list[str]:
        """The files that a claim replaces, and that are still there."""
        there = self._marks(claim.removed) if claim.removed else {}
        return [path for path, mark in claim.removed.items() if there.get(path) == mark]

    def _marks(self, paths: Iterable[str]) -> dict[str, Mark]:
        """The marks that files have now; in a bucket by one listing, whose marks those of a claim are."""
        if not self._store.on_disk:
            return dict(walk(self._store))
        looked = ((path, self._store.stat(path)) for path in paths)
        return {path: mark_of(self._store, path, found) for path, found in looked if found}

    def _clear(self, claim: Claim) -> None:
        """Deletes what a complete claim does not need, and what nobody does, all by the clock of the store.

        Those are claims that a writer who was slow to put the next one cannot take for absent any more, and what others
        have staged so long ago that nobody will claim it.
        """
        claims = {entry.path: entry.modified_ms for entry in self._store.list(_CLAIMS)}
        now = claims.get(_name(claim.number), 0)
        limit = now - int(COMMIT_TIMEOUT_S * 1000)
        if any(name.endswith(_REPLACES) for name in claims):
            came_back = [path for path, mark in walk(self._store) if self._is_replaced(path, mark)]
            self._store.delete(came_back)
        young = {name[: -len(_REPLACES)] for name, at in claims.items() if name.endswith(_REPLACES) and at >= limit}
        old = [name for name, at in claims.items() if at < limit and name < _name(claim.number)]
        self._store.delete(name for name in old if name.removesuffix(_CLAIM) not in young)
        staged: dict[str, int] = {}
        for entry in self._store.list(STAGING):
            statement = entry.path.split("/")[1]
            staged[statement] = max(entry.modified_ms, staged.get(statement, 0))
        gone = {statement for statement, at in staged.items() if at < now - _ABANDONED_MS}
        for statement in {claim.statement, *gone} if self._store.on_disk else {claim.statement, *gone} & staged.keys():
            self._store.delete_below(_staging(statement))

    def _is_replaced(self, path: str, mark: Mark) -> bool:
        return any(files.get(path) == mark for files in self.replaced.values())


def _numbers(names: Iterable[str], ending: str) -> list[int]:
    stems = (name.removesuffix(ending) for name in names if name.endswith(ending))
    return [int(stem) for stem in stems if stem.isdecimal()]


def _name(number: int) -> str:
    return f"{_CLAIMS}/{number:020d}{_CLAIM}"


def _staging(statement: str) -> str:
    return f"{STAGING}/{statement}"


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
