"""The rows that a merged read leaves out by their positions. They are found once and cached, so that a read is a scan.

A hidden row is a stored row that no merged read shows: it does not win its key, or it deletes its key. A file never
changes, and a superseded row stays superseded while commits only append. So the hidden rows of a version are also
hidden in the next one, for which only the keys of its new files are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from trinity.engine.reading.files import may_share_keys, order_is_lost, split_buckets_and_runs, tiers, well_bucketed
from trinity.engine.reading.row_arrival import RowArrival
from trinity.engine.reading.search import LOG, SIDECAR, Search, SearchedFile, decode_bitmaps, forget_columns
from trinity.limits import Limit
from trinity.merge.kernels.keys import Keys
from trinity.merge.spec import MergeSpec
from trinity.spi import STAMP, DataFile, Deletes, SplitSource
from trinity.storage import Cache, Location
from trinity.storage.parquet_files import have_more_rows

LEAST_ROWS: Final = Limit(10_000)
"""Number of base rows from which on a search costs less than the join that it replaces."""
_MOST_FILES: Final = 256
"""Most unsearched files of the log that Spark searches: each of its tasks opens all of them."""
MOST_LOOKED_AT: Final = Limit(8_000_000)
"""Most base rows whose key and ordering columns, some hundred MB, are read faster than Spark folds a few keys."""
_REMEMBERED_BYTES: Final = 256 * 1024 * 1024
"""Most bytes of cached bitmaps, of all tables together."""

RunSearch: TypeAlias = Callable[[Search, str], list[bytes] | None]
"""(search, name of the table, for messages) -> the search's fragments; None when it fails."""


def searched_columns(splits: SplitSource, spec: MergeSpec) -> pa.Schema:
    """Return the stored columns by which whole rows are folded: key, ordering, marks of deletion, and needed stamps."""
    needed = (*spec.sidecar_columns, *([STAMP] if order_is_lost(splits) else []))
    return pa.schema([splits.storage.field(name) for name in needed if name in splits.storage.names])


_File = tuple[str, Deletes | None]


@dataclass(frozen=True)
class _VersionFingerprint:
    """All that the merged rows of a version depend on: two versions with equal fingerprints have equal merged rows.

    Attributes:
        storage: key, ordering columns and marks of deletion as they are stored.
        base: the files of base and sidecar.
        log: the files of the log in arrival order.
    """

    spec: MergeSpec
    storage: pa.Schema
    base: frozenset[_File]
    log: tuple[_File, ...]

    @classmethod
    def of(
        cls, splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile]
    ) -> _VersionFingerprint:
        stands = frozenset((f.path, f.deletes) for f in (*base, *splits.sidecar))
        return cls(spec, searched_columns(splits, spec), stands, tuple((f.path, f.deletes) for f in log))

    def is_prefix_of(self, other: _VersionFingerprint) -> bool:
        """Return True when ``other`` is this version, or this version with further appends."""
        same = (self.spec, self.base) == (other.spec, other.base) and self.storage.equals(other.storage)
        return same and other.log[: len(self.log)] == self.log


@dataclass(frozen=True)
class _CachedHiddenRows:
    committed_ms: int
    version: _VersionFingerprint
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)


def _bytes(cached: _CachedHiddenRows) -> int:
    return sum(words.nbytes for words in cached.hidden.values())


_Slot = tuple[str, str, int | None]
"""(name of the table, its id, None for the newest version that was read, or the time of an earlier one)."""

_memory: Final[Cache[_Slot, _CachedHiddenRows]] = Cache(_REMEMBERED_BYTES, _bytes)


@dataclass(frozen=True)
class PositionReadState:
    """A version whose hidden rows can be left out by their positions, with the part of them that is known.

    Attributes:
        earlier: the part of the log that has been searched, in arrival order.
        later: the part of the log after it, which has not been searched.
        known: path of a file -> the bitmap of its hidden rows that are known.
        only: the keys that are read; None for all.
        is_cacheable: whether a later read may use the hidden rows of this one. False where a new file may get the name
            of a removed one. False also where stamps order the rows: there a row of a later commit may have arrived
            before rows whose search is in the cache.
    """

    splits: SplitSource
    version: _VersionFingerprint
    base: Sequence[DataFile]
    earlier: Sequence[DataFile]
    later: Sequence[DataFile]
    known: Mapping[str, np.ndarray]
    only: pa.Table | None = None
    is_cacheable: bool = True

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec, *, remembered: bool = True) -> PositionReadState:
        """Return the state of a version with a log.

        If ``remembered``, the hidden rows in the cache are known, else none.
        """
        base, log = tiers(splits.files)
        log = splits.in_arrival_order(log)
        version = _VersionFingerprint.of(splits, spec, base, log)
        is_cacheable = _files_stay(splits) and not order_is_lost(splits)
        for slot in _slots(splits) if remembered and is_cacheable else ():
            cached = _memory.peek(slot)
            if cached is not None and cached.version.is_prefix_of(version):
                middle = len(cached.version.log)
                return cls(splits, version, base, log[:middle], log[middle:], cached.hidden)
        return cls(splits, version, base, (), log, {}, is_cacheable=is_cacheable)

    def of_keys(self, keys: pa.Table, files: Sequence[DataFile]) -> PositionReadState:
        """Return the state of a read of these keys alone; ``files`` hold all rows of the keys.

        Keys with NULL are dropped: they match no row (K1).
        """
        paths = {f.path for f in files}
        base, earlier, later = ([f for f in part if f.path in paths] for part in (self.base, self.earlier, self.later))
        return replace(self, base=base, earlier=earlier, later=later, only=keys.drop_null())

    @property
    def is_known(self) -> bool:
        """True when the whole log has been searched."""
        return not self.later

    @property
    def beats_a_join(self) -> bool:
        """True when the base is so large that a search costs less than the join that it avoids."""
        return have_more_rows(self.base, LEAST_ROWS.value - 1)

    @property
    def is_cheap_to_open(self) -> bool:
        """True when the unsearched files are few enough for every Spark task to open all of them."""
        return len(self.later) <= _MOST_FILES

    @property
    def is_cheap_to_read(self) -> bool:
        """True when reading key and ordering columns of the base is faster than a join with the keys."""
        on_disk = all(Location.of(f.path).on_disk for f in self.base)
        return on_disk and not have_more_rows(self.base, MOST_LOOKED_AT.value)

    def remember(self, hidden: Mapping[str, np.ndarray]) -> None:
        """Cache the hidden rows of the version, unless only some keys were read, or no later read may use them.

        An earlier version than the one in the cache has a slot of its own.
        """
        if self.only is None and self.is_cacheable:
            slot, own = _slots(self.splits)
            newest, found = _memory.peek(slot), _CachedHiddenRows(self.splits.timestamp_ms, self.version, hidden)
            _memory.put(own if newest is not None and newest.committed_ms > found.committed_ms else slot, found)


def _files_stay(splits: SplitSource) -> bool:
    return splits.native is None or splits.native.files_stay


def _slots(splits: SplitSource) -> tuple[_Slot, _Slot]:
    """Return the cache's slots of a table's newest version, and of this one."""
    name, id_ = splits.definition.full_name, splits.definition.id
    return (name, id_, None), (name, id_, splits.timestamp_ms)


def hidden_rows(state: PositionReadState, run: RunSearch) -> Mapping[str, np.ndarray] | None:
    """Return path of a file -> the bitmap of its hidden rows; search for unknown ones, and cache all.

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
        _files_stay(splits),
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
    _memory.drop(lambda _: True)
    forget_columns()
