"""The stored rows that no merged read shows, of engines that keep rows whole (U1-U8, E2), found in Arrow.

Such an engine shows one stored row of each key, or none. Key, ordering columns and marks of deletion alone decide
which: with these each task folds the log, and looks up the log's keys in its part of the base.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.reading.data_files import bitmap_of, not_deleted, read_columns
from trinity.engine.reading.file_arrival import FileArrival
from trinity.engine.reading.row_arrival import RowArrival
from trinity.engine.reading.spark_hash import in_bucket_order
from trinity.hidden import ARRIVAL, DELETED, FILE_NUMBER, POSITION
from trinity.limits import Limit
from trinity.merge.arrow.fold import compared_columns, is_deleted, losers, taking_part, winners
from trinity.merge.kernels.keys import Keys
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, Deletes
from trinity.storage import Cache
from trinity.storage.file_schema import in_file
from trinity.storage.parquet_files import rows_in

SIDECAR: Final = -1
"""The number that every sidecar file has: no read shows their rows."""
LOG: Final = 0
"""Number that stands for the log as a whole."""
_THREADS: Final = 8
"""Threads of a task that open files of the log: opening dominates the cost of a small file."""
_ROWS_AT_ONCE: Final = 1 << 16
"""Most rows of small files of the log that are searched together."""
FEW_FILES: Final = Limit(4)
"""Number of base files up to which looking up all keys of the log in each costs less than hashing them to buckets."""
_HEAD: Final = struct.Struct("<q")
_KEPT_BYTES: Final = 256 * 1024 * 1024
"""Most bytes of key and ordering columns that this process caches, for the searches after further commits."""
_kept: Final[Cache[tuple[str, pa.Schema], pa.Table]] = Cache(_KEPT_BYTES, lambda rows: int(rows.nbytes))
Read = Callable[[str, pa.Schema, Sequence[str]], pa.Table]
"""Reads columns of a file, as :func:`~trinity.engine.reading.data_files.read_columns`."""


class SomeKeys(Protocol):
    """Keys to which a search is limited."""

    def lookup(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions, ascending, of the rows that have one of the keys.

        The second array is of no use to a search: it numbers the keys of these rows.
        """
        ...


@dataclass(frozen=True)
class SearchedFile:
    """A file of the search.

    Attributes:
        number: identifies it in the fragments; :data:`SIDECAR` for a sidecar.
        rows: number of its rows, deleted ones too.
        bucket: the bucket of a base file, where the base has buckets; None for a file of any bucket, as a run is.
        partition: the values of columns that are stored in file lists alone.
    """

    number: int
    path: str
    rows: int
    arrival: FileArrival
    deletes: Deletes | None = None
    bucket: int | None = None
    partition: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, file: DataFile, *, bucketed: bool = False) -> SearchedFile:
        """Return a file under a number. Its bucket is noted only if ``bucketed``; runs have no bucket."""
        bucket = file.bucket.index if file.bucket and bucketed else None
        return cls(number, file.path, rows_in(file), FileArrival.of(file), file.deletes, bucket, file.partition)


@dataclass(frozen=True)
class FoldedLog:
    """The log, folded without the base.

    Attributes:
        log: its row versions, in arrival order.
        keys: its distinct keys.
        winners: the winning row of each key, by the key's number.
        parts: bucket -> the numbers of its keys; empty where that spares no work.
    """

    log: pa.Table
    keys: Keys
    winners: pa.Table
    parts: Mapping[int, np.ndarray]


