"""The stored rows that no merged read shows, of engines that keep rows whole (U1-U8, E2), found in Arrow.

Such an engine shows of each key one stored row, or none. Which rows these are is told by key, ordering columns and
marks of deletion alone: by these each task folds the log, and looks its part of the base up.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.reading.arrow_keys import rows_with_keys
from trinity.engine.reading.deleted_rows import words_of
from trinity.errors import TrinityError
from trinity.merge.engine import MergeEngine
from trinity.merge.spec import MergeSpec
from trinity.merge.tombstone import DELETE_KIND, HIDDEN_KIND, retracts
from trinity.spi import ROW_KIND, Deletes
from trinity.storage import stored_pages

__all__ = ["ASIDE", "LOG", "Search", "Stored", "opened"]

_FILE: Final = "_trinity_file"
_PLACE: Final = "_trinity_place"
_ARRIVAL: Final = "_trinity_arrival"
_DELETED: Final = "_trinity_deleted"
ASIDE: Final = -1
"""Number of the files that have no row to show: those of the sidecar."""
LOG: Final = 0
"""Number that no file has."""
_HEAD: Final = struct.Struct("<q")


@dataclass(frozen=True)
class Stored:
    """A file of the search.

    Attributes:
        number: by which the search tells of it; :data:`ASIDE` of a sidecar.
        path: absolute path.
        rows: number of its rows, deleted ones too.
        deletes: those of them that are deleted by position.
    """

    number: int
    path: str
    rows: int
    deletes: Deletes | None = None


@dataclass(frozen=True)
class Search:
    """The task: its pages have the numbers of the base files that it looks at, and :data:`LOG` for the log by itself.

    Attributes:
        spec: the table's options.
        storage: key, ordering columns and marks of deletion as they are stored.
        earlier: sidecar and log whose superseded rows are known but for keys of ``later``; in arrival order.
        later: further log, in arrival order; it comes after ``earlier``.
        base: base files by their numbers.
    """

    spec: MergeSpec
    storage: pa.Schema
    earlier: tuple[Stored, ...]
    later: tuple[Stored, ...]
    base: dict[int, Stored]

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        """Searches; fragments are read by :func:`opened`.

        Raises:
            TrinityError: BAD_DATA naming a file that cannot be read.
        """
        numbers = [number for page in pages for number in page.column(0).to_pylist()]
        log = self._log()
        winners = self._winners(log)
        found = [_outside(log, winners)] if LOG in numbers else []
        mine = [self.base[number] for number in numbers if number != LOG]
        for file in mine:
            found += self._met(file, winners)
        return _fragments(found, [*self.earlier, *self.later, *mine])

    def _log(self) -> pa.Table:
        """Row versions of the keys of ``later`` that take part, with file, place and arrival."""
        later = [self._narrow(file) for file in self.later]
        if not self.earlier:
            return _arrived(later)
        keys = pa.concat_tables(later)
        earlier = map(self._narrow, self.earlier)
        return _arrived([*(rows.take(rows_with_keys(rows, keys, self.spec.key)) for rows in earlier), *later])

    def _winners(self, log: pa.Table) -> pa.Table:
        """The winning version of each key, with whether it deletes the row (K3, K4, E2)."""
        spec = self.spec
        if spec.ignore_delete and spec.row_kind:
            log = log.filter(pc.invert(retracts(log.column(spec.row_kind))))
        way = "ascending" if spec.descending else "descending"
        arrival = "ascending" if spec.engine is MergeEngine.FIRST_ROW else "descending"
        order = [*((k, "ascending") for k in spec.key), *((c, way) for c in spec.ordering), (_ARRIVAL, arrival)]
        ranked = log.take(pc.sort_indices(log, sort_keys=order))  # (NULL comes last whichever way)
        first = np.zeros(len(ranked), bool)
        first[:1] = True
        for name in spec.key if len(ranked) > 1 else ():
            values = ranked.column(name)
            first[1:] |= pc.not_equal(values.slice(1), values.slice(0, len(ranked) - 1)).to_numpy()
        won = ranked.filter(pa.array(first))
        return won.append_column(_DELETED, _deleting(spec, won))

    def _met(self, file: Stored, winners: pa.Table) -> list[pa.Table]:
        """Base rows that lose to the log, and those of the log that lose to them."""
        key, compared = list(self.spec.key), [*self._compared, _FILE, _PLACE]
        here = self._narrow(file).select([*key, *compared]).rename_columns({name: f"b.{name}" for name in compared})
        there = winners.select([*key, *compared]).rename_columns({name: f"l.{name}" for name in compared})
        both = here.join(there, key, join_type="inner", use_threads=False)
        wins = self._beats(both)
        lost = both.filter(pc.invert(wins)).select([f"b.{_FILE}", f"b.{_PLACE}"])
        beaten = both.filter(wins).select([f"l.{_FILE}", f"l.{_PLACE}"])
        return [found.rename_columns([_FILE, _PLACE]) for found in (lost, beaten)]

    def _beats(self, both: pa.Table) -> pa.ChunkedArray:
        """True where the base row wins all the same, as :func:`trinity.merge.fold.beats`."""
        first = self.spec.engine is MergeEngine.FIRST_ROW
        wins = pa.chunked_array([np.full(len(both), first)], pa.bool_())
        fresher = pc.less if self.spec.descending else pc.greater
        for name in () if first else reversed(self._compared):
            mine, other = both.column(f"b.{name}"), both.column(f"l.{name}")
            there = pc.and_(pc.is_valid(mine), pc.is_null(other))
            strictly = pc.or_(pc.fill_null(fresher(mine, other), False), there)
            alike = pc.or_(pc.fill_null(pc.equal(mine, other), False), pc.and_(pc.is_null(mine), pc.is_null(other)))
            wins = pc.or_(strictly, pc.and_(alike, wins))
        return wins

    @property
    def _compared(self) -> list[str]:
        """Ordering columns that rows of one key may differ in."""
        return [name for name in self.spec.ordering if name not in self.spec.key]

    def _narrow(self, file: Stored) -> pa.Table:
        """A file's rows that are not deleted, with file and place."""
        try:
            rows = pa.Table.from_batches(stored_pages(file.path, self.storage), self.storage)
        except (OSError, pa.ArrowException) as error:
            raise TrinityError("BAD_DATA", f"'{file.path}' cannot be read ({error}).") from error
        places = np.arange(len(rows))
        if file.deletes is not None:
            places = np.setdiff1d(places, file.deletes.positions().to_numpy(), assume_unique=True)
            rows = rows.take(pa.array(places))
        rows = rows.append_column(_FILE, pa.repeat(pa.scalar(file.number, pa.int64()), len(rows)))
        return rows.append_column(_PLACE, pa.array(places, pa.int64()))


