"""The plan of a merged read: chosen once, by statistics and what is known of hidden rows, and followed by any executor.

The plan is executed by Spark (:mod:`trinity.engine.reading.spark`), or by this process without Spark
(:mod:`trinity.engine.reading.local`), where :attr:`ReadPlan.not_local` is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from trinity.engine.executes import NotLocal, works_in_process
from trinity.engine.reading.files import are_own, prune, split_buckets_and_runs, tiers, well_bucketed, why_not_files
from trinity.engine.reading.hidden_rows import PositionReadState
from trinity.engine.reading.predicate import Predicate, Where
from trinity.limits import Limit
from trinity.merge.arrow.by_column import ColumnFold
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import DataFile, SplitSource
from trinity.storage.parquet_files import have_more_rows
from trinity.target import Host

MOST_LOG: Final = Limit(4_000_000)
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
    if have_more_rows(base, _MOST_ROWS):
        return NotLocal(f"its base has more than {_MOST_ROWS:,} rows")
    return _why_log_too_long(log)


def why_not_by_column(splits: SplitSource, spec: MergeSpec, log: Sequence[DataFile]) -> NotLocal | None:
    """Return why this process cannot fold the log of a version column by column; None when it can."""
    missing = ColumnFold(splits.definition, spec).not_in_arrow()
    if missing:
        return NotLocal(", ".join(f"column '{column}' folds by {why}" for column, why in missing.items()))
    return _why_log_too_long(log)


def _why_log_too_long(log: Sequence[DataFile]) -> NotLocal | None:
    if not have_more_rows(log, MOST_LOG.value):
        return None
    return NotLocal(f"its log has more than {MOST_LOG.value:,} rows (compact('full') folds them)")


class ReadStrategy(Enum):
    """A way in which Spark reads; its value describes it in words."""

    SCAN = "a scan"
    KNOWN = "a scan that skips rows by position; the positions are known from an earlier read"
    SEARCH = (
        "a scan that skips rows by position; a job over key and ordering columns finds the positions first, "
        "and they are cached"
    )
    KEYS = (
        "a scan that skips rows by position; the positions of the requested keys are found first, by key and "
        "ordering columns"
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
        """Return True when Trinity wrote all of the base, in ``count`` buckets, and the engine keeps rows whole."""
        whole = not self.spec.by_column and self.splits.native is None
        return whole and self.buckets == count and are_own(self.base)


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
        not_evaluated: why this process cannot evaluate the predicate; None when it can, and for all rows.
        not_local: why this process cannot read without Spark, for that or another reason; None when it can.
        state: the known hidden rows; None where hidden rows are not left out by their positions.
        fold: the plan by which files are folded; None where there is nothing to fold.
    """

    splits: SplitSource
    spec: MergeSpec | None
    files: Sequence[DataFile]
    predicate: Predicate | None
    key_filter: Predicate | None
    strategy: ReadStrategy
    not_evaluated: NotLocal | None
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
    read = where if isinstance(where, Predicate) else Predicate.of(definition, where, timezone) if where else None
    predicate = None if isinstance(read, NotLocal) else read
    # of a keyed table, only key columns may leave files out; they do so even where the whole predicate is no key filter
    files = prune(splits.files, predicate, definition.primary_key or None)
    key_filter = predicate if spec and predicate and predicate.filters_keys else None
    not_evaluated = read if isinstance(read, NotLocal) else _why_not_evaluated(predicate)
    not_local = not_evaluated or why_not_files(splits)
    plan = ReadPlan(splits, spec, files, predicate, key_filter, ReadStrategy.SCAN, not_evaluated, not_local)
    if spec is None or not tiers(files)[1]:
        return plan
    fold = FoldPlan.of(replace(splits, files=tuple(files)), spec)
    plan = replace(plan, strategy=fold.strategy, fold=fold)
    if spec.by_column:
        return replace(plan, not_local=not_local or why_not_by_column(splits, spec, fold.log))
    if (why := why_not_by_position(splits, spec, *tiers(splits.files))) is not None:
        return replace(plan, not_local=not_local or why)
    state = PositionReadState.of(splits, spec, remembered=remembered)
    plan = replace(plan, state=state)
    if not state.beats_a_join:
        return plan
    if state.is_known:
        return replace(plan, strategy=ReadStrategy.KNOWN)
    if key_filter is None and not some_keys and state.is_cheap_to_open:
        return replace(plan, strategy=ReadStrategy.SEARCH)
    if key_filter and looks_keys_up and key_filter.listed_keys is not None:
        some = state.of_keys(key_filter.listed_keys, files)
        if some.is_cheap_to_open and some.is_cheap_to_read:
            return replace(plan, strategy=ReadStrategy.KEYS, state=some)
    return plan


def session_plan(session: Host, splits: SplitSource, where: str | None, *, arrow: bool = False) -> ReadPlan:
    """Choose the plan of a read by a session's user, for either executor; ``arrow`` is as for ``execute()``."""
    in_process = works_in_process(session, arrow=arrow) if where else False
    return plan_read(splits, where, timezone=lambda: session.timezone, looks_keys_up=in_process)


def _why_not_evaluated(predicate: Predicate | None) -> NotLocal | None:
    """Return why this process cannot evaluate a predicate; None when it can. Raises as :attr:`Predicate.compiled`."""
    compiled = None if predicate is None else predicate.compiled
    return compiled if isinstance(compiled, NotLocal) else None
