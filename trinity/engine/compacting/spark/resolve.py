"""The rows of a resolve, by Spark."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow
from trinity.engine.compacting.bucket_merge import BucketMerge, Written
from trinity.engine.compacting.compactor import DeleteTask, Resolve
from trinity.engine.compacting.rewrite_task import RewriteTask
from trinity.engine.compacting.spark.by_column import rewritten
from trinity.engine.compacting.spark.driver_merge import by_bucket, log_winners_in_process, run_in_threads
from trinity.engine.compacting.spark.rows import distributed, in_buckets, with_tombstones
from trinity.engine.executes import NotLocal
from trinity.engine.reading.files import are_own, may_share_keys, well_bucketed
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.reading.spark.executor import SparkExecutor
from trinity.engine.reading.spark.fold_by_column import later_versions, union_with_base
from trinity.engine.reading.spark.scan import plain_scan
from trinity.engine.writing.spark.run_sinks import run_on_spark
from trinity.hidden import FILE_TOKEN, POSITION
from trinity.merge.properties import MergeEngine
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.fold import beats
from trinity.spark.remote import parallelism
from trinity.spark_names import DataFrame, F
from trinity.spi import DataFile, PageSinkProvider, RewriteTableHandle, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN_BYTES: Final = 32 * 1024 * 1024
"""Bytes of replaced files for each file of a new run."""
_SCAN_BYTES: Final = 64 * 1024 * 1024
"""Bytes of base files for each task that looks at their keys, if there are cores for so many tasks."""
_MOST_TASKS: Final = 64


def write_resolve(spark: SparkSession, resolve: Resolve) -> tuple[list[bytes], list[bytes]]:
    """Execute a resolve; return (fragments of run and sidecar, fragments of superseded positions) (R1)."""
    work: _Resolve = (_ByColumn if resolve.fold.spec.by_column else _WholeRows)(spark, resolve)
    fragments, deletes = work.write()
    if (positions := work.superseded_rows()) is not None:
        task = _PositionTask(DeleteTask(resolve.sinks, resolve.rewrite, _tokens(work.unbucketed_files)[1]))
        deletes += run_on_spark(task, positions.repartition(min(_MOST_TASKS, len(work.unbucketed_files)), FILE_TOKEN))
    return fragments, deletes


@dataclass(frozen=True)
class _Resolve(ABC):
    """The execution of a resolve by Spark."""

    spark: SparkSession
    resolve: Resolve

    @property
    def fold(self) -> FoldPlan:
        """The plan of the resolve's fold."""
        return self.resolve.fold

    @property
    def splits(self) -> SplitSource:
        """The version."""
        return self.fold.splits

    @property
    def spec(self) -> MergeSpec:
        """The merge rules of the table."""
        return self.fold.spec

    @cached_property
    def rewrite_task(self) -> RewriteTask:
        """The task that writes run and sidecar."""
        return self.resolve.rewrite_task

    @property
    @abstractmethod
    def unbucketed_files(self) -> list[DataFile]:
        """The kept files whose superseded rows :meth:`superseded_rows` finds."""

    @abstractmethod
    def write(self) -> tuple[list[bytes], list[bytes]]:
        """Write run and sidecar; return their fragments, and those of superseded positions found meanwhile."""

    @abstractmethod
    def superseded_rows(self) -> DataFrame | None:
        """Return file and position of each superseded row of ``unbucketed_files``; None when there can be none."""

    @property
    def tasks(self) -> int | None:
        """The number of tasks that write the run; None where the run has files by partition."""
        if self.splits.definition.partition_by:
            return None
        return max(1, math.ceil(sum(f.size for f in self.resolve.replaced) / _RUN_BYTES))

    def with_row_location(self, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
        """Return key and ordering columns of a scan, with file and position of each row, under the alias ``b``."""
        position = f"{_tokens(files)[0]} AS {FILE_TOKEN}", f"_metadata.row_index AS {POSITION}"
        return self.key_and_ordering(rows, *position).alias("b")

    def key_and_ordering(self, rows: DataFrame, *further: str) -> DataFrame:
        """Return the key and ordering columns of rows, and further columns."""
        names = dict.fromkeys((*self.spec.key, *self.spec.ordering))
        return rows.selectExpr(*map(quoted, names), *further)


class _ByColumn(_Resolve):
    """A resolve by column: base rows whose keys are in log or sidecar are folded with these, and deleted."""

    @cached_property
    def unbucketed_files(self) -> list[DataFile]:
        return may_share_keys(self.fold.base, [*self.fold.log, *self.splits.sidecar], self.splits.definition)

    def write(self) -> tuple[list[bytes], list[bytes]]:
        splits, spec, replaced, runs = self.splits, self.spec, self.resolve.replaced, self.fold.runs
        base = self._touched(plain_scan(self.spark, self.unbucketed_files, splits.storage))
        if runs:
            base = base.unionByName(plain_scan(self.spark, runs, splits.storage))

        def run(rows: DataFrame, in_log: bool = False) -> list[bytes]:
            rows = distributed(rows, splits, spec, replaced, self.tasks)
            return run_on_spark(replace(self.rewrite_task, in_log=in_log), rows)

        rows = union_with_base(base, self._later, splits, spec)
        return rewritten(rows, splits, spec, run, self.resolve.retention), []

    def superseded_rows(self) -> DataFrame | None:
        if not self.unbucketed_files:
            return None
        here = self.with_row_location(
            plain_scan(self.spark, self.unbucketed_files, self.splits.storage), self.unbucketed_files
        )
        return self._touched(here).select(FILE_TOKEN, POSITION)

    @cached_property
    def _later(self) -> DataFrame:
        return later_versions(self.spark, self.splits, self.spec)

    def _touched(self, rows: DataFrame) -> DataFrame:
        keys = self._later.select(*map(quoted, self.spec.key))
        return rows.join(keys, list(self.spec.key), "left_semi")


class _WholeRows(_Resolve):
    """A resolve of an engine that keeps rows whole.

    Base files in buckets are merged with the log by bucket: the task that writes a bucket's part of the run finds
    all superseded rows of the bucket's file. For other base files a second job collects the superseded rows by file.
    """

    @cached_property
    def buckets(self) -> int | None:
        """The number of buckets of the kept base; None when tasks cannot merge by bucket."""
        files = [f for f in self.fold.base if f.bucket]
        return well_bucketed(files, self.splits.definition) if are_own(files) else None

    @cached_property
    def touched(self) -> list[DataFile]:
        """The kept files that may hold a key of the log."""
        return may_share_keys(self.fold.base, self.fold.log, self.splits.definition)

    @cached_property
    def bucketed_files(self) -> list[DataFile]:
        """The touched files in buckets; none when tasks cannot merge by bucket."""
        return [f for f in self.touched if f.bucket and self.buckets]

    @cached_property
    def unbucketed_files(self) -> list[DataFile]:
        """The touched files that are not in ``bucketed_files``."""
        return [f for f in self.touched if not (f.bucket and self.buckets)]

    def write(self) -> tuple[list[bytes], list[bytes]]:
        """Write live rows to the run, tombstones to the sidecar, and superseded positions of files in buckets."""
        if not self.bucketed_files:
            newest = with_tombstones(self.winners_over_unbucketed_files, self.resolve.retention)
            rows = distributed(newest, self.splits, self.spec, self.resolve.replaced, self.tasks)
            return run_on_spark(self.rewrite_task, rows), []
        base = {f.bucket.index: f for f in self.bucketed_files if f.bucket}
        merge = BucketMerge(self.spec, self.splits.storage, base, self.resolve.retention)
        task = _ResolveTask(self.rewrite_task, self.resolve.sinks, self.resolve.rewrite, merge)
        winners = None if self.unbucketed_files else log_winners_in_process(self.spark, self.fold)
        if winners is None or isinstance(winners, NotLocal):
            written = Written.of(run_on_spark(task, self.in_buckets))
        else:
            written = Written.of(run_in_threads(task, self._by_task(winners), parallelism(self.spark)))
        return [*written.rows], [*written.deletes]

    @property
    def winners_over_unbucketed_files(self) -> DataFrame:
        """The log's winners that no row of the unbucketed base files beats."""
        spec = self.spec
        compares = bool(spec.ordering) or spec.engine is MergeEngine.FIRST_ROW
        if not (compares and self.unbucketed_files):
            return self.newest
        other = self.key_and_ordering(plain_scan(self.spark, self.unbucketed_files, self.splits.storage)).alias("b")
        beaten = F.expr(f"{self._same_key} AND {beats(spec, 'b', 'l')}")
        return self.newest.alias("l").join(other, beaten, "left_anti")

    @property
    def in_buckets(self) -> DataFrame:
        """The same winners by bucket, in one task for each useful size of base files, or for each file of the run."""
        assert self.buckets
        rows = self.winners_over_unbucketed_files
        if self.unbucketed_files:  # the join may have distributed the rows in another way
            rows = rows.repartition(self.buckets, *map(quoted, self.spec.key))
        return in_buckets(rows, self.spec, self.buckets).coalesce(self.task_count)

    @property
    def task_count(self) -> int:
        """The number of tasks that merge base files in buckets."""
        wide = math.ceil(sum(f.size for f in self.bucketed_files) / _SCAN_BYTES)
        return max(self.tasks or 1, min(parallelism(self.spark), wide))

    def _by_task(self, winners: pa.Table) -> dict[int, pa.Table]:
        assert self.buckets
        task_count, grouped = self.task_count, dict[int, list[pa.Table]]()
        for bucket, rows in by_bucket(winners, self.spec.key, self.buckets).items():
            grouped.setdefault(bucket % task_count, []).append(rows)
        return {order: pa.concat_tables(tables) for order, tables in grouped.items()}

    def superseded_rows(self) -> DataFrame | None:
        if self.spec.engine is MergeEngine.FIRST_ROW or not self.unbucketed_files:
            return None
        here = self.with_row_location(
            plain_scan(self.spark, self.unbucketed_files, self.splits.storage), self.unbucketed_files
        )
        gone = f"{self._same_key} AND NOT {beats(self.spec, 'b', 'l')}"
        lost = here.join(self.key_and_ordering(self.newest).alias("l"), F.expr(gone))
        return lost.selectExpr(f"b.{FILE_TOKEN}", f"b.{POSITION}")

    @cached_property
    def newest(self) -> DataFrame:
        """The winning version of each key of log, sidecar and folded runs."""
        return SparkExecutor(self.spark).log_winners(self.fold)

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"b.{quoted(k)} = l.{quoted(k)}" for k in self.spec.key)