def _arrived(files: Sequence[pa.Table]) -> pa.Table:
    """The rows of files that are in arrival order."""
    rows = pa.concat_tables(files)
    return rows.append_column(_ARRIVAL, pa.array(np.arange(len(rows))))


def _deleting(spec: MergeSpec, rows: pa.Table) -> pa.ChunkedArray:
    """As :func:`trinity.merge.fold.is_deleted`."""
    found = pa.chunked_array([np.zeros(len(rows), bool)], pa.bool_())
    if spec.tombstone:
        found = pc.or_(found, _is_tombstone(spec, rows.column(spec.tombstone)))
    if spec.row_kind:
        found = pc.or_(found, retracts(rows.column(spec.row_kind)))
    if spec.hidden_row_kind and ROW_KIND in rows.column_names:
        kinds = pa.array([HIDDEN_KIND, DELETE_KIND], rows.schema.field(ROW_KIND).type)
        found = pc.or_(found, pc.is_in(rows.column(ROW_KIND), value_set=kinds))
    return found


def _is_tombstone(spec: MergeSpec, marks: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_boolean(marks.type):
        return pc.fill_null(marks, False)
    if spec.tombstone_value is None:
        return pc.is_valid(marks)
    return pc.fill_null(pc.equal(marks, spec.tombstone_value), False)


def _outside(log: pa.Table, winners: pa.Table) -> pa.Table:
    """File and place of the row versions that win no key, or delete the row."""
    live = winners.filter(pc.invert(winners.column(_DELETED)))
    gone = np.ones(len(log), bool)
    gone[live.column(_ARRIVAL).to_numpy()] = False
    return log.filter(pa.array(gone)).select([_FILE, _PLACE])


def _fragments(found: Sequence[pa.Table], files: Sequence[Stored]) -> list[bytes]:
    """A number and the words of its bits, for each file that has a row to leave out."""
    rows = pa.concat_tables(found) if found else pa.table({_FILE: [], _PLACE: []})
    if not len(rows):
        return []
    numbers, places = rows.column(_FILE).to_numpy(), rows.column(_PLACE).to_numpy()
    order = np.argsort(numbers, kind="stable")
    numbers, places = numbers[order], places[order]
    known = {file.number: file.rows for file in files}
    edges = np.flatnonzero(np.diff(numbers, prepend=ASIDE - 1))
    parts = zip(edges, [*edges[1:], len(numbers)], strict=True)
    return [
        _HEAD.pack(number) + words_of(places[first:last], known[number]).tobytes()
        for first, last in parts
        if (number := int(numbers[first])) != ASIDE
    ]


def opened(fragments: Iterable[bytes]) -> dict[int, np.ndarray]:
    """Number of a file -> the words of its bits, of the fragments of all tasks."""
    found: dict[int, np.ndarray] = {}
    for fragment in fragments:
        [number] = _HEAD.unpack_from(fragment)
        words = np.frombuffer(fragment, np.int64, offset=_HEAD.size)
        found[number] = words | found[number] if number in found else words
    return found
