"""The versions of rows, made of their events in Arrow: :mod:`trinity.applying.plan` says what they are.

Rows are not moved: an event consists of indices of a row and a sequence, and these indices are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.applying.arguments import START_AT
from trinity.applying.plan import DELETE, SEQUENCE, HistoryPlan, Rank
from trinity.arrays import as_arrow, as_numpy, as_scalar
from trinity.engine.executes import NotLocal
from trinity.engine.feed.local.equal_values import equal_values, is_comparable
from trinity.engine.feed.local.images import equal_rows
from trinity.hidden import DELETED
from trinity.merge.kernels.keys import Keys
from trinity.merge.kernels.order import order_codes, tuple_codes
from trinity.merge.row_kinds import StoredKind
from trinity.spi import ROW_KIND, Column, arrow_type

_NONE: Final = -1
"""Stands for the index of a row or a sequence that does not exist."""


def why_not_local(columns: Sequence[Column]) -> NotLocal | None:
    """Return why only Spark can make versions of rows with these columns; None when this process can."""
    for column in columns:
        kind = arrow_type(column.type)
        if not is_comparable(kind):
            return NotLocal(f"only Spark compares column '{column.name}', which has a map with nested keys")
        if column.name.upper() == START_AT and not _is_ordered(kind):
            return NotLocal(f"only Spark orders events by values of type {column.type}")
    return None


def _is_ordered(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_ordered(field.type) for field in kind)
    return not pa.types.is_nested(kind)


@dataclass(frozen=True)
class _Events:
    """Events, as arrays with an item for each event.

    Attributes:
        row: index in :attr:`History.rows` of the row with the event's values.
        sequence: index in :attr:`History.sequences` of its sequence.
        deletes: True if the event deletes.
        rank: the event's source, a :class:`Rank`.
        stored_row: index of the target's row that is this event; -1 without one.
    """

    row: np.ndarray
    sequence: np.ndarray
    deletes: np.ndarray
    rank: np.ndarray
    stored_row: np.ndarray

    @classmethod
    def of(
        cls,
        row: np.ndarray,
        sequence: np.ndarray,
        deletes: np.ndarray | bool,
        rank: Rank,
        stored_row: np.ndarray | int,
    ) -> _Events:
        """Return events of one rank. ``deletes`` and ``stored_row`` may be one value for all of them."""
        return cls(row, sequence, *(np.broadcast_to(value, row.shape) for value in (deletes, int(rank), stored_row)))

    @classmethod
    def together(cls, parts: Sequence[_Events]) -> _Events:
        """Return the events of all parts."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.row)

    def __getitem__(self, indexes: np.ndarray) -> _Events:
        """Return the events at the given indices."""
        return _Events(*(getattr(self, f.name)[indexes] for f in fields(self)))


@dataclass(frozen=True)
class History:
    """The versions of the rows to which the events apply.

    Attributes:
        stored: the target's rows of the events' keys, hidden ones too, in the users' columns, with
            :data:`~trinity.spi.ROW_KIND` and :data:`~trinity.hidden.DELETED`.
        rows: the stored rows, then those of new events: all columns but the two of the interval.
        sequences: the sequences of the stored rows, their starts, their ends; then the sequences of new events.
        events: all events in order, one for each sequence of a key.
        key: for each event the number of its key.
    """

    plan: HistoryPlan
    stored: pa.Table
    rows: pa.Table
    sequences: pa.Array
    events: _Events
    key: np.ndarray

    @classmethod
    def of(cls, plan: HistoryPlan, stored: pa.Table, events: pa.Table) -> History:
        """Return the history after new events, those of :func:`~trinity.applying.local.events.typed_events`."""
        rows = pa.concat_tables([_values(plan, stored), _values(plan, events)]).combine_chunks()
        starts, ends = stored.column(plan.start), stored.column(plan.end)
        parts = [_own_sequences(plan, stored), starts, ends, events.column(SEQUENCE)]
        sequences = pa.chunked_array([c for part in parts for c in part.chunks], starts.type).combine_chunks()
        numbers, codes = Keys.of(rows, plan.key)[1], _order_codes(sequences)
        every = _Events.together(
            [*_stored_events(stored, codes, as_numpy(ends.is_valid())), _new_events(stored, events)]
        )
        every = every[np.lexsort((every.rank, codes[every.sequence], numbers[every.row]))]
        key, code = numbers[every.row], codes[every.sequence]
        first = np.flatnonzero(_begins(key) | _begins(code))
        if not len(first):
            return cls(plan, stored, rows, sequences, every, key)
        # of events with one sequence, the one of the highest rank counts; of new ones the last arrival (K4)
        counting = every[np.append(first[1:], len(key)) - 1]
        counting = replace(counting, stored_row=np.maximum.reduceat(every.stored_row, first))
        return cls(plan, stored, rows, sequences, counting, key[first])

    def changed(self) -> pa.Table:
        """Return the target's rows that the new events change or add, with their row kind."""
        gone, was = self.events.deletes, self.events.stored_row
        kinds = np.where(gone, StoredKind.DELETED, np.where(self._visible, StoredKind.ADDED, StoredKind.HIDDEN))
        # a version's END_AT implies the delete that ended it; the version before implies a start without visible row
        kept = np.where(gone, (was != _NONE) | ~self._follows, self._visible | (self.events.rank != Rank.BEGAN))
        compared = np.flatnonzero(kept & (was != _NONE))
        compared = compared[kinds[compared] == _row_kinds(self.stored)[was[compared]]]
        old = self.stored.select([c.name for c in self.plan.definition.visible]).take(as_arrow(was[compared]))
        kept[compared] = ~equal_rows(self._as_rows(compared), old)
        indexes = np.flatnonzero(kept)
        return self._as_rows(indexes).append_column(ROW_KIND, as_arrow(kinds[indexes], pa.int32()))

    @cached_property
    def _follows(self) -> np.ndarray:
        """For each event, whether it comes after an event of its key that does not delete."""
        found: np.ndarray = ~_begins(self.key) & ~np.append(False, self.events.deletes[:-1])[: len(self.key)]
        return found

    @cached_property
    def _opens(self) -> np.ndarray:
        """For each event, whether it begins a version."""
        opens = ~self.events.deletes
        compared = np.flatnonzero(opens & self._follows)
        opens[compared] = False
        for name in (column.name for column in self.plan.tracked):
            values = self.rows.column(name).combine_chunks()
            own, before = (_take(values, self.events.row[indexes]) for indexes in (compared, compared - 1))
            opens[compared] |= ~equal_values(own, before)
        return opens

    @cached_property
    def _next(self) -> np.ndarray:
        """For each event, the index of the key's next event that begins a version or deletes; -1 without one."""
        indexes = np.arange(len(self.key))
        turns = np.where(self._opens | self.events.deletes, indexes, len(indexes))
        found = np.append(np.minimum.accumulate(turns[::-1])[::-1], len(indexes))[1:]
        of_key = np.append(self.key, _NONE)[found] == self.key
        return np.where(of_key, found, _NONE)

    @cached_property
    def _visible(self) -> np.ndarray:
        """For each event, whether it is the one row that reads show of its version.

        That is the version's last event, or its first if the target does not store the sequence.
        """
        if self.plan.arguments.by_start:
            return self._opens
        ends = _begins(self.key[::-1])[::-1] | (self._next == np.arange(len(self.key)) + 1)
        found: np.ndarray = ~self.events.deletes & ends
        return found

    def _as_rows(self, indexes: np.ndarray) -> pa.Table:
        """Return events as rows of the target. A delete has NULL in all columns that allow it."""
        plan, gone, shown = self.plan, self.events.deletes[indexes], self._visible[indexes]
        began = np.maximum.accumulate(np.where(self._opens, np.arange(len(self.key)), 0))[indexes]
        at, after = self.events.sequence, self._next[indexes]
        end = np.where(shown & (after != _NONE), at[after], _NONE)
        own, start, end = (
            _take(self.sequences, numbers)
            for numbers in (at[indexes], np.where(shown, at[began], at[indexes]), np.where(gone, at[indexes], end))
        )
        parts = [own] if len(plan.identity) == 1 else own.flatten()
        made = {**dict(zip(plan.identity, parts, strict=True)), plan.start: start, plan.end: end}
        rows = self.events.row[indexes]
        cleared = np.where(gone, _NONE, rows)
        return pa.table({
            c.name: made[c.name] if c.name in made
            else _take(self.rows.column(c.name).combine_chunks(), cleared if plan.cleared(c) else rows)
            for c in plan.definition.visible
        })  # fmt: skip


