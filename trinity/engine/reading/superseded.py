"""The stored rows that no merged read shows, of engines that keep rows whole (U1-U8, E2), found in Arrow.

Such an engine shows of each key one stored row, or none. Which rows these are is told by key, ordering columns and
marks of deletion alone: by these each task folds the log, and looks its part of the base up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.reading.arrow_fold import columns_to_meet, is_deleted, met, narrow_rows, taking_part
from trinity.engine.reading.arrow_keys import Keys
from trinity.engine.reading.deleted_rows import words_of
from trinity.engine.reading.spark_hash import in_bucket_order
from trinity.merge.engine import MergeEngine
from trinity.merge.spec import MergeSpec
from trinity.spi import Deletes

__all__ = ["ASIDE", "LOG", "Search", "Stored", "in_threads", "opened"]

_FILE: Final = "_trinity_file"
_PLACE: Final = "_trinity_place"
_ARRIVAL: Final = "_trinity_arrival"
_DELETED: Final = "_trinity_deleted"
ASIDE: Final = -1
"""Number of the files that have no row to show: those of the sidecar."""
LOG: Final = 0
"""Number that no file has."""
_AT_A_TIME: Final = 8
"""Files of the log that a task opens at once."""
_FEW_FILES: Final = 4
"""Base files among which every key of the log is looked for sooner than it is hashed."""
_HEAD: Final = struct.Struct("<q")
Read = Callable[[str, pa.Schema, Sequence[str]], pa.Table]
"""Reads some columns of a file, as :func:`~trinity.engine.reading.arrow_fold.narrow_rows`."""


@dataclass(frozen=True)
class Stored:
    """A file of the search.

    Attributes:
        number: by which the search tells of it; :data:`ASIDE` of a sidecar.
        path: absolute path.
        rows: number of its rows, deleted ones too.
        deletes: those of them that are deleted by position.
        bucket: of a base file, the one whose keys it has.
    """

    number: int
    path: str
    rows: int
    deletes: Deletes | None = None
    bucket: int | None = None


@dataclass(frozen=True)
class Folded:
    """The log by itself.

    Attributes:
        log: all its rows.
        keys: their distinct keys.
        winners: the winning row of each key, by its number.
        parts: bucket -> the numbers of its keys; empty where that spares no work.
    """

    log: pa.Table
    keys: Keys
    winners: pa.Table
    parts: Mapping[int, np.ndarray]


@dataclass(frozen=True)
class Search:
    """The task: its pages have the numbers of the base files that it looks at, and :data:`LOG` for the log by itself.

    Attributes:
        spec: the table's options.
        storage: key, ordering columns and marks of deletion as they are stored.
        earlier: sidecar and log whose superseded rows are known but for keys of ``later``; in arrival order.
        later: further log, in arrival order; it comes after ``earlier``.
        base: base files by their numbers.
        buckets: number of the buckets that base files have.
        only: keys among which alone superseded rows are looked for; None for all.
    """

    spec: MergeSpec
    storage: pa.Schema
    earlier: tuple[Stored, ...]
    later: tuple[Stored, ...]
    base: dict[int, Stored]
    buckets: int | None = None
    only: Keys | None = None

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        """Searches; fragments are read by :func:`opened`.

        Raises:
            TrinityError: BAD_DATA naming a file that cannot be read.
        """
        wanted = [number for page in pages for number in page.column(0).to_pylist()]
        return self.found(self.folded(len(wanted)), wanted)

    def folded(self, files: int, read: Read = narrow_rows) -> Folded:
        """The log by itself, of files that are read so, for so many base files. Raises as the call does."""
        log = self._log(read)
        part = taking_part(self.spec, log)
        keys, numbers = Keys.of(part, self.spec.key)
        winners = self._winners(part, numbers, len(keys))
        return Folded(log, keys, winners, self._parts(keys, winners) if files > _FEW_FILES else {})

    def _parts(self, keys: Keys, winners: pa.Table) -> dict[int, np.ndarray]:
        if not self.buckets or not keys.are_looked_up:
            return {}
        order, edges = in_bucket_order(winners, self.spec.key, self.buckets)
        return {bucket: order[edges[bucket] : edges[bucket + 1]] for bucket in range(self.buckets)}

    def found(self, folded: Folded, wanted: Sequence[int], read: Read = narrow_rows) -> list[bytes]:
        """The fragments of some pages' numbers. Raises as the call does."""
        found = [_outside(folded.log, folded.winners)] if LOG in wanted else []
        mine = [self.base[number] for number in wanted if number != LOG]
        for file in mine:
            found += self._met(file, folded, read)
        return _fragments(found, [*self.earlier, *self.later, *mine])

    def _log(self, read: Read) -> pa.Table:
        """Row versions of the keys of ``later``, with file, place and arrival."""
        later = _each(lambda file: self._narrow(file, read), self.later)
        if not self.earlier:
            return _arrived(later)
        keys, _ = Keys.of(pa.concat_tables(later), self.spec.key)
        earlier = _each(lambda file: _having(self._narrow(file, read), keys), self.earlier)
        return _arrived([*earlier, *later])

    def _winners(self, log: pa.Table, numbers: np.ndarray, keys: int) -> pa.Table:
        """The winning version of each key, by its number, with whether it deletes the row (K3, K4, E2)."""
        won = np.empty(keys, np.int64)
        won[numbers] = np.arange(len(log))
        several = np.flatnonzero(np.bincount(numbers)[numbers] > 1)
        if len(several):
            ranked = several[self._ranked(log, several)]
            won[numbers[ranked]] = ranked
        rows = log.take(won)
        return rows.append_column(_DELETED, is_deleted(self.spec, rows))

    def _ranked(self, log: pa.Table, some: np.ndarray) -> np.ndarray:
        """Row versions, by their places among some, in an order in which the winner of a key comes after its others."""
        spec = self.spec
        way = "ascending" if spec.descending else "descending"
        arrival = "ascending" if spec.engine is MergeEngine.FIRST_ROW else "descending"
        order = [*((c, way) for c in spec.ordering), (_ARRIVAL, arrival)]
        # (NULL, which loses, comes last whichever way; so the winner is first, until all is turned round)
        narrow = log.select(dict.fromkeys((*spec.ordering, _ARRIVAL))).take(some)
        ranked: np.ndarray = pc.sort_indices(narrow, sort_keys=order).to_numpy()
        return ranked[::-1]

    def _met(self, file: Stored, folded: Folded, read: Read) -> list[_Found]:
        """Base rows that lose to the log, and those of the log that lose to them."""
        among = folded.parts.get(file.bucket) if file.bucket is not None else None
        if not len(folded.keys if among is None else among):
            return []
        rows = read(file.path, self.storage, columns_to_meet(self.spec))
        lost, beaten = met(self.spec, rows, folded.keys, folded.winners, file.deletes, among)
        return [_Found.in_one(file, lost), _Found.among(folded.winners.take(beaten))]

    def _narrow(self, file: Stored, read: Read) -> pa.Table:
        """A file's rows that are not deleted, and have keys that are looked for, with file and place."""
        rows = read(file.path, self.storage, self.storage.names)
        places = np.arange(len(rows))
        if file.deletes is not None:
            places = np.setdiff1d(places, file.deletes.positions().to_numpy(), assume_unique=True)
            rows = rows.take(places)
        rows = rows.append_column(_FILE, pa.repeat(pa.scalar(file.number, pa.int64()), len(rows)))
        rows = rows.append_column(_PLACE, pa.array(places, pa.int64()))
        return rows if self.only is None else _having(rows, self.only)