@dataclass(frozen=True)
class Search:
    """The task of a search. The pages that it takes have numbers of base files, and :data:`LOG` for the log itself.

    Attributes:
        storage: key, ordering columns and marks of deletion as they are stored.
        earlier: files of sidecar and log, in arrival order, whose hidden rows are known, except for keys of ``later``.
        later: the files of the log after them, in arrival order.
        only: the keys to which the search is limited; None for all.
        files_stay: False where another file may get the name of a removed one.
        arrival: the arrival of rows by their stamps; None where rows arrived in the order of their files.
    """

    spec: MergeSpec
    storage: pa.Schema
    earlier: tuple[SearchedFile, ...]
    later: tuple[SearchedFile, ...]
    base: dict[int, SearchedFile]
    buckets: int | None = None
    only: SomeKeys | None = None
    files_stay: bool = True
    arrival: RowArrival | None = None

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        """Search some files, and return fragments, which :func:`decode_bitmaps` reads.

        Raises:
            TrinityError: BAD_DATA naming a file that cannot be read, or a key whose winner depends on an unknown
                order of arrival.
        """
        wanted = [number for page in pages for number in page.column(0).to_pylist()]
        return self.found(self.folded(len(wanted)), wanted)

    def folded(self, files: int, read: Read = read_columns) -> FoldedLog:
        """Fold the log, for a search of ``files`` base files. Raises as :meth:`__call__`."""
        log = self._log(read)
        keys, won = winners(self.spec, taking_part(self.spec, log))
        if self.arrival is not None:
            self.arrival.check(log, as_numpy(won.column(ARRIVAL)))
        won = won.append_column(DELETED, is_deleted(self.spec, won))
        return FoldedLog(log, keys, won, self._parts(keys, won) if files > FEW_FILES.value else {})

    def _parts(self, keys: Keys, winners: pa.Table) -> dict[int, np.ndarray]:
        if not self.buckets or not keys.are_looked_up:
            return {}
        order, edges = in_bucket_order(winners, self.spec.key, self.buckets)
        return {bucket: order[edges[bucket] : edges[bucket + 1]] for bucket in range(self.buckets)}

    def found(self, folded: FoldedLog, wanted: Sequence[int], read: Read = read_columns) -> list[bytes]:
        """Return the fragments of the wanted files. Raises BAD_DATA for a file that cannot be read."""
        found = [_losing_rows(folded.log, folded.winners)] if LOG in wanted else []
        mine = [self.base[number] for number in wanted if number != LOG]
        for file in mine:
            found += self._losing(file, folded, read)
        return _fragments(found, [*self.earlier, *self.later, *mine])

    def _log(self, read: Read) -> pa.Table:
        """Read the row versions of the keys of ``later``, with file, position and arrival."""
        later = self._read_files(self.later, read) or [self._no_rows()]
        if not self.earlier:
            return self._in_arrival_order(later)
        keys, _ = Keys.of(pa.concat_tables(later), self.spec.key)
        return self._in_arrival_order([*self._read_files(self.earlier, read, keys), *later])

    def _no_rows(self) -> pa.Table:
        rows = self._with_moments(self.storage.empty_table(), FileArrival(before=False, stamp=None, moment=0))
        return _placed(rows, np.arange(0), np.arange(0))

    def _with_moments(self, rows: pa.Table, file: FileArrival) -> pa.Table:
        return rows if self.arrival is None else self.arrival.with_moments(rows, file)

    def _in_arrival_order(self, files: Sequence[pa.Table]) -> pa.Table:
        """Concatenate rows of files, which are in order, sort them by stamps if need be, and number them by arrival."""
        rows = pa.concat_tables(files).combine_chunks()
        if self.arrival is not None:
            rows = self.arrival.in_order(rows)
        return rows.append_column(ARRIVAL, as_arrow(np.arange(len(rows))))

    def _read_files(self, files: Sequence[SearchedFile], read: Read, among: SomeKeys | None = None) -> list[pa.Table]:
        """Read rows of files in order; several threads open files that are not in memory, or look through many rows."""
        unread = sum(not (read is kept_columns and self._is_kept(file)) for file in files)
        at_once = -(-len(files) // _THREADS) if unread >= _THREADS else len(files)
        groups = list(_in_groups(files, at_once))
        if len(groups) < 2:
            return [self._rows_of(group, read, among) for group in groups]
        with ThreadPoolExecutor(min(_THREADS, len(groups))) as pool:
            return list(pool.map(lambda group: self._rows_of(group, read, among), groups))

    def _is_kept(self, file: SearchedFile) -> bool:
        return _kept.peek(_kept_as(file.path, in_file(self.storage, file.partition), self.storage.names)) is not None

    def _losing(self, file: SearchedFile, folded: FoldedLog, read: Read) -> list[_RowPositions]:
        """Find base rows that lose to the log, and winners of the log that lose to base rows."""
        among = folded.parts.get(file.bucket) if file.bucket is not None else None
        if not len(folded.keys if among is None else among):
            return []
        rows = read(file.path, self.storage, compared_columns(self.spec))
        lost, beaten = losers(self.spec, rows, folded.keys, folded.winners, file.deletes, among)
        return [_RowPositions.in_one(file, lost), _RowPositions.among(folded.winners.take(as_arrow(beaten)))]

    def _rows_of(self, files: Sequence[SearchedFile], read: Read, among: SomeKeys | None) -> pa.Table:
        """Read the rows of files that are not deleted and have keys that are looked for, with file and position."""
        names = self.storage.names
        each = [
            self._with_moments(read(file.path, in_file(self.storage, file.partition), names), file.arrival)
            for file in files
        ]
        positions = [not_deleted(np.arange(len(rows)), file.deletes) for rows, file in zip(each, files, strict=True)]
        live = [r if len(at) == len(r) else r.take(as_arrow(at)) for r, at in zip(each, positions, strict=True)]
        numbers = np.repeat([file.number for file in files], [len(at) for at in positions])
        rows = _placed(pa.concat_tables(live), numbers, np.concatenate(positions))
        for keys in (self.only, among):
            rows = rows if keys is None else rows.take(as_arrow(keys.lookup(rows)[0]))
        return rows


@dataclass(frozen=True)
class _RowPositions:
    """Rows that no read shows: numbers of files, and positions within them."""

    files: np.ndarray
    positions: np.ndarray

    @classmethod
    def in_one(cls, file: SearchedFile, positions: np.ndarray) -> _RowPositions:
        return cls(np.full(len(positions), file.number), positions)

    @classmethod
    def among(cls, rows: pa.Table) -> _RowPositions:
        return cls(as_numpy(rows.column(FILE_NUMBER)), as_numpy(rows.column(POSITION)))


def _in_groups(files: Sequence[SearchedFile], at_once: int) -> Iterator[Sequence[SearchedFile]]:
    """Group consecutive files: at most ``at_once`` in a group, and few rows, unless one file has more."""
    group, rows = list[SearchedFile](), 0
    for file in files:
        if group and (len(group) == at_once or rows + file.rows > _ROWS_AT_ONCE):
            yield group
            group, rows = [], 0
        group.append(file)
        rows += file.rows
    if group:
        yield group


def _placed(rows: pa.Table, files: np.ndarray, positions: np.ndarray) -> pa.Table:
    return rows.append_column(FILE_NUMBER, as_arrow(files)).append_column(POSITION, as_arrow(positions))


def _losing_rows(log: pa.Table, winners: pa.Table) -> _RowPositions:
    """Return the row versions of the log that win no key, or delete it."""
    live = winners.filter(pc.invert(winners.column(DELETED)))
    gone = np.ones(len(log), bool)
    gone[as_numpy(live.column(ARRIVAL))] = False
    return _RowPositions.among(log.filter(as_arrow(gone)))


def _fragments(found: Sequence[_RowPositions], files: Sequence[SearchedFile]) -> list[bytes]:
    """Return a fragment for each file that has a row to leave out: the file's number, and its bitmap."""
    if not found:
        return []
    numbers, positions = np.concatenate([f.files for f in found]), np.concatenate([f.positions for f in found])
    order = np.argsort(numbers, kind="stable")
    numbers, positions = numbers[order], positions[order]
    known = {file.number: file.rows for file in files}
    present, edges = np.unique(numbers, return_index=True)
    parts = zip(present.tolist(), edges, np.append(edges, len(numbers))[1:], strict=True)
    return [
        _HEAD.pack(number) + bitmap_of(positions[first:last], known[number]).tobytes()
        for number, first, last in parts
        if number != SIDECAR
    ]


def search_in_process(search: Search, threads: int) -> list[bytes]:
    """Return all fragments of a search, which folds the log once in this process.

    Raises:
        TrinityError: BAD_DATA naming a file that cannot be read, or a key whose winner depends on an unknown
            order of arrival.
    """
    read = kept_columns if search.files_stay else read_columns
    folded = search.folded(len(search.base), read)
    with ThreadPoolExecutor(max(1, min(threads, len(search.base) + 1))) as pool:
        found = pool.map(lambda number: search.found(folded, [number], read), [LOG, *search.base])
        return [fragment for fragments in found for fragment in fragments]


def kept_columns(path: str, storage: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return some columns of a file as :func:`read_columns`; this process keeps them for later look-ups of keys."""
    return _kept.get(_kept_as(path, storage, names), lambda: read_columns(path, storage, names))


def _kept_as(path: str, storage: pa.Schema, names: Sequence[str]) -> tuple[str, pa.Schema]:
    """Return the cache's key for columns, without metadata of the schema: Arrow hashes and does not compare them."""
    return path, pa.schema([storage.field(name) for name in names])


def forget_columns() -> None:
    """Empty the cache of columns, so that the next search reads all files."""
    _kept.drop(lambda _: True)


def decode_bitmaps(fragments: Iterable[bytes]) -> dict[int, np.ndarray]:
    """Return number of a file -> its bitmap, from the fragments of all tasks."""
    found: dict[int, np.ndarray] = {}
    for fragment in fragments:
        [number] = _HEAD.unpack_from(fragment)
        words = np.frombuffer(fragment, np.int64, offset=_HEAD.size)
        found[number] = words | found[number] if number in found else words
    return found