def _tokens(files: Sequence[DataFile]) -> tuple[str, dict[Any, DataFile]]:
    """Return Spark SQL of a value that identifies a scanned row's file, and the files by this value.

    It is the file's size where all sizes differ, else its name.
    """
    by_size = {f.size: f for f in files}
    if len(by_size) == len(files):  # a number, as a name would be copied for each row
        return "_metadata.file_size", by_size
    return "_metadata.file_name", {f.name: f for f in files}


@dataclass(frozen=True)
class _PositionTask:
    """The task that writes positions of deleted rows, from pages of file and position."""

    write: DeleteTask

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        found: dict[Any, list[pa.Array]] = {}
        for page in pages:
            _add_positions(page, found)
        return self.write.write(order, found)


def _add_positions(page: pa.RecordBatch, found: dict[Any, list[pa.Array]]) -> None:
    """Add a page's positions to ``found``, by file."""
    files, positions = page.column(FILE_TOKEN), page.column(POSITION)
    for file in files.drop_null().unique():
        found.setdefault(file.as_py(), []).append(positions.filter(pc.equal(files, file)))


@dataclass(frozen=True)
class _ResolveTask:
    """The task that merges buckets, and writes winners that no base row beats, and positions that they supersede."""

    rows: RewriteTask
    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    merge: BucketMerge

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        merged = list(self.merge.merged(self.merge.rows(pages)))
        if not merged:
            return []
        winners = pa.concat_tables([found.winners for _, found in merged])
        kept = [*self.merge.live(winners), *self.merge.tombstones(winners).to_batches()]
        losing = [(found.file, found.lost) for _, found in merged if found.file is not None and len(found.lost)]
        deletes = DeleteTask(self.provider, self.rewrite, {file.path: file for file, _ in losing})
        deleted = deletes.write(order, {file.path: [as_arrow(lost)] for file, lost in losing})
        written = self.rows(order, kept)
        return Written([bucket for bucket, _ in merged], written, deleted).results()
