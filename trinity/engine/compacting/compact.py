"""Compaction: files are replaced by fewer files that mean the same (K6, L3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from trinity.engine.compacting.compactor import Compactor, Resolve, highest_commit, sidecar_of
from trinity.engine.compacting.local.compactor import LocalCompactor
from trinity.engine.compacting.plan import CompactionPlan, Rewrite, plan_compaction
from trinity.engine.compacting.rewrite_task import RewriteTask
from trinity.engine.executes import NotLocal, execute
from trinity.engine.reading.dropped_table import reporting_dropped_table
from trinity.engine.reading.files import bucket_types
from trinity.merge.compaction_strength import Strength
from trinity.merge.spec import MergeSpec
from trinity.spi import Bucket, CommitResult, Connector, RewriteTableHandle, SplitSource, TableHandle, Tier
from trinity.target import Host

_Written: TypeAlias = tuple[list[bytes], list[bytes]]
"""(fragments of new files, fragments of deleted positions)."""


def compact(
    session: Host,
    connector: Connector,
    table: TableHandle,
    splits: SplitSource,
    strength: Strength,
    every: int | None = None,
) -> CommitResult:
    """Compact the pinned version as :func:`plan_compaction` says; files of later commits stay in the log.

    Raises:
        TrinityError: NOT_SUPPORTED for a resolve by a connector that cannot delete rows by position.
    """
    table = table.pinned(splits.version, splits.definition.id)
    with reporting_dropped_table(connector, table):
        plan = plan_compaction(splits, strength, every)
        resolves = plan is not None and plan.rewrite is Rewrite.RESOLVED
        if strength is Strength.RESOLVE and splits.definition.keyed and not resolves:
            connector.metadata.begin_resolve(table, (), ())  # raises if the connector cannot, even without a log
        if plan is None:
            return CommitResult(splits.version, skipped=True)
        work = _Compaction.begin(connector, table, splits, plan)
        written = execute(
            session,
            f"Compaction of '{table.full_name}' ({plan})",
            lambda process: process.why_not_read(plan.read) or work.write(LocalCompactor()),
            lambda: _by_spark(session, work),
        )
        return work.finish(*written)


def _by_spark(session: Host, work: _Compaction) -> _Written:
    from trinity.calls import spark_errors
    from trinity.engine.compacting.spark.compactor import SparkCompactor
    from trinity.spark.settings import pinned

    with pinned(session.spark), spark_errors():
        written = work.write(SparkCompactor(session.spark))
    assert not isinstance(written, NotLocal)
    return written


@dataclass(frozen=True)
class _Compaction:
    """A compaction that has begun."""

    connector: Connector
    splits: SplitSource
    plan: CompactionPlan
    handle: RewriteTableHandle

    @classmethod
    def begin(cls, connector: Connector, table: TableHandle, splits: SplitSource, plan: CompactionPlan) -> _Compaction:
        metadata = connector.metadata
        if plan.rewrite is Rewrite.RESOLVED:
            assert plan.fold is not None
            handle = metadata.begin_resolve(table, plan.replaced, plan.fold.base)
        else:
            handle = metadata.begin_rewrite(table, plan.replaced)
        return cls(connector, splits, plan, replace(handle, sidecar=tuple(splits.sidecar)))

    def write(self, compactor: Compactor) -> _Written | NotLocal:
        """Write the files that replace others, and commit nothing; or return why only Spark can."""
        fold, count, retention = self.plan.fold, self.plan.count, self.plan.retention
        if fold is None:
            written = compactor.concatenate(self.splits, self.plan.groups, self._task(Tier.LOG))
        elif self.plan.rewrite is Rewrite.RESOLVED:
            assert retention is not None
            return compactor.resolve(Resolve(fold, self.connector.sinks, self.handle, retention))
        elif self.plan.rewrite is Rewrite.BASE:
            assert retention is not None
            written = compactor.fold(fold, self._base_task(fold.spec), count, retention)
        elif self.plan.rewrite is Rewrite.LOG:
            written = compactor.fold_log(fold, self._task(Tier.LOG), count)
        else:
            written = compactor.winners_of_others(fold, self._task(Tier.LOG), count)
        return written if isinstance(written, NotLocal) else (written, [])

    def _task(self, tier: Tier) -> RewriteTask:
        # a table all of whose rows were deleted has only tombstones
        commit = highest_commit(self.handle.replaced or self.splits.sidecar)
        return RewriteTask(self.connector.sinks, self.handle.target, tier, commit)

    def _base_task(self, spec: MergeSpec) -> RewriteTask:
        count = self.plan.count
        return replace(
            self._task(Tier.BASE),
            buckets=Bucket(0, count, bucket_types(self.splits.definition)) if count else None,
            sidecar=sidecar_of(self.handle, spec),
        )

    def finish(self, fragments: list[bytes], deletes: list[bytes]) -> CommitResult:
        """Commit what was written. The sidecar is replaced by a new base and by a resolve, and stays otherwise."""
        metadata = self.connector.metadata
        if self.plan.rewrite is Rewrite.RESOLVED:
            return metadata.finish_resolve(self.handle, fragments, deletes)
        replaces = self.plan.rewrite is Rewrite.BASE
        return metadata.finish_rewrite(self.handle, fragments, replace_sidecar=replaces)
