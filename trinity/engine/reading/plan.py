"""The plan of a merged read: chosen once, by statistics alone, and followed by every executor.

What executes it is Spark (:mod:`trinity.engine.reading.spark`), or this process without Spark
(:mod:`trinity.engine.reading.local`), where :attr:`ReadPlan.not_local` is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from trinity.engine.reading.files import prune, split_buckets_and_runs, tiers, well_bucketed
from trinity.engine.reading.local.limits import (
    NotLocal,
    are_own,
    why_not_by_column,
    why_not_by_position,
    why_not_files,
)
from trinity.engine.reading.position_reads import PositionReadState
from trinity.engine.reading.predicate import Predicate, Where
from trinity.merge.parse import merge_spec
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, SplitSource

__all__ = ["FoldPlan", "ReadPlan", "Way", "plan_read"]

MOST_LOCAL_BYTES: Final = 128 * 1024 * 1024
"""Bytes of files whose rows this process folds by itself."""


class Way(Enum):
    """A way in which Spark reads, and what it does in words."""

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
        return self in (Way.KNOWN, Way.SEARCH, Way.KEYS)


@dataclass(frozen=True)
class FoldPlan:
    """How the files of a version are folded: the log with sidecar and runs, then the winners of these with the base.

    Attributes:
        splits: the version, with only the files that are folded.
        spec: its table's options.
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
        """The log."""
        return tiers(self.splits.files)[1]

    @property
    def way(self) -> Way:
        """The way in which Spark reads the folded rows."""
        if self.spec.by_column:
            return Way.BY_COLUMN
        if not self.base:
            return Way.LOG
        return Way.BUCKETS if self.buckets else Way.JOIN

    def in_buckets_by_arrow(self, count: int) -> bool:
        """Return whether the base is Trinity's own, with this number of buckets."""
        whole = not self.spec.by_column and self.splits.native is None
        return whole and self.buckets == count and are_own(self.base)

    @property
    def not_local(self) -> NotLocal | None:
        """Why the log is not folded by this process alone; None where it is."""
        base, log = tiers(self.splits.files)
        files = [*self.splits.sidecar, *self.runs, *log]
        if not files:
            return NotLocal("it has no log")
        if sum(f.size for f in files) > MOST_LOCAL_BYTES:
            return NotLocal(f"its log has more than {MOST_LOCAL_BYTES:,} bytes")
        return why_not_by_position(self.splits, self.spec, base, log)


@dataclass(frozen=True)
class ReadPlan:
    """How the merged rows of a version are read.

    Attributes:
        splits: the version.
        spec: its table's options; None for a plain one.
        files: those of the version that may hold a row that is asked for.
        predicate: what rows are asked for; None for all. This process leaves the others out, and Spark what it may
            below the fold.
        key_filter: the predicate by which rows may be left out before they are folded; None to leave out none.
        way: the way in which Spark reads.
        not_local: why this process cannot read without Spark; None when it can.
        state: what is known of hidden rows; None where they are not left out by their positions.
        fold: how Spark folds the files; None where there is nothing to fold.
    """

    splits: SplitSource
    spec: MergeSpec | None
    files: Sequence[DataFile]
    predicate: Predicate | None
    key_filter: Predicate | None
    way: Way
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
        where: the condition by which rows are asked for. By its key columns files and rows may be left out below the
            fold (L9).
        timezone: returns Spark's session time zone; called only when a literal needs it.
        some_keys: True when the executor limits the read to some keys: a search would look up all keys.
        looks_keys_up: True when the executor may look up the keys that ``where`` lists, before it reads.
        remembered: False for the plan of a first read, as if nothing were known of the version.
    """
    definition = splits.definition
    spec = merge_spec(definition) if definition.keyed else None
    read = where if isinstance(where, Predicate) else Predicate.of(definition, where, timezone)
    predicate = None if isinstance(read, NotLocal) else read
    # below the fold only key columns leave files out, but those also where the rest of the predicate cannot
    files = prune(splits.files, predicate, definition.primary_key or None)
    key_filter = predicate if spec and predicate and predicate.filters_keys else None
    not_local = read if isinstance(read, NotLocal) else _not_local(splits, predicate)
    if spec is None or not tiers(files)[1]:
        return ReadPlan(splits, spec, files, predicate, key_filter, Way.SCAN, not_local)
    fold = FoldPlan.of(replace(splits, files=tuple(files)), spec)
    if spec.by_column:
        not_local = not_local or why_not_by_column(splits, spec, fold.log)
        return ReadPlan(splits, spec, files, predicate, key_filter, Way.BY_COLUMN, not_local, None, fold)
    state = PositionReadState.of(splits, spec, remembered=remembered)
    if isinstance(state, NotLocal):
        return ReadPlan(splits, spec, files, predicate, key_filter, fold.way, not_local or state, None, fold)
    not_local = not_local or state.why_not_searched
    plan = ReadPlan(splits, spec, files, predicate, key_filter, fold.way, not_local, state, fold)
    if not state.beats_a_join:
        return plan
    if state.is_known:
        return replace(plan, way=Way.KNOWN)
    if key_filter is None and not some_keys and state.is_soon_opened:
        return replace(plan, way=Way.SEARCH)
    if key_filter and looks_keys_up and key_filter.listed_keys is not None:
        some = state.of_keys(key_filter.listed_keys, files)
        if some.is_soon_opened and some.why_not_searched is None:
            return replace(plan, way=Way.KEYS, state=some)
    return plan


def _not_local(splits: SplitSource, predicate: Predicate | None) -> NotLocal | None:
    """Return why this process cannot read the files of a version, or choose its rows, alone; None when it can."""
    if predicate is not None and isinstance(predicate.compiled, NotLocal):
        return predicate.compiled
    return why_not_files(splits)
