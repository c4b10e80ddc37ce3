"""Commits to a folder that others write: one object in its root claims the next number, and is the commit point.

``.trinity-commits/<20 digits>.json`` names the files in ``.trinity-staging`` that move into the folder, and the files
that are removed once all of them have moved. Other engines skip these two folders. A claim is committed once it exists:
the next reader or writer completes it, so of a crashed commit all files arrive, or none. Until all have moved, readers
hide them.

In a bucket a file moves by a copy, and its commit is under way as long as the staged file exists. Several processes may
copy it at once, and a slow copy may bring back a file that a compaction has replaced since. So
``<20 digits>.replaces`` marks claims that replaced files. What they replaced stays hidden as long as the claim is
remembered, which is longer than a request may last, and the next writer deletes it again.
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
from trinity.storage import AlreadyExists, CommitRaced, ObjectStore
from trinity.storage.commits import COMMIT_TIMEOUT_S
from trinity_parquet.arrival import Mark, mark_of, walk

STAGING: Final = ".trinity-staging"
_CLAIMS: Final = ".trinity-commits"
_CLAIM: Final = ".json"
_REPLACES: Final = ".replaces"
AT_ONCE: Final = 16
"""How many files of a bucket are requested in parallel."""
_ABANDONED_MS: Final = 7 * 24 * 3600 * 1000
"""The age at which staged files belong to nobody: their process was killed before it made its claim."""


class Stage(Enum):
    """The stage of a claim. Stages only advance, from one to the next."""

    MOVING = "some files are still staged: readers see none of the claim's files"
    REMOVING = "the files have moved: readers see them, and not those that they replace"
    DONE = "nothing is left to do"


@dataclass(frozen=True)
class Claim:
    """One commit to a folder. Its paths are relative to the folder.

    Attributes:
        statement: the statement whose staging folder holds the files.
        moves: staged file -> the file that it becomes.
        removed: file that is replaced -> its mark.
    """

    number: int
    statement: str
    moves: Mapping[str, str]
    removed: Mapping[str, Mark] = field(default_factory=dict)


class Claims:
    """The claims of one folder. Only the newest can be incomplete: a writer completes it before the next claim."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._done = -1  # the highest number that is known to be complete
        self.replaced: Mapping[int, Mapping[str, Mark]] = {}
        """Number of a remembered claim -> the files that it replaced; only in a bucket."""

    def known(self) -> Claim:
        """Return the newest claim known to be complete, without asking the store; the newest while none is known."""
        return Claim(self._done, "", {}) if self._done >= 0 else self.newest()

    def newest(self) -> Claim:
        """Return the newest claim; without any, a claim of number 0, which does nothing.

        Raises:
            TrinityError: BAD_DATA naming a damaged claim.
        """
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
        """Read the names of files that claims with a ``.replaces`` object have replaced."""
        named = set(_numbers(names, _REPLACES)) | {max(_numbers(names, _CLAIM), default=0)}
        kept = {number: files for number, files in self.replaced.items() if number in named}
        for number in set(_numbers(names, _REPLACES)) - kept.keys():
            try:
                kept[number] = self._read(number).removed
            except TrinityError as error:
                if error.code != "BAD_DATA":  # BAD_DATA: another writer has cleared the old claim since the listing
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
        """Complete the newest claim."""
        claim = self.newest()
        if self.stage(claim) is not Stage.DONE:
            self.complete(claim)

    def hides(self, claim: Claim, stage: Stage, path: str, mark: Mark) -> bool:
        """Return whether readers must not see a file of the folder while the newest claim is at a stage."""
        if stage is Stage.MOVING:
            return path in claim.moves.values()
        if stage is Stage.REMOVING and claim.removed.get(path) == mark:
            return True
        return self._is_replaced(path, mark)

    def stage(self, claim: Claim) -> Stage:
        """Return the stage of a claim."""
        if claim.number <= self._done:
            return Stage.DONE
        if self._is_staged(claim):
            return Stage.MOVING
        if self._replaced_files(claim):
            return Stage.REMOVING
        self._done = claim.number
        return Stage.DONE

    def put(self, claim: Claim) -> None:
        """Put a claim: this is the commit. Raises CommitRaced when another writer took the number."""
        try:
            self._store.put_if_absent(_name(claim.number), json.dumps(asdict(claim)).encode())
        except AlreadyExists as taken:
            raise CommitRaced(f"another writer added files to '{self._store.root}'") from taken

    def complete(self, claim: Claim, *, removing: bool = True) -> None:
        """Complete a claim. Several processes may do so at once; readers do it without ``removing`` replaced files."""
        self._move_all(claim.moves)
        self._store.sync_folders(map(_folder, claim.moves.values()))
        if removing:
            if claim.removed and not self._store.on_disk:
                self._store.put(f"{_CLAIMS}/{claim.number:020d}{_REPLACES}", b"")
                self.replaced = {**self.replaced, claim.number: claim.removed}
            self._store.delete(self._replaced_files(claim))
            self._done = max(self._done, claim.number)
            with contextlib.suppress(TrinityError):
                self._clear(claim)

    def discard(self, statement: str) -> None:
        """Remove the staged files of a statement, unless a claim may need them."""
        with contextlib.suppress(OSError, TrinityError):
            if self.newest().statement != statement:
                self._store.delete_below(_staging(statement))

    def _move_all(self, moves: Mapping[str, str]) -> None:
        """Move files; in a bucket, where each takes some requests, in parallel."""
        if self._store.on_disk or len(moves) == 1:
            for names in moves.items():
                self._move(*names)
            return
        with ThreadPoolExecutor(AT_ONCE) as movers:
            list(movers.map(self._move, moves.keys(), moves.values()))

    def _move(self, staged: str, path: str) -> None:
        self._store.make_folder(_folder(path))
        with contextlib.suppress(FileNotFoundError):  # another process moved it
            self._store.move(staged, path)

    def _is_staged(self, claim: Claim) -> bool:
        """Return whether a file of a claim has still to move; in a bucket by one listing."""
        if self._store.on_disk:
            return any(map(self._store.exists, claim.moves))
        return any(entry.path in claim.moves for entry in self._store.list(_staging(claim.statement)))

    def _replaced_files(self, claim: Claim) -> list[str]:
        """Return the files that a claim replaces, and that still exist."""
        there = self._marks(claim.removed) if claim.removed else {}
        return [path for path, mark in claim.removed.items() if there.get(path) == mark]

    def _marks(self, paths: Iterable[str]) -> dict[str, Mark]:
        """Return path -> current mark; in a bucket from a listing, as the marks of a claim are."""
        if not self._store.on_disk:
            return dict(walk(self._store))
        looked = ((path, self._store.stat(path)) for path in paths)
        return {path: mark_of(self._store, path, found) for path, found in looked if found}

    def _clear(self, claim: Claim) -> None:
        """Delete the staged files of a complete claim, replaced files that came back, old claims and old staged files.

        A claim is old when no slow writer can still find its number free. Staged files are old when nobody will claim
        them any more. Ages are measured by the clock of the store.
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
