"""Compaction: replaces files by fewer files that mean the same (K6, L3)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.compacting.compactor import Compactor, highest_commit, sidecar_schema
from trinity.engine.compacting.levels import LEVELLED_SHARE, newest_runs
from trinity.engine.compacting.local.compactor import LocalCompactor
from trinity.engine.compacting.resolve import resolve
from trinity.engine.compacting.sizes import crowded, files_for, in_groups
from trinity.engine.executes import NotLocal, execute, size_of
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.reading.files import bucket_types, tiers, well_bucketed
from trinity.engine.reading.local.fold_by_column import live_pages
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.target import Host
from trinity.engine.writing.run_sinks import RewriteTask, sidecar_target
from trinity.errors import TrinityError
from trinity.hidden import SINCE
from trinity.merge.options import keeps_versions
from trinity.merge.spec import MergeSpec, merge_spec
from trinity.merge.strength import Strength
from trinity.spi import Bucket, CommitResult, Connector, DataFile, RewriteTableHandle, SplitSource, TableHandle, Tier
from trinity.storage import OWN_ENDING, is_sink_file

_BUCKET_BYTES: Final = 64 * 1024 * 1024
_BUCKET_ROWS: Final = 2_000_000
"""Most rows of a bucket: those of values that repeat take few bytes in a file, and many where they are sorted."""
_FULL_SHARE: Final = 0.3
"""A log of at least this share of the base is folded into it; a smaller one is folded by itself."""


def compact(
    session: Host,
    connector: Connector,
    table: TableHandle,
    splits: SplitSource,
    strength: Strength,
    every: int | None = None,
) -> CommitResult:
    """Compact the pinned version; commits that come meanwhile stay in the log.

    Of a table that has no log to resolve, a resolve folds as a minor one does. A minor one folds the newest part of the
    log by levels of ``every`` so many commits; None folds all of it.
    """
    table = table.pinned(splits.version, splits.definition.id)

    def work(compactor: Compactor) -> CommitResult | NotLocal:
        with reporting_dropped_table(connector, table):
            return _Compaction(compactor, connector, table, splits).of(strength, every)

    return execute(
        session,
        f"Compaction of '{table.full_name}'",
        lambda: work(LocalCompactor()),
        lambda: _by_spark(session, work),
        size=size_of(splits.files),
    )


def _by_spark(session: Host, work: Callable[[Compactor], CommitResult | NotLocal]) -> CommitResult:
    from trinity.calls import spark_errors
    from trinity.engine.compacting.spark.compactor import SparkCompactor
    from trinity.engine.spark.settings import pinned

    with pinned(session.spark), spark_errors():
        done = work(SparkCompactor(session.spark))
    assert not isinstance(done, NotLocal)
    return done


@dataclass(frozen=True)
class _Compaction:
    """The compaction of one version of a table."""

    compactor: Compactor
    connector: Connector
    table: TableHandle
    splits: SplitSource

    def of(self, strength: Strength, every: int | None) -> CommitResult | NotLocal:
        """Compact by a strength. Arguments as for :func:`compact`."""
        splits = self.splits
        base, log = tiers(splits.files)
        full = strength is Strength.FULL
        if splits.definition.external:
            if strength is Strength.RESOLVE:
                raise TrinityError(
                    "NOT_SUPPORTED",
                    f"Table '{self.table.full_name}' is external, and not resolved; use compact(full=True).",
                )
            return self._winners_only()
        if not splits.definition.keyed:
            return self._concatenate(purges=full)
        if keeps_versions(splits.definition.properties):
            return self._skipped
        spec = merge_spec(splits.definition)
        if strength is Strength.RESOLVE:
            return resolve(self.compactor, self.connector, self.table, splits, spec) or self._full(spec)
        if not log and not (full and _is_worth_it(splits, spec)):
            return self._skipped
        runs, share = (log, _FULL_SHARE) if every is None else (newest_runs(splits.files, every), LEVELLED_SHARE)
        if full or (len(runs) == len(log) and sum(f.rows for f in log) >= share * sum(f.rows for f in base)):
            return self._full(spec)
        return self._folded_log(spec, runs) if len(runs) > 1 else self._skipped

    @property
    def _skipped(self) -> CommitResult:
        return CommitResult(self.splits.version, skipped=True)

    def _full(self, spec: MergeSpec) -> CommitResult | NotLocal:
        """Fold base, log and sidecar into a new base and a new sidecar, in one pass.

        A partitioned table's base has files by partition instead of buckets, and is read as a base without buckets.
        """
        files, definition = self.splits.files, self.splits.definition
        buckets = None if definition.partition_by else spec.buckets or _buckets_for(files)
        rewrite = self._begun(files)
        columns = sidecar_schema(rewrite.target.storage, spec)
        write = replace(
            self._writing(rewrite, Tier.BASE),
            buckets=Bucket(0, buckets, bucket_types(definition)) if buckets else None,
            sidecar=columns and sidecar_target(rewrite.target, f"{self.table.location}/_trinity", columns),
        )
        return self._finished(rewrite, self.compactor.fold(FoldPlan.of(self.splits, spec), write, buckets))

    def _folded_log(self, spec: MergeSpec, log: Sequence[DataFile]) -> CommitResult | NotLocal:
        """Fold adjacent commits of the log into one sorted run of winners, tombstones among them.

        Base and sidecar stay. Of an engine that folds by column all versions stay, in fewer files.
        """
        rewrite = self._begun(log)
        fold = FoldPlan.of(replace(self.splits, files=tuple(log), sidecar=()), spec)
        write = self._writing(rewrite, Tier.LOG)
        return self._to_log(rewrite, self.compactor.fold_log(fold, write, self._files_for(log)))

    def _winners_only(self) -> CommitResult | NotLocal:
        """Fold the files of an external table into fewer, with the winner of each key, tombstones included.

        There is no sidecar to put those in. Rows without a key are no versions of anything, and stay (K1).
        """
        spec = _foldable(self.table, self.splits)
        if not self.splits.files:
            return self._skipped
        rewrite = self._begun(self.splits.files)
        count, fold = self._files_for(self.splits.files), FoldPlan.of(self.splits, spec)
        write = self._writing(rewrite, Tier.LOG)
        return self._to_log(rewrite, self.compactor.winners_of_others(fold, write, count))

    def _concatenate(self, *, purges: bool) -> CommitResult | NotLocal:
        """Rewrite a plain table's files as fewer of a good size, in arrival order; purge deleted rows if asked to."""
        groups = self._crowded_partitions(purges) if self.splits.definition.partition_by else self._crowded(purges)
        if not groups:
            return self._skipped
        rewrite = self._begun([f for group in groups for f in group])
        write = self._writing(rewrite, Tier.LOG)
        return self._to_log(rewrite, self.compactor.concatenate(self.splits, groups, write))

    def _crowded(self, purges: bool) -> list[list[DataFile]]:
        files = self.splits.files
        wanted = files_for(files)
        if len(files) <= wanted and not (purges and any(f.deletes for f in files)):
            return []
        return in_groups(files, wanted)

    def _crowded_partitions(self, purges: bool) -> list[list[DataFile]]:
        groups = crowded(self.splits.files)
        known = {f.path for group in groups for f in group}
        return [*groups, *([f] for f in self.splits.files if purges and f.deletes and f.path not in known)]

    def _files_for(self, files: Sequence[DataFile]) -> int | None:
        """Return into how many files the given ones are folded; None for one by partition."""
        return None if self.splits.definition.partition_by else files_for(files)

    def _begun(self, replaced: Sequence[DataFile]) -> RewriteTableHandle:
        return self.connector.metadata.begin_rewrite(self.table, replaced)

    def _writing(self, rewrite: RewriteTableHandle, tier: Tier) -> RewriteTask:
        return RewriteTask(self.connector.sinks, rewrite.target, tier, highest_commit(rewrite.replaced))

    def _to_log(self, rewrite: RewriteTableHandle, written: list[bytes] | NotLocal) -> CommitResult | NotLocal:
        """Replace files by log files; base and sidecar stay."""
        return self._finished(rewrite, written, replace_sidecar=False)

    def _finished(
        self, rewrite: RewriteTableHandle, written: list[bytes] | NotLocal, *, replace_sidecar: bool = True
    ) -> CommitResult | NotLocal:
        if isinstance(written, NotLocal):
            return written
        return self.connector.metadata.finish_rewrite(rewrite, written, replace_sidecar=replace_sidecar)


