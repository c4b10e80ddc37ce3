"""The plan of a merged read: chosen once, by statistics alone, and followed by every executor.

The plan is executed by Spark (:mod:`trinity.engine.reading.spark`), or by this process without Spark
(:mod:`trinity.engine.reading.local`), where :attr:`ReadPlan.not_local` is None. A read by position leaves hidden rows
out by their positions: stored rows that no merged read shows, since they win no key or delete the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa

from trinity.engine.executes import NotLocal
from trinity.engine.reading.files import prune, split_buckets_and_runs, tiers, well_bucketed
from trinity.engine.reading.predicate import Predicate, Where
from trinity.limits import Limit
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import STAMP, DataFile, Deletes, Origin, SplitSource, Tier
from trinity.storage import Cache, Location

_MOST_LOG: Final = 4_000_000
"""Most rows of the log whose key and ordering columns each task holds: some hundred MB."""
_MOST_ROWS: Final = 1_000_000_000
"""Most rows of the base for which bitmaps are held: 125 MB."""


def why_not_by_position(
    splits: SplitSource, spec: MergeSpec, base: Sequence[DataFile], log: Sequence[DataFile]
) -> NotLocal | None:
    """Return why the hidden rows of a version cannot be left out by their positions; None when they can."""
    if spec.by_column:
        return NotLocal(f"merge engine {spec.engine.value} folds column by column")
    if (why := why_not_files(splits)) is not None:
        return why
    if sum(f.rows for f in base) > _MOST_ROWS:
        return NotLocal(f"its base has more than {_MOST_ROWS:,} rows")
    return _why_not_so_long(log)


def why_not_by_column(splits: SplitSource, spec: MergeSpec, log: Sequence[DataFile]) -> NotLocal | None:
    """Return why this process cannot fold the log of a version column by column; None when it can."""
    missing = ColumnFold(splits.definition, spec).not_in_arrow()
    if missing:
        return NotLocal(", ".join(f"column '{column}' folds by {why}" for column, why in missing.items()))
    return _why_not_so_long(log)


def _why_not_so_long(log: Sequence[DataFile]) -> NotLocal | None:
    if sum(f.rows for f in log) <= _MOST_LOG:
        return None
    return NotLocal(f"its log has more than {_MOST_LOG:,} rows (compact('full') folds them)")


def why_not_files(splits: SplitSource) -> NotLocal | None:
    """Return why this process cannot read the files of a version one by one; None when it can."""
    if splits.native is None or splits.native.not_local is None:
        return None
    return NotLocal(splits.native.not_local)


def are_own(files: Iterable[DataFile]) -> bool:
    """Return True for files that Trinity wrote."""
    return all(f.origin is Origin.OWN for f in files)


def order_is_lost(splits: SplitSource) -> bool:
    """Return True when files alone do not tell the order of rows, and stamps of the rows do (L3)."""
    lost = (Origin.REWRITTEN, Origin.UNSURE)
    return splits.definition.stamped and any(f.tier is Tier.LOG and f.origin in lost for f in splits.files)


def searched_columns(splits: SplitSource, spec: MergeSpec) -> pa.Schema:
    """Return the stored columns by which whole rows are folded: key, ordering, marks of deletion, and needed stamps."""
    needed = (*spec.sidecar_columns, *([STAMP] if order_is_lost(splits) else []))
    return pa.schema([splits.storage.field(name) for name in needed if name in splits.storage.names])


LEAST_ROWS: Final = Limit(10_000)
"""Number of base rows from which on a search costs less than the join that it replaces."""
_MOST_FILES: Final = 256
"""Most unsearched files of the log that Spark searches: each of its tasks opens all of them."""
MOST_LOOKED_AT: Final = Limit(8_000_000)
"""Most base rows whose keys and ordering are read from a disk faster than Spark folds a few keys: some hundred MB."""
_REMEMBERED_BYTES: Final = 256 * 1024 * 1024
"""Most bytes of cached bitmaps, of all tables together."""

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
    version: _VersionFingerprint
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)


def _bytes(cached: _CachedHiddenRows) -> int:
    return sum(words.nbytes for words in cached.hidden.values())


_memory: Final[Cache[tuple[str, str], _CachedHiddenRows]] = Cache(_REMEMBERED_BYTES, _bytes)


@dataclass(frozen=True)
class PositionReadState:
    """A version whose hidden rows can be left out by their positions, and those of its hidden rows that are known.

    Attributes:
        earlier: the part of the log that has been searched, in arrival order.
        later: the part of the log after it, which has not been searched.
        known: path of a file -> the bitmap of its hidden rows that are known.
        only: the keys that are read; None for all.
    """

    splits: SplitSource
    version: _VersionFingerprint
    base: Sequence[DataFile]
    earlier: Sequence[DataFile]
    later: Sequence[DataFile]
    known: Mapping[str, np.ndarray]
    only: pa.Table | None = None

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec, *, remembered: bool = True) -> PositionReadState | NotLocal:
        """Return the state of a version with a log, or why hidden rows cannot be left out by their positions.

        If ``remembered``, the hidden rows in the cache are known, else none.
        """
        base, log = tiers(splits.files)
        if (why := why_not_by_position(splits, spec, base, log)) is not None:
            return why
        log = splits.in_arrival_order(log)
        version = _VersionFingerprint.of(splits, spec, base, log)
        stays = splits.native is None or splits.native.files_stay
        # where stamps order the rows, a row of a later commit may have arrived before rows that are in the cache
        cached = _memory.peek(_table(splits)) if remembered and stays and not order_is_lost(splits) else None
        if cached is None or not cached.version.is_prefix_of(version):
            return cls(splits, version, base, (), log, {})
        middle = len(cached.version.log)
        return cls(splits, version, base, log[:middle], log[middle:], cached.hidden)

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
        return sum(f.rows for f in self.base) >= LEAST_ROWS.value

    @property
    def is_soon_opened(self) -> bool:
        """True when the unsearched files are few enough for every Spark task to open all of them."""
        return len(self.later) <= _MOST_FILES

    @property
    def why_not_searched(self) -> NotLocal | None:
        """Why a search of the unsearched files would not pay; None where it pays."""
        if self.only is not None and not self._is_soon_read:
            return NotLocal("its base is too large, or too far away, for a look at a few keys")
        return None

    @property
    def _is_soon_read(self) -> bool:
        """True when reading key and ordering columns of the base is faster than a join with the keys."""
        return sum(f.rows for f in self.base) <= MOST_LOOKED_AT.value and all(
            Location.of(f.path).on_disk for f in self.base
        )

    def remember(self, hidden: Mapping[str, np.ndarray]) -> None:
        """Remember the hidden rows of the version, unless only some keys were read."""
        if self.only is None:
            _memory.put(_table(self.splits), _CachedHiddenRows(self.version, hidden))


def _table(splits: SplitSource) -> tuple[str, str]:
    return splits.definition.full_name, splits.definition.id


def forget_positions() -> None:
    """Empty the cache of hidden rows, so that every table is read as if for the first time."""
    _memory.drop(lambda _: True)


MOST_LOCAL_BYTES: Final = Limit(128 * 1024 * 1024)
"""Most bytes of files whose rows this process folds without Spark."""


class ReadStrategy(Enum):
    """A way in which Spark reads; its value describes it in words."""

    SCAN = "a scan"
    KNOWN = "a scan that passes over rows by their places, which are known from a read before"
    SEARCH = (
        "a scan that passes over rows by their places; a job over key and ordering columns finds them first, "
        "and they are remembered"
    )
    KEYS = (
        "a scan that passes over rows by their places; those of the keys that are asked for are found first, "
        "by key and ordering columns"
    )
    LOG = "the log is exchanged by key and folded; there is no base to join"
    BUCKETS = "the log is folded and joined to the base, bucket by bucket: the base is neither exchanged nor sorted"
    JOIN = "the log is folded and joined to the base, both exchanged by key"
    BY_COLUMN = "base, sidecar and log are exchanged by key and folded column by column"

    @property
    def by_position(self) -> bool:
        """True for a scan that leaves hidden rows out by their positions."""
        return self in (ReadStrategy.KNOWN, ReadStrategy.SEARCH, ReadStrategy.KEYS)


@dataclass(frozen=True)
class FoldPlan:
    """The plan of a fold of a version's files: log, sidecar and runs first, then their winners with the base.

    Attributes:
        splits: the version, with only the files that are folded.
        base: base files that are joined with the winners of the others; no key is in two of them.
        runs: base files that are folded with the log.
        buckets: the number of buckets of ``base``, a sorted file for each; None where a join exchanges it.
    """

    splits: SplitSource
    spec: MergeSpec
    base: Sequence[DataFile]
    runs: Sequence[DataFile]
    buckets: int | None

    @classmethod
    def of(cls, splits: SplitSource, spec: MergeSpec) -> FoldPlan:
        """Return the plan of a fold of all files of a version."""
        base, runs = split_buckets_and_runs(tiers(splits.files)[0], splits.definition)
        return cls(splits, spec, base, runs, well_bucketed(base, splits.definition))

    @property
    def log(self) -> list[DataFile]:
        """The files of the log."""
        return tiers(self.splits.files)[1]

    @property
    def strategy(self) -> ReadStrategy:
        """The way in which Spark reads the folded rows."""
        if self.spec.by_column:
            return ReadStrategy.BY_COLUMN
        if not self.base:
            return ReadStrategy.LOG
        return ReadStrategy.BUCKETS if self.buckets else ReadStrategy.JOIN

    def in_buckets_by_arrow(self, count: int) -> bool:
        """Return True when Trinity wrote all of the base, in so many buckets, and the engine keeps rows whole."""
        whole = not self.spec.by_column and self.splits.native is None
        return whole and self.buckets == count and are_own(self.base)

    @property
    def not_local(self) -> NotLocal | None:
        """Why this process does not fold the log without Spark; None if it does."""
        base, log = tiers(self.splits.files)
        files = [*self.splits.sidecar, *self.runs, *log]
        if not files:
            return NotLocal("it has no log")
        if sum(f.size for f in files) > MOST_LOCAL_BYTES.value:
            return NotLocal(f"its log has more than {MOST_LOCAL_BYTES.value:,} bytes")
        return why_not_by_position(self.splits, self.spec, base, log)


@dataclass(frozen=True)
class ReadPlan:
    """The plan of a merged read of a version.

    Attributes:
        splits: the version.
        spec: the table's merge rules; None for a plain table.
        files: the files of the version that may hold a wanted row.
        predicate: the condition that wanted rows meet; None for all rows. This process leaves all other rows out, Spark
            only those that may be left out below the fold.
        key_filter: the predicate by which rows may be left out before they are folded; None to leave out none.
        strategy: the way in which Spark reads.
        not_local: why this process cannot read without Spark; None when it can.
        state: the known hidden rows; None where hidden rows are not left out by their positions.
        fold: the plan by which files are folded; None where there is nothing to fold.
    """

    splits: SplitSource
    spec: MergeSpec | None
    files: Sequence[DataFile]
    predicate: Predicate | None
    key_filter: Predicate | None
    strategy: ReadStrategy
    not_local: NotLocal | None
    state: PositionReadState | None = None
    fold: FoldPlan | None = None


def plan_read(
    splits: SplitSource,
    where: Where | Predicate | None = None,
    *,
    timezone: Callable[[], str] = lambda: "",
    some_keys: bool = False,
    looks_keys_up: bool = False,
    remembered: bool = True,
) -> ReadPlan:
    """Choose the plan of a merged read that costs least.

    Args:
        splits: the version.
        where: the condition that wanted rows meet. What it says of key columns may leave out files and rows below the
            fold (L9).
        timezone: returns Spark's session time zone; called only when a literal needs it.
        some_keys: True when the executor limits the read to some keys: a search would look up all keys.
        looks_keys_up: True when the executor may look up the keys that ``where`` lists, before it reads.
        remembered: False for the plan of a first read, as if no hidden rows were in the cache.
    """
    definition = splits.definition
    spec = merge_spec(definition) if definition.keyed else None
    read = where if isinstance(where, Predicate) else Predicate.of(definition, where, timezone)
    predicate = None if isinstance(read, NotLocal) else read
    # of a keyed table, only key columns may leave files out; they do so even where the whole predicate is no key filter
    files = prune(splits.files, predicate, definition.primary_key or None)
    key_filter = predicate if spec and predicate and predicate.filters_keys else None
    not_local = read if isinstance(read, NotLocal) else _not_local(splits, predicate)
    if spec is None or not tiers(files)[1]:
        return ReadPlan(splits, spec, files, predicate, key_filter, ReadStrategy.SCAN, not_local)
    fold = FoldPlan.of(replace(splits, files=tuple(files)), spec)
    if spec.by_column:
        not_local = not_local or why_not_by_column(splits, spec, fold.log)
        return ReadPlan(splits, spec, files, predicate, key_filter, ReadStrategy.BY_COLUMN, not_local, None, fold)
    state = PositionReadState.of(splits, spec, remembered=remembered)
    if isinstance(state, NotLocal):
        return ReadPlan(splits, spec, files, predicate, key_filter, fold.strategy, not_local or state, None, fold)
    not_local = not_local or state.why_not_searched
    plan = ReadPlan(splits, spec, files, predicate, key_filter, fold.strategy, not_local, state, fold)
    if not state.beats_a_join:
        return plan
    if state.is_known:
        return replace(plan, strategy=ReadStrategy.KNOWN)
    if key_filter is None and not some_keys and state.is_soon_opened:
        return replace(plan, strategy=ReadStrategy.SEARCH)
    if key_filter and looks_keys_up and key_filter.listed_keys is not None:
        some = state.of_keys(key_filter.listed_keys, files)
        if some.is_soon_opened and some.why_not_searched is None:
            return replace(plan, strategy=ReadStrategy.KEYS, state=some)
    return plan


def _not_local(splits: SplitSource, predicate: Predicate | None) -> NotLocal | None:
    """Return why this process cannot read the files of a version, or choose its rows, alone; None when it can."""
    if predicate is not None and isinstance(predicate.compiled, NotLocal):
        return predicate.compiled
    return why_not_files(splits)