@dataclass(frozen=True)
class _Found:
    """Rows that no read shows: numbers of files, and places within them."""

    files: np.ndarray
    places: np.ndarray

    @classmethod
    def in_one(cls, file: Stored, places: np.ndarray) -> _Found:
        return cls(np.full(len(places), file.number), places)

    @classmethod
    def among(cls, rows: pa.Table) -> _Found:
        return cls(rows.column(_FILE).to_numpy(), rows.column(_PLACE).to_numpy())


def _each(read: Callable[[Stored], pa.Table], files: Sequence[Stored]) -> list[pa.Table]:
    """Files in their order, several at a time: small ones take as long as it takes to open them."""
    if len(files) < _AT_A_TIME:
        return [read(file) for file in files]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(read, files))


def _having(rows: pa.Table, keys: Keys) -> pa.Table:
    return rows.take(keys.met(rows)[0])


def _arrived(files: Sequence[pa.Table]) -> pa.Table:
    """The rows of files that are in arrival order."""
    rows = pa.concat_tables(files).combine_chunks()
    return rows.append_column(_ARRIVAL, pa.array(np.arange(len(rows))))


def _outside(log: pa.Table, winners: pa.Table) -> _Found:
    """The row versions that win no key, or delete the row."""
    live = winners.filter(pc.invert(winners.column(_DELETED)))
    gone = np.ones(len(log), bool)
    gone[live.column(_ARRIVAL).to_numpy()] = False
    return _Found.among(log.filter(pa.array(gone)))


def _fragments(found: Sequence[_Found], files: Sequence[Stored]) -> list[bytes]:
    """A number and the words of its bits, for each file that has a row to leave out."""
    if not found:
        return []
    numbers, places = np.concatenate([f.files for f in found]), np.concatenate([f.places for f in found])
    order = np.argsort(numbers, kind="stable")
    numbers, places = numbers[order], places[order]
    known = {file.number: file.rows for file in files}
    present, edges = np.unique(numbers, return_index=True)
    parts = zip(present.tolist(), edges, np.append(edges, len(numbers))[1:], strict=True)
    return [
        _HEAD.pack(number) + words_of(places[first:last], known[number]).tobytes()
        for number, first, last in parts
        if number != ASIDE
    ]


def in_threads(search: Search, threads: int, read: Read = narrow_rows) -> list[bytes]:
    """All fragments of a search, which runs here: the log is folded once. Raises as the search does."""
    folded = search.folded(len(search.base), read)
    with ThreadPoolExecutor(threads) as pool:
        found = pool.map(lambda number: search.found(folded, [number], read), [LOG, *search.base])
        return [fragment for fragments in found for fragment in fragments]


def opened(fragments: Iterable[bytes]) -> dict[int, np.ndarray]:
    """Number of a file -> the words of its bits, of the fragments of all tasks."""
    found: dict[int, np.ndarray] = {}
    for fragment in fragments:
        [number] = _HEAD.unpack_from(fragment)
        words = np.frombuffer(fragment, np.int64, offset=_HEAD.size)
        found[number] = words | found[number] if number in found else words
    return found
