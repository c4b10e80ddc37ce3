"""The winning row versions of wanted keys, tombstones too, found in Arrow (M4, M9)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow, as_numpy
from trinity.engine.executes import NotLocal
from trinity.engine.feed.local.rows import InColumns
from trinity.engine.reading.data_files import not_deleted, read_columns
from trinity.engine.reading.hidden_rows import searched_columns
from trinity.engine.reading.plan import FoldPlan, why_not_by_position
from trinity.engine.reading.row_arrival import RowArrival
from trinity.engine.reading.search import FoldedLog, Read, Search, SearchedFile, kept_columns
from trinity.hidden import DELETED, FILE_NUMBER, POSITION
from trinity.merge.arrow.fold import compared_columns, losers
from trinity.merge.kernels.keys import Keys
from trinity.spi import ROW_KIND, Column, DataFile


def stored_winners(fold: FoldPlan, wanted: pa.Table, columns: Sequence[Column]) -> pa.Table | NotLocal:
    """Return the winner of each key whose leading columns equal those of a row of ``wanted``.

    Returns:
        ``columns`` in their logical types, with ``ROW_KIND`` if the table has it, and ``DELETED``; or why only Spark
        can find them.

    Raises:
        TrinityError: BAD_DATA naming a file that cannot be read.
    """
    splits, spec = fold.splits, fold.spec
    files = [*splits.sidecar, *fold.runs, *splits.in_arrival_order(fold.log)]
    if files and (why := why_not_by_position(splits, spec, [*fold.base, *fold.runs], fold.log)) is not None:
        return why
    storage = searched_columns(splits, spec)
    stored_form = pa.schema([storage.field(name).with_nullable(True) for name in wanted.column_names])
    keys, _ = Keys.of(wanted.cast(stored_form), wanted.column_names)  # a NULL is refused where the row is written
    searched = tuple(SearchedFile.of(number, file) for number, file in enumerate(files))
    search = Search(spec, storage, (), searched, {}, only=keys, arrival=RowArrival.of(splits, spec))
    read = kept_columns if splits.native is None or splits.native.files_stay else read_columns
    folded = search.folded(0, read)
    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        base = list(pool.map(lambda file: _of_base(file, search, keys, folded, read), fold.base))
    stays = np.ones(len(folded.winners), bool)
    for _, beaten in base:
        stays[beaten] = False
    won = folded.winners.filter(as_arrow(stays)).sort_by([(FILE_NUMBER, "ascending"), (POSITION, "ascending")])
    edges = np.searchsorted(as_numpy(won.column(FILE_NUMBER)), np.arange(len(files) + 1))
    positions = [*(as_numpy(won.column(POSITION))[a:b] for a, b in pairwise(edges)), *(found for found, _ in base)]
    rows = InColumns(splits, columns).at(zip([*files, *fold.base], positions, strict=True))
    live = len(rows) - len(won)
    for name, of_base in ((ROW_KIND, None), (DELETED, False)):
        if name not in won.column_names:
            continue
        kind = won.schema.field(name).type
        rows = rows.append_column(
            name, pa.chunked_array([*won.column(name).chunks, pa.repeat(pa.scalar(of_base, kind), live)])
        )
    return rows.combine_chunks()


def _of_base(
    file: DataFile, search: Search, keys: Keys, folded: FoldedLog, read: Read
) -> tuple[np.ndarray, np.ndarray]:
    """Return (positions of winning rows of a base file, ascending; numbers of log winners that lose to them)."""
    rows = read(file.path, search.storage, compared_columns(search.spec))
    positions = not_deleted(keys.lookup(rows)[0], file.deletes)
    lost, beaten = losers(search.spec, rows.take(as_arrow(positions)), folded.keys, folded.winners)
    return np.delete(positions, lost), beaten
