"""Appends to a table that folds by column: the rows before and after each, found in one fold.

Each row version of a touched key is repeated for every moment of the key from its own on. A fold by key and moment
then gives the row at each moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.feed.local.appends import Appends
from trinity.engine.feed.local.images import NONE, Pairs
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.feed.steps import FIRST
from trinity.engine.reading.data_files import live_pages
from trinity.engine.reading.local.fold_by_column import FoldedKeys, rows_of_keys
from trinity.engine.reading.local.selection import to_user_columns
from trinity.engine.reading.plan import FoldPlan
from trinity.hidden import MOMENT
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.kernels.keys import Keys
from trinity.spi import Column, DataFile

_MOST_ROWS: Final = 4_000_000
"""Most row versions that are folded at once, those included that are repeated for further moments."""


def folded_pairs(appends: Appends, columns: Sequence[Column]) -> Pairs:
    """Return the pairs of images of a run of appends.

    Raises:
        TrinityError: BAD_DATA naming a file that cannot be read; NUMERIC_VALUE_OUT_OF_RANGE naming column and key (A4).
    """
    known = {c.identity for c in columns}
    wanted = [c for c in appends.splits.definition.visible if c.identity in known]
    fold = ColumnFold(appends.splits.definition, appends.spec, [c.name for c in wanted])
    states = _States.of(appends, _versions(appends, fold))
    shown = InColumns(appends.splits, columns)
    images, after = [shown.schema.empty_table()], np.full(len(states.moments), NONE)
    by_state = replace(fold, spec=replace(fold.spec, key=(*fold.spec.key, MOMENT)))
    for rows in states.versions_of_each():
        found = by_state(by_state.contributions(rows)).combine_chunks()
        after[as_numpy(found.column(MOMENT))] = sum(map(len, images)) + np.arange(len(found))
        for page in found.select([c.name for c in wanted]).to_batches():
            images.append(pa.Table.from_batches([shown.shown(to_user_columns(page, wanted), wanted)]))
    before = np.append(NONE, after)[: len(after)]  # for a key's first state, a row of another key; left out below
    changes = states.moments > FIRST
    rows = pa.concat_tables(images).combine_chunks()
    return Pairs(rows, before[changes], after[changes], states.moments[changes]).that_differ()


def _versions(appends: Appends, fold: ColumnFold) -> pa.Table:
    """Return the row versions of touched keys in arrival order, each with the moment from which it counts."""
    splits, spec = appends.splits, appends.spec
    storage = pa.schema([f for f in splits.storage if f.name in fold.reads])

    def came(file: DataFile) -> pa.Table:
        return pa.Table.from_batches(live_pages(file, storage), storage)

    def touched(file: DataFile) -> pa.Table:
        return mine[file.path] if file.path in mine else rows_of_keys(file, storage, keys)[0]

    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        added = [file for file in appends.log if appends.moment(file) != FIRST]
        mine = {file.path: rows for file, rows in zip(added, pool.map(came, added), strict=True)}
        keys = Keys.of(pa.concat_tables(mine.values()), spec.key)[0]
        log = [_with_moment(appends.moment(file), touched(file)) for file in appends.log]
        base = [] if spec.has_all_history else list(pool.map(touched, appends.base))
    folded = FoldedKeys(FoldPlan.of(splits, spec), storage, pa.concat_tables(log), keys).folded_first()
    earlier = [*folded.sidecar_rows, *map(folded.without_kept, base)]
    return pa.concat_tables([*(_with_moment(FIRST, rows) for rows in earlier), folded.log]).combine_chunks()


def _with_moment(moment: int, rows: pa.Table) -> pa.Table:
    return rows.append_column(MOMENT, as_arrow(np.full(len(rows), moment), pa.int64()))


@dataclass(frozen=True)
class _States:
    """The states of each key: before the first append, and after each that touched it.

    Attributes:
        firsts: for each row version the index of the first state that includes it. All later states of its key do so.
        ends: for each row version the index after the last state of its key.
        moments: the moment of each state, ascending within a key, whose states are adjacent.
    """

    versions: pa.Table
    numbers: np.ndarray
    firsts: np.ndarray
    ends: np.ndarray
    moments: np.ndarray

    @classmethod
    def of(cls, appends: Appends, versions: pa.Table) -> _States:
        """Return the states of the keys of row versions, which are in arrival order."""
        keys, numbers = Keys.of(versions, appends.spec.key)
        times, since = np.unique(np.append(as_numpy(versions.column(MOMENT)), FIRST), return_inverse=True)
        count = len(times)
        mine = numbers * count + since[:-1]
        codes = np.unique(np.concatenate([np.arange(len(keys)) * count, mine]))
        firsts, ends = np.searchsorted(codes, mine), np.searchsorted(codes, (numbers + 1) * count)
        return cls(versions.drop_columns(MOMENT), numbers, firsts, ends, times[codes % count])

    def versions_of_each(self) -> Iterator[pa.Table]:
        """Yield the row versions of a few keys at a time, once for each state that includes them, with its number."""
        counts = self.ends - self.firsts
        parts = np.cumsum(np.bincount(self.numbers, counts)).astype(np.int64) // _MOST_ROWS
        for part in np.unique(parts):
            indexes = np.flatnonzero(parts[self.numbers] == part)
            mine = counts[indexes]
            states = np.arange(mine.sum()) + np.repeat(self.firsts[indexes] - np.cumsum(mine) + mine, mine)
            rows = self.versions.take(as_arrow(np.repeat(indexes, mine)))
            yield rows.append_column(MOMENT, as_arrow(states, pa.int64()))
