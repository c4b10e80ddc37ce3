"""The fold of whole rows in Arrow: the same as :mod:`trinity.merge.sql.fold` in SQL (U1-U8, E2)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import FALSE, as_arrow, as_numpy, numbered
from trinity.hidden import ARRIVAL
from trinity.merge.kernels.keys import Keys, comparable, without_null_keys
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import StoredKind, retracts
from trinity.merge.spec import MergeSpec
from trinity.spi import ROW_KIND, Deletes

_NOTHING: Final = np.empty(0, np.int64)
_HIDING: Final = np.array([StoredKind.HIDDEN, StoredKind.DELETED])


def taking_part(spec: MergeSpec, versions: pa.Table) -> pa.Table:
    """Return the row versions that may win: without NULL in the key (K1), under ``ignore-delete`` no retracts (D1)."""
    versions = without_null_keys(versions, spec.key)
    if spec.ignore_delete and spec.row_kind:
        return versions.filter(pc.invert(retracts(versions.column(spec.row_kind))))
    return versions


def is_deleted(spec: MergeSpec, rows: pa.Table) -> pa.ChunkedArray:
    """Return a mask, without NULLs, of the winning rows that say that their key is deleted (U3, U6, U8)."""
    found = pa.chunked_array([as_arrow(np.zeros(len(rows), bool))])
    if spec.tombstone:
        found = pc.or_(found, _is_tombstone(spec, rows.column(spec.tombstone)))
    if spec.row_kind:
        found = pc.or_(found, retracts(rows.column(spec.row_kind)))
    if spec.hidden_row_kind and ROW_KIND in rows.column_names:
        kinds = as_arrow(_HIDING, rows.schema.field(ROW_KIND).type)
        found = pc.or_(found, pc.is_in(rows.column(ROW_KIND), value_set=kinds))
    return found


def _is_tombstone(spec: MergeSpec, marks: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_boolean(marks.type):
        return pc.fill_null(marks, FALSE)
    if spec.tombstone_value is None:
        return pc.is_valid(marks)
    return pc.fill_null(pc.equal(marks, spec.tombstone_value), FALSE)


def winners(spec: MergeSpec, versions: pa.Table) -> tuple[Keys, pa.Table]:
    """Return the keys of row versions, which have ``ARRIVAL``, and for each key, by its number, the winner."""
    keys, numbers = Keys.of(versions, spec.key)
    won = np.empty(len(keys), np.int64)
    won[numbers] = np.arange(len(versions))
    several = np.flatnonzero(np.bincount(numbers)[numbers] > 1)
    if len(several):
        narrow = versions.select(dict.fromkeys((*spec.ordering, ARRIVAL)))
        ranked = several[winner_first(spec, narrow.take(as_arrow(several)))[::-1]]
        won[numbers[ranked]] = ranked
    return keys, versions.take(as_arrow(won))


def winner_first(spec: MergeSpec, versions: pa.Table) -> np.ndarray:
    """Return indices that sort row versions so that a key's winner comes before its other versions (K3, K4, E2)."""
    way = "ascending" if spec.descending else "descending"
    arrival = "ascending" if spec.engine is MergeEngine.FIRST_ROW else "descending"
    columns = [*dict.fromkeys(spec.ordering), ARRIVAL]
    compared = numbered(comparable(versions.select(columns)))
    ways = [*(way for _ in columns[1:]), arrival]
    order = [(name, how, "at_end") for name, how in zip(compared.column_names, ways, strict=True)]
    return as_numpy(pc.sort_indices(compared, sort_keys=order))


def beats(spec: MergeSpec, earlier: pa.Table, later: pa.Table) -> np.ndarray:
    """Return a mask of the pairs in which the earlier arrival wins, by a strictly fresher watermark (K3, K4).

    Both tables have the columns of :func:`compared_columns`; rows at the same index have the same key.
    """
    first = spec.engine is MergeEngine.FIRST_ROW
    wins = pa.chunked_array([as_arrow(np.full(len(earlier), first))])
    fresher = pc.less if spec.descending else pc.greater
    earlier, later = (comparable(rows.select(_differing_columns(spec))) for rows in (earlier, later))
    for name in () if first else reversed(_differing_columns(spec)):
        mine, other = earlier.column(name), later.column(name)
        there = pc.and_(pc.is_valid(mine), pc.is_null(other))
        strictly = pc.or_(pc.fill_null(fresher(mine, other), FALSE), there)
        alike = pc.or_(pc.fill_null(pc.equal(mine, other), FALSE), pc.and_(pc.is_null(mine), pc.is_null(other)))
        wins = pc.or_(strictly, pc.and_(alike, wins))
    return as_numpy(wins)


def _differing_columns(spec: MergeSpec) -> list[str]:
    """Return the ordering columns in which rows of one key may differ."""
    return [name for name in spec.ordering if name not in spec.key]


def compared_columns(spec: MergeSpec) -> list[str]:
    """Return the key and ordering columns, by which base and log are compared."""
    return [*spec.key, *_differing_columns(spec)]


def losers(
    spec: MergeSpec,
    base: pa.Table,
    keys: Keys,
    winners: pa.Table,
    deletes: Deletes | None = None,
    among: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices of base rows that lose to the log, ascending; numbers of keys whose winner loses to a base row).

    Args:
        spec: the table's merge rules.
        base: all rows of a base file, with the columns of :func:`compared_columns`.
        keys: the keys of the log.
        winners: the winning row version of each of these keys, by the key's number.
        deletes: the file's rows that are deleted by position, which take no part; None for none.
        among: as for :meth:`~trinity.merge.kernels.keys.Keys.lookup`.
    """
    indexes, numbers = keys.lookup(base, among)
    if deletes is not None:
        stays = np.isin(indexes, as_numpy(deletes.positions()), invert=True)
        indexes, numbers = indexes[stays], numbers[stays]
    if not len(indexes):
        return _NOTHING, _NOTHING
    wins = beats(spec, base.take(as_arrow(indexes)), winners.take(as_arrow(numbers)))
    return indexes[~wins], numbers[wins]
