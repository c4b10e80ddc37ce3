"""The rows that a merged read leaves out by their positions. They are found once and cached, so that a read is a scan.

A file never changes, and a superseded row stays superseded while commits only append. So the hidden rows of a version
are also hidden in the next one, for which only the keys of its new files are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from trinity.engine.reading.files import may_share_keys, split_buckets_and_runs, well_bucketed
from trinity.engine.reading.plan import PositionReadState, forget_positions
from trinity.engine.reading.row_arrival import RowArrival
from trinity.engine.reading.search import LOG, SIDECAR, Search, SearchedFile, decode_bitmaps, forget_columns
from trinity.merge.kernels.keys import Keys

RunSearch: TypeAlias = Callable[[Search, str], list[bytes] | None]
"""(search, name of the table, for messages) -> the search's fragments; None when it fails."""


def hidden_rows(state: PositionReadState, run: RunSearch) -> Mapping[str, np.ndarray] | None:
    """Return path of a file -> the bits of its hidden rows; search for unknown ones, and cache them.

    Returns:
        the bitmaps, or None if the search fails.
    """
    hidden = state.known
    if state.later:
        found = _later_bits(state, run)
        if found is None:
            return None
        hidden = _united_bitmaps(hidden, found)
    state.remember(hidden)
    return hidden


def _later_bits(state: PositionReadState, run: RunSearch) -> dict[str, np.ndarray] | None:
    """Search for the rows that the later part of the log hides; None if the search fails."""
    splits, version = state.splits, state.version
    touched = may_share_keys(state.base, state.later, splits.definition)
    files = [*touched, *state.earlier, *state.later]
    buckets = well_bucketed(split_buckets_and_runs(state.base, splits.definition)[0], splits.definition)
    searched = [
        SearchedFile.of(number, file, bucketed=buckets is not None) for number, file in enumerate(files, LOG + 1)
    ]
    sidecar = [SearchedFile.of(SIDECAR, file) for file in splits.sidecar]
    middle, last = len(touched), len(touched) + len(state.earlier)
    search = Search(
        version.spec,
        version.storage,
        (*sidecar, *searched[middle:last]),
        tuple(searched[last:]),
        {f.number: f for f in searched[:middle]},
        buckets,
        _stored_keys(state),
        splits.native is None or splits.native.files_stay,
        RowArrival.of(splits, version.spec),
    )
    fragments = run(search, splits.definition.full_name)
    if fragments is None:
        return None
    return {files[number - LOG - 1].path: words for number, words in decode_bitmaps(fragments).items()}


def _stored_keys(state: PositionReadState) -> Keys | None:
    key = state.version.spec.key
    kinds = pa.schema([state.version.storage.field(name) for name in key])
    return None if state.only is None else Keys.of(state.only.cast(kinds), key)[0]


def _united_bitmaps(known: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    both = {path: words | known[path] if path in known else words for path, words in found.items()}
    return {**known, **both}


def forget() -> None:
    """Empty the caches of hidden rows and of columns, so that every table is read as if for the first time."""
    forget_positions()
    forget_columns()
