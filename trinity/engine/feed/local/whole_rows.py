"""Appends to a table that keeps rows whole: which of a key's versions won before and after each.

To find that, only key, ordering columns and marks of deletion are read. Whole rows are read where the winner changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.feed.local.appends import Appends
from trinity.engine.feed.local.images import NONE, Pairs
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.feed.steps import FIRST
from trinity.engine.reading.data_files import not_deleted, read_columns
from trinity.engine.reading.search import kept_columns
from trinity.hidden import ARRIVAL, DELETED, FILE_NUMBER, MOMENT, POSITION
from trinity.merge.arrow.fold import compared_columns, is_deleted, taking_part, winner_first
from trinity.merge.kernels.keys import Keys
from trinity.merge.spec import MergeSpec
from trinity.spi import Column, DataFile, Tier


def whole_row_pairs(appends: Appends, columns: Sequence[Column]) -> Pairs:
    """Return the pairs of images of a run of appends. Raises BAD_DATA naming a file that cannot be read."""
    rows = _Rows(appends)
    versions = rows.versions()
    before, after, moments = rows.winner_changes(versions)
    found, indexes = np.unique(np.concatenate([before, after]), return_inverse=True)
    needed = found[found != NONE]
    # ``needed`` is sorted, and the versions are in the order of files and positions: so are the rows to read
    located = versions.select([FILE_NUMBER, POSITION]).take(needed)
    edges = np.searchsorted(as_numpy(located.column(FILE_NUMBER)), np.arange(1, len(rows.files)))
    by_file = np.split(as_numpy(located.column(POSITION)), edges)
    images = InColumns(appends.splits, columns).at(zip(rows.files, by_file, strict=True))
    indexes -= len(found) - len(needed)  # NONE, where it occurs, is first in ``found``
    return Pairs(images.combine_chunks(), indexes[: len(before)], indexes[len(before) :], moments).that_differ()


@dataclass(frozen=True)
class _Rows:
    """The row versions of the keys that appends touched."""

    appends: Appends

    @property
    def spec(self) -> MergeSpec:
        """The table's merge rules."""
        return self.appends.spec

    @cached_property
    def files(self) -> list[DataFile]:
        """The files that may have these row versions, in the order of arrival, the base first."""
        return [*self.appends.base, *self.appends.splits.sidecar, *self.appends.log]

    def versions(self) -> pa.Table:
        """Return the versions of touched keys in narrow columns, with file, position, moment and ``DELETED``."""
        files = self.files
        mine = [n for n, file in enumerate(files) if self.appends.moment(file) != FIRST]
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            came = dict(zip(mine, pool.map(lambda n: self._read(files[n]), mine), strict=True))
            keys, _ = Keys.of(pa.concat_tables(came.values()), self.spec.key)
            parts = pool.map(lambda n: self._placed(n, files[n], keys, came.get(n)), range(len(files)))
            return pa.concat_tables(parts).combine_chunks()

    def _read(self, file: DataFile) -> pa.Table:
        storage = self.appends.splits.storage
        if file.tier is Tier.BASE:  # it has no tombstones
            return kept_columns(file.path, storage, compared_columns(self.spec))
        names = [name for name in self.spec.sidecar_columns if name in storage.names]
        return read_columns(file.path, storage, names)

    def _placed(self, number: int, file: DataFile, keys: Keys, rows: pa.Table | None) -> pa.Table:
        if rows is None:
            rows = self._read(file)
            positions, _ = keys.lookup(rows)
        else:
            positions = np.arange(len(rows))
        positions = not_deleted(positions, file.deletes)
        rows = rows.take(positions).append_column(POSITION, as_arrow(positions, pa.int64()))
        if file.tier is Tier.BASE:
            deleted = pa.chunked_array([np.zeros(len(rows), bool)], pa.bool_())
        else:
            rows = taking_part(self.spec, rows)
            deleted = is_deleted(self.spec, rows)
        rows = rows.select([*compared_columns(self.spec), POSITION]).append_column(DELETED, deleted)
        for name, value in ((FILE_NUMBER, number), (MOMENT, self.appends.moment(file))):
            rows = rows.append_column(name, as_arrow(np.full(len(rows), value)))
        return rows

    def winner_changes(self, versions: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (winner before, winner after, moment) where a key's winner changed; :data:`NONE` stands for no row."""
        count = len(versions)
        moments = as_numpy(versions.column(MOMENT))
        _, numbers = Keys.of(versions, self.spec.key)
        arrived = versions.append_column(ARRIVAL, as_arrow(np.arange(count)))
        ranked = winner_first(self.spec, arrived)[::-1].astype(np.int64)
        ranks = np.empty(count, np.int64)
        ranks[ranked] = np.arange(count)
        order = np.lexsort((moments, numbers))
        # the best rank so far of each key: numbers ascend, so none is carried over to the next key
        best = np.maximum.accumulate(numbers[order] * count + ranks[order]) % max(count, 1)
        key, moment = numbers[order], moments[order]
        last = np.append((np.diff(key) != 0) | (np.diff(moment) != 0), True)[:count]
        key, moment, after = key[last], moment[last], ranked[best[last]]
        after = np.where(as_numpy(versions.column(DELETED))[after], NONE, after)
        before = np.full(len(after), NONE)
        same = np.flatnonzero(np.diff(key) == 0)
        before[same + 1] = after[same]
        changed = (moment > FIRST) & (before != after)
        return before[changed], after[changed], moment[changed]