def _begins(values: np.ndarray) -> np.ndarray:
    """Return True where a value differs from the one before it."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _take(values: pa.Array, numbers: np.ndarray) -> pa.Array:
    """Return the values at the indices; NULL for the index -1."""
    return values.take(as_arrow(numbers, mask=numbers == _NONE))


def _row_kinds(stored: pa.Table) -> np.ndarray:
    return as_numpy(pc.fill_null(stored.column(ROW_KIND), as_scalar(0, stored.schema.field(ROW_KIND).type)))


def _order_codes(sequences: pa.Array) -> np.ndarray:
    """Return a number for each sequence, larger for later ones, and the same for equal ones."""
    if pa.types.is_struct(sequences.type):
        return tuple_codes([as_numpy(sequences.is_valid()), *map(_order_codes, sequences.flatten())])
    return order_codes(sequences)


def _values(plan: HistoryPlan, rows: pa.Table) -> pa.Table:
    """Return all columns of the rows except those of the interval; NULL for a column that they lack."""
    schema = pa.schema([c.to_arrow().with_nullable(True) for c in plan.values])
    there = set(rows.column_names)
    columns = [rows.column(f.name) if f.name in there else pa.nulls(len(rows), f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _own_sequences(plan: HistoryPlan, stored: pa.Table) -> pa.ChunkedArray:
    """Return the sequences of the target's rows."""
    if len(plan.identity) == 1:
        return stored.column(plan.identity[0])
    parts = [stored.column(name).combine_chunks() for name in plan.identity]
    return pa.chunked_array([pa.StructArray.from_arrays(parts, fields=list(stored.schema.field(plan.start).type))])


def _stored_events(stored: pa.Table, codes: np.ndarray, has_end: np.ndarray) -> Iterator[_Events]:
    """Yield the events in the target's rows. Of a row that somebody deleted only its end is left."""
    count, rows = len(stored), np.arange(len(stored))
    own, start, end = (codes[part * count : (part + 1) * count] for part in range(3))
    hidden, dead = _row_kinds(stored) == StoredKind.HIDDEN, as_numpy(stored.column(DELETED))
    deletes = dead & ~hidden & (end == own)
    known = rows[~dead | hidden | deletes]
    yield _Events.of(known, known, deletes[known], Rank.STORED, known)
    ended = rows[~hidden & ~deletes & has_end]
    yield _Events.of(ended, ended + 2 * count, True, Rank.ENDED, _NONE)
    began = rows[~dead & (start != own)]
    yield _Events.of(began, began + count, False, Rank.BEGAN, _NONE)


def _new_events(stored: pa.Table, events: pa.Table) -> _Events:
    rows = np.arange(len(events)) + len(stored)
    return _Events.of(rows, rows + 2 * len(stored), as_numpy(events.column(DELETE)), Rank.NEW, _NONE)
