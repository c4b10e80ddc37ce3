"""Resolve: the log becomes deletes by position and a run of rows; no base file is rewritten (R1).

The run is part of the base: live rows, and of no key that another base file has a row of that is not deleted. It has
the log's winners, or where the engine folds by column what base rows and log come to.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.compacting.bucket_merge import BucketMerge, Written, in_buckets
from trinity.engine.compacting.in_threads import by_bucket, log_winners_in_process, run_in_threads
from trinity.engine.compacting.rewriting import distributed, highest_commit, sidecar_schema, with_tombstones
from trinity.engine.reading.layout import tiers, well_bucketed
from trinity.engine.reading.local.limits import NotLocal, compared_in_arrow
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.pruning import may_share_keys
from trinity.engine.reading.spark import fold_by_column as by_column
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.spark.remote import parallelism
from trinity.engine.writing.run_sinks import RewriteTask, run_on_spark, sidecar_target
from trinity.hidden import FILE_TOKEN, POSITION
from trinity.merge.engine import MergeEngine
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.fold import beats
from trinity.spark_names import DataFrame, F
from trinity.spi import (
    CommitResult,
    Connector,
    DataFile,
    PageSinkProvider,
    RewriteTableHandle,
    SinkId,
    SplitSource,
    TableHandle,
    Tier,
)
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["resolve"]

_RUN_BYTES: Final = 32 * 1024 * 1024
"""Bytes of log for each file of a run."""
_SCAN_BYTES: Final = 64 * 1024 * 1024
"""Bytes of base for each task that looks at its keys, as far as there are cores."""
_GROWTH: Final = 2
"""A run is folded with the log while it has at most so many times its rows: each row is written a few times at most."""
_MOST_TASKS: Final = 64


def resolve(
    spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource, spec: MergeSpec
) -> CommitResult | None:
    """Resolve the log of the pinned version; commits that come meanwhile stay in it.

    Returns:
        the commit, ``skipped`` when there is no log; None when there is no base beside which a run could stand, or all
            row versions are kept aside, so that it takes a full compaction.

    Raises:
        TrinityError: NOT_SUPPORTED when the connector cannot delete rows by position.
    """
    parts = _Parts.of(splits)
    rewrite = connector.metadata.begin_resolve(table, parts.replaced, parts.kept)
    if not parts.log:
        return CommitResult(splits.version, skipped=True)
    if not parts.kept or spec.keeps_history:
        return None
    work: _Resolve = (_ByColumn if spec.by_column else _WholeRows)(spark, splits, spec, parts)
    fragments, deletes = work.written(connector, rewrite)
    if (positions := work.superseded_rows()) is not None:
        task = _DeleteTask(connector.sinks, rewrite, _tokens(work.unbucketed_files)[1])
        deletes += run_on_spark(task, positions.repartition(min(_MOST_TASKS, len(work.unbucketed_files)), FILE_TOKEN))
    return connector.metadata.finish_resolve(rewrite, fragments, deletes)


@dataclass(frozen=True)
class _Parts:
    """The files of a version by what becomes of them.

    Attributes:
        log: folded.
        runs: of earlier resolves, folded too.
        kept: base files that stay.
    """

    log: Sequence[DataFile]
    runs: Sequence[DataFile]
    kept: Sequence[DataFile]

    @classmethod
    def of(cls, splits: SplitSource) -> _Parts:
        base, log = tiers(splits.files)
        rows, runs = sum(f.live_rows for f in log), []
        # (of a partitioned table no base file has a bucket)
        beside = [f for f in base if not f.bucket and not splits.definition.partition_by]
        for run in sorted(beside, key=lambda f: f.live_rows):
            if run.live_rows > _GROWTH * rows:
                break
            runs.append(run)
            rows += run.live_rows
        folded = {f.path for f in runs}
        return cls(log, runs, [f for f in base if f.path not in folded])

    @property
    def replaced(self) -> list[DataFile]:
        """The files that go."""
        return [*self.log, *self.runs]


@dataclass(frozen=True)
class _Resolve(ABC):
    """The rows of a resolve."""

    spark: SparkSession
    splits: SplitSource
    spec: MergeSpec
    parts: _Parts

    @property
    @abstractmethod
    def unbucketed_files(self) -> list[DataFile]:
        """The kept files whose superseded rows :meth:`superseded_rows` finds."""

    @abstractmethod
    def written(self, connector: Connector, rewrite: RewriteTableHandle) -> tuple[list[bytes], list[bytes]]:
        """Write run and sidecar. Returns their fragments, and those of positions that came up on the way."""

    @abstractmethod
    def superseded_rows(self) -> DataFrame | None:
        """Return file and place of each superseded row of these files; None when there can be none."""

    def rewriting(
        self, connector: Connector, rewrite: RewriteTableHandle, aside: pa.Schema, keeps_aside: bool
    ) -> RewriteTask:
        """Write live rows to the run, and others to a sidecar of some columns, unless nothing is to be kept there."""
        sidecar = sidecar_target(rewrite.target, f"{rewrite.table.location}/_trinity", aside) if keeps_aside else None
        commit = highest_commit(self.splits.files)
        return RewriteTask(connector.sinks, rewrite.target, Tier.BASE, commit, None, sidecar)

    @property
    def tasks(self) -> int | None:
        """The number of tasks that write the run; None for one by partition."""
        if self.splits.definition.partition_by:
            return None
        return max(1, math.ceil(sum(f.size for f in self.parts.replaced) / _RUN_BYTES))

    def placed(self, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
        """Return key and ordering columns of a scan, with file and place of each row, as ``b``."""
        place = f"{_tokens(files)[0]} AS {FILE_TOKEN}", f"_metadata.row_index AS {POSITION}"
        return self.narrow(rows, *place).alias("b")

    def narrow(self, rows: DataFrame, *further: str) -> DataFrame:
        """Return key and ordering columns, and further ones."""
        names = dict.fromkeys((*self.spec.key, *self.spec.ordering))
        return rows.selectExpr(*map(quoted, names), *further)


class _ByColumn(_Resolve):
    """A resolve by column: the base rows of keys in log and sidecar are folded with these, and deleted."""

    @cached_property
    def unbucketed_files(self) -> list[DataFile]:
        return may_share_keys(self.parts.kept, [*self.parts.log, *self.splits.sidecar], self.splits.definition)

    def written(self, connector: Connector, rewrite: RewriteTableHandle) -> tuple[list[bytes], list[bytes]]:
        splits, spec, parts = self.splits, self.spec, self.parts
        base = self._touched(plain_scan(self.spark, self.unbucketed_files, splits.storage))
        if parts.runs:
            base = base.unionByName(plain_scan(self.spark, parts.runs, splits.storage))
        aside = by_column.sidecar_schema(rewrite.target.storage)
        task = self.rewriting(connector, rewrite, aside, by_column.needs_sidecar(spec))

        def run(rows: DataFrame, in_log: bool = False) -> list[bytes]:
            rows = distributed(rows, splits, spec, parts.replaced, self.tasks)
            return run_on_spark(replace(task, in_log=in_log), rows)

        return by_column.rewritten(by_column.after_base(base, self._later, splits, spec), splits, spec, run), []

    def superseded_rows(self) -> DataFrame | None:
        if not self.unbucketed_files:
            return None
        here = self.placed(plain_scan(self.spark, self.unbucketed_files, self.splits.storage), self.unbucketed_files)
        return self._touched(here).select(FILE_TOKEN, POSITION)

    @cached_property
    def _later(self) -> DataFrame:
        return by_column.later_versions(self.spark, self.splits, self.spec)

    def _touched(self, rows: DataFrame) -> DataFrame:
        keys = self._later.select(*map(quoted, self.spec.key))
        return rows.join(keys, list(self.spec.key), "left_semi")


class _WholeRows(_Resolve):
    """A resolve of an engine that keeps rows whole.

    Base files in buckets are merged with the log bucket by bucket: all superseded rows of a file come up in the task
    that writes the bucket's part of the run. For other base files there is a second job, in which they are brought
    together.
    """

    @cached_property
    def buckets(self) -> int | None:
        """The number of buckets of the kept base; None where tasks cannot merge by bucket."""
        files = [f for f in self.parts.kept if f.bucket]
        return (
            well_bucketed(files, self.splits.definition) if compared_in_arrow(self.splits, self.spec, files) else None
        )

    @cached_property
    def touched(self) -> list[DataFile]:
        """The kept files that may hold a key of the log."""
        return may_share_keys(self.parts.kept, self.parts.log, self.splits.definition)

    @cached_property
    def bucketed_files(self) -> list[DataFile]:
        """Touched files in buckets."""
        return [f for f in self.touched if f.bucket and self.buckets]

    @cached_property
    def unbucketed_files(self) -> list[DataFile]:
        """Touched files in none."""
        return [f for f in self.touched if not (f.bucket and self.buckets)]

    def written(self, connector: Connector, rewrite: RewriteTableHandle) -> tuple[list[bytes], list[bytes]]:
        """Write live rows to the run, tombstones to the sidecar, and positions of files in buckets."""
        aside = sidecar_schema(rewrite.target.storage, self.spec)
        rows = self.rewriting(connector, rewrite, aside, self.spec.keeps_tombstones)
        if not self.bucketed_files:
            newest = with_tombstones(self.unbeaten, self.spec)
            return run_on_spark(rows, distributed(newest, self.splits, self.spec, self.parts.replaced, self.tasks)), []
        base = {f.bucket.index: f for f in self.bucketed_files if f.bucket}
        task = _ResolveTask(rows, connector.sinks, rewrite, BucketMerge(self.spec, self.splits.storage, base))
        winners = None if self.unbucketed_files else log_winners_in_process(self.spark, self.fold)
        if winners is None or isinstance(winners, NotLocal):
            written = Written.of(run_on_spark(task, self.in_buckets))
        else:
            written = Written.of(run_in_threads(task, self._by_task(winners), parallelism(self.spark)))
        return [*written.rows], [*written.deletes]

    @property
    def unbeaten(self) -> DataFrame:
        """The newest versions that no base row beats of a file in no bucket."""
        spec = self.spec
        compares = bool(spec.ordering) or spec.engine is MergeEngine.FIRST_ROW
        if not (compares and self.unbucketed_files):
            return self.newest
        other = self.narrow(plain_scan(self.spark, self.unbucketed_files, self.splits.storage)).alias("b")
        beaten = F.expr(f"{self._same_key} AND {beats(spec, 'b', 'l')}")
        return self.newest.alias("l").join(other, beaten, "left_anti")

    @property
    def in_buckets(self) -> DataFrame:
        """These in as many tasks as have base files worth a task, or as the run is to have files."""
        assert self.buckets
        rows = self.unbeaten
        if self.unbucketed_files:  # whose join may part them otherwise
            rows = rows.repartition(self.buckets, *map(quoted, self.spec.key))
        return in_buckets(rows, self.spec, self.buckets).coalesce(self.width)

    @property
    def width(self) -> int:
        """The number of tasks that merge base files in buckets."""
        wide = math.ceil(sum(f.size for f in self.bucketed_files) / _SCAN_BYTES)
        return max(self.tasks or 1, min(parallelism(self.spark), wide))

    def _by_task(self, winners: pa.Table) -> dict[int, pa.Table]:
        assert self.buckets
        width, grouped = self.width, dict[int, list[pa.Table]]()
        for bucket, rows in by_bucket(winners, self.spec.key, self.buckets).items():
            grouped.setdefault(bucket % width, []).append(rows)
        return {order: pa.concat_tables(tables) for order, tables in grouped.items()}

    def superseded_rows(self) -> DataFrame | None:
        if self.spec.engine is MergeEngine.FIRST_ROW or not self.unbucketed_files:
            return None
        here = self.placed(plain_scan(self.spark, self.unbucketed_files, self.splits.storage), self.unbucketed_files)
        gone = f"{self._same_key} AND NOT {beats(self.spec, 'b', 'l')}"
        lost = here.join(self.narrow(self.newest).alias("l"), F.expr(gone))
        return lost.selectExpr(f"b.{FILE_TOKEN}", f"b.{POSITION}")

    @cached_property
    def fold(self) -> FoldPlan:
        """The plan by which log, sidecar and folded runs become winners."""
        return FoldPlan(self.splits, self.spec, self.parts.kept, self.parts.runs, self.buckets)

    @cached_property
    def newest(self) -> DataFrame:
        """The winning version of each key of log, sidecar and folded runs."""
        return SparkExecutor(self.spark).log_winners(self.fold)

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"b.{quoted(k)} = l.{quoted(k)}" for k in self.spec.key)


def _tokens(files: Sequence[DataFile]) -> tuple[str, dict[Any, DataFile]]:
    """Return (Spark SQL over a scan, its value -> file): what tells the files, their size unless two have one."""
    by_size = {f.size: f for f in files}
    if len(by_size) == len(files):  # a number: a name would be copied for each row
        return "_metadata.file_size", by_size
    return "_metadata.file_name", {f.name: f for f in files}


@dataclass(frozen=True)
class _DeleteTask:
    """Writes one task's positions of deleted rows.

    Attributes:
        provider: makes the sink.
        rewrite: the resolve.
        files: the files by what tells them.
    """

    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    files: Mapping[Any, DataFile]

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        found: dict[Any, list[pa.Array]] = {}
        for page in pages:
            self.take(page, found)
        return self.write(order, found)

    def take(self, page: pa.RecordBatch, found: dict[Any, list[pa.Array]]) -> None:
        """Add a page's positions to those of each file."""
        files, places = page.column(FILE_TOKEN), page.column(POSITION)
        for file in files.drop_null().unique():
            found.setdefault(file.as_py(), []).append(places.filter(pc.equal(files, file)))

    def write(self, order: int, found: Mapping[Any, list[pa.Array]]) -> list[bytes]:
        """Write the positions, and returns the fragments."""
        if not found:
            return []
        sink = self.provider.create_delete_sink(self.rewrite, SinkId(order))
        try:
            for file in sorted(found):
                sink.delete_rows(self.files[file], pa.concat_arrays(found[file]))
            return sink.finish()
        except BaseException:
            sink.abort()
            raise


@dataclass(frozen=True)
class _ResolveTask:
    """Writes a task's rows that no base row beats, and what they supersede."""

    rows: RewriteTask
    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    merge: BucketMerge

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        merged = list(self.merge.merged(self.merge.rows(pages)))
        if not merged:
            return []
        winners = pa.concat_tables([found.winners for _, found in merged])
        kept = [*self.merge.live(winners).to_batches(), *self.merge.tombstones(winners).to_batches()]
        losing = [(found.file, found.lost) for _, found in merged if found.file is not None and len(found.lost)]
        deletes = _DeleteTask(self.provider, self.rewrite, {file.path: file for file, _ in losing})
        deleted = deletes.write(order, {file.path: [pa.array(lost)] for file, lost in losing})
        written = self.rows(order, kept)
        return Written([bucket for bucket, _ in merged], written, deleted).results()