def _is_worth_it(splits: SplitSource, spec: MergeSpec) -> bool:
    """Return True where a full compaction changes the files of a table without a log.

    Under the sidecar names of older releases other readers of a table's folder read its rows as the table's.
    """
    old = any(is_sink_file(file.name) and not file.name.endswith(OWN_ENDING) for file in splits.sidecar)
    rewritten = bool(splits.files) and (old or not _is_compact(splits, spec))
    return rewritten or _has_expired(splits, spec)


def _has_expired(splits: SplitSource, spec: MergeSpec) -> bool:
    """Return True where tombstones are in the sidecar for longer than the table keeps them."""
    if spec.tombstone_retention_ms is None or spec.by_column:
        return False
    oldest = int(time.time() * 1000) - spec.tombstone_retention_ms
    pages = (page for file in splits.sidecar for page in live_pages(file, pa.schema([(SINCE, pa.int64())])))
    return any(pc.any(pc.less(page.column(SINCE), oldest)).as_py() for page in pages)


def _is_compact(splits: SplitSource, spec: MergeSpec) -> bool:
    if any(f.deletes for f in splits.files):
        return False
    if splits.definition.partition_by:
        return True
    buckets = well_bucketed(splits.files, splits.definition)
    return buckets is not None and spec.buckets in (None, buckets)


def _foldable(table: TableHandle, splits: SplitSource) -> MergeSpec:
    """Return the merge options of a table of others. Raises NOT_SUPPORTED where all row versions have to stay."""
    definition = splits.definition
    spec = merge_spec(definition) if definition.keyed else None
    if spec and not spec.by_column and not keeps_versions(definition.properties):
        return spec
    why = "has no key" if spec is None else f"keeps all row versions (merge-engine={spec.engine.value})"
    raise TrinityError(
        "NOT_SUPPORTED",
        f"Table '{table.full_name}' is external and {why}: there is nothing that a compaction could leave out. To have "
        "fewer files, use the engine that made it (OPTIMIZE, rewrite_data_files).",
    )


def _buckets_for(files: Sequence[DataFile]) -> int:
    """Return a power of two, so that a table that grows splits its buckets and does not shuffle them."""
    wanted = max(1.0, sum(f.size for f in files) / _BUCKET_BYTES, sum(f.rows for f in files) / _BUCKET_ROWS)
    return min(1024, 1 << math.ceil(math.log2(wanted)))
