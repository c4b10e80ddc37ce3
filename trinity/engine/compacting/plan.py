"""The plan of a compaction: the files to replace, and by what. It is chosen once, for either executor (K6, R1).

The plan follows from a version's metadata, and from footers where that lacks row counts.
:mod:`~trinity.engine.compacting.expiry` tells whether tombstones have expired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import itemgetter
from typing import Final

from trinity.engine.compacting.expiry import has_expired
from trinity.engine.compacting.levels import LEVELLED_SHARE, newest_runs
from trinity.engine.compacting.sizes import by_partition_values, crowded, files_for
from trinity.engine.reading.files import tiers, well_bucketed
from trinity.engine.reading.plan import FoldPlan
from trinity.errors import TrinityError
from trinity.limits import Limit
from trinity.merge.compaction_strength import Strength
from trinity.merge.properties import keeps_versions
from trinity.merge.sidecar import Retention
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.spi import DataFile, SplitSource, TableDefinition
from trinity.storage.parquet_files import have_more_rows, live_rows_in
from trinity.storage.parquet_sink import OWN_ENDING, is_sink_file

_BUCKET_BYTES: Final = 64 * 1024 * 1024
BUCKET_ROWS: Final = Limit(2_000_000)
"""Most rows of a bucket: rows of repeated values take few bytes in a file, but many in memory, to be sorted."""
_FULL_SHARE: Final = 0.3
"""A log of at least this share of the base is folded into a new base; a smaller one is folded by itself."""
_GROWTH: Final = 2
"""A resolve folds an earlier run again if the run has at most this multiple of the rows that it is folded with."""


class Rewrite(Enum):
    """A kind of rewrite: what a compaction makes of the files that it replaces."""

    BASE = "a base"
    """Base, log and sidecar become a new base and a new sidecar, in one pass."""
    LOG = "a run of the log"
    """Adjacent commits of the log become one sorted run of winners, tombstones among them. Base and sidecar stay."""
    RESOLVED = "deletes by position"
    """Log and small runs become a run of live rows, and the positions of the base rows that it supersedes (R1)."""
    WINNERS = "winners"
    """An external table, which has no sidecar, keeps the winner of each key, and rows with a NULL in their key (K1)."""
    PLAIN = "fewer files"
    """A plain table gets files of a good size, with the rows in arrival order."""


@dataclass(frozen=True)
class CompactionPlan:
    """The plan of one compaction of a version.

    Attributes:
        rewrite: the kind of rewrite.
        replaced: the files that are removed.
        count: number of buckets of a new base, or of files that a run of the log or an external table gets; None for
            other rewrites, and in a partitioned table, whose files follow from its partitions.
        fold: the plan by which rows are folded; None for a plain table.
        groups: in a plain table, the files whose rows each new file gets.
        retention: the rule by which tombstones stay, where a fold writes a new sidecar.
    """

    rewrite: Rewrite
    replaced: Sequence[DataFile]
    count: int | None = None
    fold: FoldPlan | None = None
    groups: Sequence[Sequence[DataFile]] = ()
    retention: Retention | None = None

    @property
    def read(self) -> Sequence[DataFile]:
        """The files whose rows are read: those that are replaced, and base files that a resolve compares with them."""
        return [*self.replaced, *(self.fold.base if self.fold and self.rewrite is Rewrite.RESOLVED else ())]

    def __str__(self) -> str:
        return f"{self.rewrite.value} of {len(self.replaced):,} file{'' if len(self.replaced) == 1 else 's'}"


def plan_compaction(splits: SplitSource, strength: Strength, every: int | None = None) -> CompactionPlan | None:
    """Return the plan of a compaction of a version; None where there is nothing to do.

    For a plain table a resolve is a minor compaction.

    Args:
        splits: the version.
        strength: the requested strength.
        every: number of commits after which a trigger compacts. A minor compaction then folds only the newest part of
            the log, by its :mod:`~trinity.engine.compacting.levels`. None to fold the whole log.

    Raises:
        TrinityError: NOT_SUPPORTED for an external table that cannot be compacted in this way.
    """
    definition, full = splits.definition, strength is Strength.FULL
    if definition.external:
        return _winners_of_others(splits, strength)
    if not definition.keyed:
        return _fewer_files(splits, purges=full)
    if keeps_versions(definition.properties):
        return None
    spec = merge_spec(definition)
    retention = Retention.now(spec)
    if strength is Strength.RESOLVE:
        return _resolved(splits, spec, retention)
    base, log = tiers(splits.files)
    if not log and not (full and _is_worth_it(splits, spec, retention)):
        return None
    runs, share = (log, _FULL_SHARE) if every is None else (newest_runs(splits.files, every), LEVELLED_SHARE.value)
    if full or (len(runs) == len(log) and not have_more_rows(base, int(live_rows_in(log) / share))):
        return _new_base(splits, spec, retention)
    return _run_of_log(splits, spec, runs) if len(runs) > 1 else None


def _new_base(splits: SplitSource, spec: MergeSpec, retention: Retention) -> CompactionPlan:
    # a partitioned table's base has files by partition instead
    buckets = None if splits.definition.partition_by else spec.buckets or _buckets_for(splits.files)
    return CompactionPlan(Rewrite.BASE, splits.files, buckets, FoldPlan.of(splits, spec), retention=retention)


def _run_of_log(splits: SplitSource, spec: MergeSpec, log: Sequence[DataFile]) -> CompactionPlan:
    fold = FoldPlan.of(replace(splits, files=tuple(log), sidecar=()), spec)
    return CompactionPlan(Rewrite.LOG, log, _files_for(splits, log), fold)


def _resolved(splits: SplitSource, spec: MergeSpec, retention: Retention) -> CompactionPlan | None:
    """Plan a resolve: the log is folded with small runs of earlier resolves; other base files stay (R1).

    A run is part of the base: live rows whose keys have no other live row in the base. It has the log's
    winners or, where the engine folds by column, the fold of base rows and log.

    Without other base files, or where the sidecar may have all row versions, the plan is a new base instead.
    """
    base, log = tiers(splits.files)
    if not log:
        return None
    runs = _small_runs(splits.definition, base, log)
    folded = {f.path for f in runs}
    kept = [f for f in base if f.path not in folded]
    if not kept or spec.may_have_history:
        return _new_base(splits, spec, retention)
    fold = FoldPlan(splits, spec, kept, runs, well_bucketed([f for f in kept if f.bucket], splits.definition))
    return CompactionPlan(Rewrite.RESOLVED, [*fold.log, *runs], fold=fold, retention=retention)


def _small_runs(definition: TableDefinition, base: Sequence[DataFile], log: Sequence[DataFile]) -> list[DataFile]:
    """Return the runs of earlier resolves that are small compared with the log, in the partitions that the log has.

    Files in buckets are no runs; in a partitioned table, which has no buckets, nor are those of the oldest commit.
    """
    if definition.partition_by:
        oldest = min((f.commit or 0 for f in base), default=0)
        runs = [f for f in base if (f.commit or 0) > oldest]
    else:
        runs = [f for f in base if not f.bucket]
    of_partition = by_partition_values(runs)
    small = list[DataFile]()
    for partition, newer in by_partition_values(log).items():
        rows, found = live_rows_in(newer), of_partition.get(partition, ())
        for more, run in sorted(((live_rows_in([f]), f) for f in found), key=itemgetter(0)):
            if more > _GROWTH * rows:
                break
            small.append(run)
            rows += more
    return small


def _winners_of_others(splits: SplitSource, strength: Strength) -> CompactionPlan | None:
    """Plan the compaction of an external table. Raises NOT_SUPPORTED where all row versions have to stay."""
    definition = splits.definition
    if strength is Strength.RESOLVE:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{definition.full_name}' is external, and not resolved; use compact(full=True).",
        )
    spec = merge_spec(definition) if definition.keyed else None
    if spec and not spec.by_column and not keeps_versions(definition.properties):
        fold = FoldPlan.of(splits, spec)
        count = _files_for(splits, splits.files)
        return CompactionPlan(Rewrite.WINNERS, splits.files, count, fold) if splits.files else None
    why = "has no key" if spec is None else f"keeps all row versions (merge-engine={spec.engine.value})"
    raise TrinityError(
        "NOT_SUPPORTED",
        f"Table '{definition.full_name}' is external and {why}: there is nothing that a compaction could leave out. To "
        "have fewer files, use the engine that made it (OPTIMIZE, rewrite_data_files).",
    )


def _fewer_files(splits: SplitSource, *, purges: bool) -> CompactionPlan | None:
    """Plan the compaction of a plain table. If ``purges``, rewrite files with deleted rows, too, without these."""
    groups = crowded(splits.files)
    joined = {f.path for group in groups for f in group}
    groups += [[f] for f in splits.files if purges and f.deletes and f.path not in joined]
    return CompactionPlan(Rewrite.PLAIN, [f for group in groups for f in group], groups=groups) if groups else None


def _files_for(splits: SplitSource, files: Sequence[DataFile]) -> int | None:
    return None if splits.definition.partition_by else files_for(files)


def _is_worth_it(splits: SplitSource, spec: MergeSpec, retention: Retention) -> bool:
    """Return True when a full compaction changes the files of a table without a log.

    It does so, too, for sidecar files with names of older releases, which other readers of the folder take for data.
    """
    old = any(is_sink_file(file.name) and not file.name.endswith(OWN_ENDING) for file in splits.sidecar)
    rewritten = bool(splits.files) and (old or not _is_compact(splits, spec))
    return rewritten or (not spec.by_column and has_expired(splits.sidecar, retention))


def _is_compact(splits: SplitSource, spec: MergeSpec) -> bool:
    if any(f.deletes for f in splits.files):
        return False
    if splits.definition.partition_by:
        return all(len({f.commit for f in found}) == 1 for found in by_partition_values(splits.files).values())
    buckets = well_bucketed(splits.files, splits.definition)
    return buckets is not None and spec.buckets in (None, buckets)


def _buckets_for(files: Sequence[DataFile]) -> int:
    """Return the number of buckets: a power of two, so that a growing table splits buckets and never shuffles them."""
    wanted = max(1.0, sum(f.size for f in files) / _BUCKET_BYTES, live_rows_in(files) / BUCKET_ROWS.value)
    return min(1024, 1 << math.ceil(math.log2(wanted)))
