"""The fold of whole rows in Arrow: what :mod:`trinity.merge.fold` says in SQL (U1-U8, E2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.reading.arrow_keys import Keys
from trinity.errors import TrinityError
from trinity.merge.engine import MergeEngine
from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import MergeSpec
from trinity.merge.tombstone import retracts
from trinity.spi import ROW_KIND, Deletes
from trinity.storage import stored_pages, system_trouble

__all__ = [
    "beats",
    "columns_to_meet",
    "is_deleted",
    "met",
    "missing_file",
    "narrow_rows",
    "taking_part",
    "unreadable",
]

_NOTHING: Final = np.empty(0, np.int64)
_NARROW_ROWS: Final = 1 << 20
"""Rows that are read at once of few columns: in small pieces it takes half as long again, to put them together."""


def taking_part(spec: MergeSpec, versions: pa.Table) -> pa.Table:
    """The row versions that may win: under ``ignore-delete`` not the retracts (D1)."""
    if spec.ignore_delete and spec.row_kind:
        return versions.filter(pc.invert(retracts(versions.column(spec.row_kind))))
    return versions


def is_deleted(spec: MergeSpec, rows: pa.Table) -> pa.ChunkedArray:
    """True, never NULL, where a winning row means that its key is deleted (U3, U6, U8)."""
    found = pa.chunked_array([np.zeros(len(rows), bool)], pa.bool_())
    if spec.tombstone:
        found = pc.or_(found, _is_tombstone(spec, rows.column(spec.tombstone)))
    if spec.row_kind:
        found = pc.or_(found, retracts(rows.column(spec.row_kind)))
    if spec.hidden_row_kind and ROW_KIND in rows.column_names:
        kinds = pa.array([StoredKind.HIDDEN, StoredKind.DELETED], rows.schema.field(ROW_KIND).type)
        found = pc.or_(found, pc.is_in(rows.column(ROW_KIND), value_set=kinds))
    return found


def _is_tombstone(spec: MergeSpec, marks: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_boolean(marks.type):
        return pc.fill_null(marks, False)
    if spec.tombstone_value is None:
        return pc.is_valid(marks)
    return pc.fill_null(pc.equal(marks, spec.tombstone_value), False)


def beats(spec: MergeSpec, earlier: pa.Table, later: pa.Table) -> np.ndarray:
    """True where the earlier arrival wins all the same, by a strictly fresher watermark (K3, K4).

    Args:
        spec: the table's options.
        earlier: rows with the columns of :func:`columns_to_meet`.
        later: as many rows of the same keys.
    """
    first = spec.engine is MergeEngine.FIRST_ROW
    wins = pa.chunked_array([np.full(len(earlier), first)], pa.bool_())
    fresher = pc.less if spec.descending else pc.greater
    for name in () if first else reversed(_compared(spec)):
        mine, other = earlier.column(name), later.column(name)
        there = pc.and_(pc.is_valid(mine), pc.is_null(other))
        strictly = pc.or_(pc.fill_null(fresher(mine, other), False), there)
        alike = pc.or_(pc.fill_null(pc.equal(mine, other), False), pc.and_(pc.is_null(mine), pc.is_null(other)))
        wins = pc.or_(strictly, pc.and_(alike, wins))
    found: np.ndarray = wins.to_numpy()
    return found


def _compared(spec: MergeSpec) -> list[str]:
    """Ordering columns that rows of one key may differ in."""
    return [name for name in spec.ordering if name not in spec.key]


def columns_to_meet(spec: MergeSpec) -> list[str]:
    """Key and ordering columns."""
    return [*spec.key, *_compared(spec)]


def met(
    spec: MergeSpec,
    base: pa.Table,
    keys: Keys,
    winners: pa.Table,
    deletes: Deletes | None = None,
    among: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(places of base rows that lose to the log, ascending; numbers of the log's winners that lose to base rows).

    Args:
        spec: the table's options.
        base: all rows of a base file, with the columns of :func:`columns_to_meet`.
        keys: those of the log.
        winners: the winning row version of each of these keys, by its number.
        deletes: the file's rows that are deleted by position, and take no part.
        among: as of :meth:`~trinity.engine.reading.arrow_keys.Keys.met`.
    """
    places, numbers = keys.met(base, among)
    if deletes is not None:
        stays = np.isin(places, deletes.positions().to_numpy(), invert=True)
        places, numbers = places[stays], numbers[stays]
    if not len(places):
        return _NOTHING, _NOTHING
    wins = beats(spec, base.take(places), winners.take(numbers))
    return places[~wins], numbers[wins]


def narrow_rows(path: str, storage: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Return some columns of all rows of a file. Raises as :func:`unreadable`."""
    wanted = pa.schema([storage.field(name) for name in names])
    with unreadable(path):
        return pa.Table.from_batches(stored_pages(path, wanted, _NARROW_ROWS), wanted).combine_chunks()


@contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Tell a data file that is missing or damaged (BAD_DATA), or else what its store or the system lacks."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (OSError, MemoryError, pa.ArrowException) as error:
        damaged = TrinityError("BAD_DATA", f"'{path}' cannot be read ({error}).")
        raise system_trouble(error, path) or damaged from error


def missing_file(path: str) -> TrinityError:
    """The error of a data file that is missing."""
    return TrinityError(
        "BAD_DATA",
        f"A data file is missing: {path}. Restore it from a copy, or read an older version of the table "
        "that does not need it.",
    )
