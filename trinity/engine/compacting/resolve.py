"""Resolve: the log becomes deletes by position and a run of its winners; no base file is rewritten (R1).

The run is part of the base: live rows, and of no key that another base file has a row of that is not deleted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trinity.engine.appending.run_sinks import RewriteTask, run_on_spark, sidecar_target
from trinity.engine.compacting.rewriting import distributed, highest_commit, sidecar_schema, with_tombstones
from trinity.engine.reading.merged_read import newest_versions, with_key
from trinity.engine.reading.pruning import may_share_keys
from trinity.engine.reading.scan import bucketed_scan, log_scan, plain_scan, tiers, well_bucketed
from trinity.errors import TrinityError
from trinity.merge.engine import MergeEngine
from trinity.merge.fold import beats
from trinity.merge.quoting import quoted
from trinity.merge.spec import MergeSpec
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["resolve"]

_RUN_BYTES: Final = 32 * 1024 * 1024
"""Bytes of log for each file of a run."""
_GROWTH: Final = 2
"""A run is folded with the log while it has at most so many times its rows: each row is written a few times at most."""
_MOST_TASKS: Final = 64
_FILE: Final = "_trinity_file"
_PLACE: Final = "_trinity_place"


def resolve(
    spark: SparkSession, connector: Connector, table: TableHandle, splits: SplitSource, spec: MergeSpec
) -> CommitResult | None:
    """Resolves the log of the pinned version; commits that come meanwhile stay in it.

    Returns:
        the commit, ``skipped`` when there is no log; None when there is no base beside which a run could stand.

    Raises:
        TrinityError: NOT_SUPPORTED when the connector cannot delete rows by position, or for an engine that folds by
            column.
    """
    if spec.by_column:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"Table '{table.full_name}' folds by column (merge-engine={spec.engine.value}), which compact('resolve') "
            "does not know yet; use compact(full=True).",
        )
    parts = _Parts.of(splits)
    rewrite = connector.metadata.begin_resolve(table, parts.replaced, parts.kept)
    if not parts.log:
        return CommitResult(splits.version, skipped=True)
    if not parts.kept:
        return None
    work = _Resolve(spark, splits, spec, parts)
    fragments = run_on_spark(work.task(connector, rewrite), work.rows())
    positions = work.superseded()
    deletes = [] if positions is None else _deleted(positions, connector.sinks, rewrite)
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
class _Resolve:
    """The rows of a resolve."""

    spark: SparkSession
    splits: SplitSource
    spec: MergeSpec
    parts: _Parts

    def task(self, connector: Connector, rewrite: RewriteTableHandle) -> RewriteTask:
        """Writes the rows: live ones to the run, tombstones to the sidecar."""
        storage = sidecar_schema(rewrite.target.storage, self.spec)
        aside = sidecar_target(rewrite.target, f"{rewrite.table.location}/_trinity", storage)
        return RewriteTask(
            connector.sinks,
            rewrite.target,
            Tier.BASE,
            highest_commit(self.splits.files),
            None,
            aside if self.spec.keeps_tombstones else None,
        )

    def rows(self) -> DataFrame:
        """The newest versions that no base row beats, as they are written."""
        rows = self.newest
        if self.spec.ordering or self.spec.engine is MergeEngine.FIRST_ROW:
            for part in self._base():
                found = f"{self._same_key} AND {beats(self.spec, 'b', 'l')}"
                rows = rows.alias("l").join(self._narrow(part).alias("b"), F.expr(found), "left_anti")
        size = sum(f.size for f in self.parts.replaced)
        tasks = None if self.splits.definition.partition_by else max(1, math.ceil(size / _RUN_BYTES))
        return distributed(with_tombstones(rows, self.spec), self.splits, self.spec, self.parts.replaced, tasks)

    def superseded(self) -> DataFrame | None:
        """File and place of each base row that a newer version takes the place of; None when there can be none."""
        if self.spec.engine is MergeEngine.FIRST_ROW:
            return None
        found = []
        for part in self._base():
            here = self._narrow(part, f"_metadata.file_name AS {_FILE}", f"_metadata.row_index AS {_PLACE}")
            gone = f"{self._same_key} AND NOT {beats(self.spec, 'b', 'l')}"
            met = here.alias("b").join(self._narrow(self.newest).alias("l"), F.expr(gone))
            found.append(met.selectExpr(f"b.{_FILE}", f"b.{_PLACE}"))
        return reduce(DataFrame.unionAll, found) if found else None

    @cached_property
    def newest(self) -> DataFrame:
        """The winning version of each key of log, sidecar and folded runs."""
        splits, spec, parts = self.splits, self.spec, self.parts
        versions = log_scan(self.spark, splits, spec, parts.log, splits.sidecar, runs=parts.runs)
        versions = with_key(versions, splits, spec)
        if self._buckets:
            versions = versions.repartition(self._buckets, *map(quoted, spec.key))
        return newest_versions(versions, spec, splits.storage)

    @cached_property
    def _buckets(self) -> int | None:
        return well_bucketed([f for f in self.parts.kept if f.bucket], self.splits.definition)

    def _base(self) -> Iterator[DataFrame]:
        """The kept base files that may hold a key of the log: those in buckets, which are not exchanged, and others."""
        files = may_share_keys(self.parts.kept, self.parts.log, self.splits.definition)
        inside = [f for f in files if f.bucket and self._buckets]
        beside = [f for f in files if not (f.bucket and self._buckets)]
        if inside and self._buckets:
            yield bucketed_scan(self.spark, inside, self.splits.storage, self.spec.key, self._buckets)
        if beside:
            yield plain_scan(self.spark, beside, self.splits.storage)

    def _narrow(self, rows: DataFrame, *further: str) -> DataFrame:
        names = dict.fromkeys((*self.spec.key, *self.spec.ordering))
        return rows.selectExpr(*map(quoted, names), *further)

    @property
    def _same_key(self) -> str:
        return " AND ".join(f"b.{quoted(k)} = l.{quoted(k)}" for k in self.spec.key)


def _deleted(positions: DataFrame, sinks: PageSinkProvider, rewrite: RewriteTableHandle) -> list[bytes]:
    """Writes down the positions, those of one file in one task, and returns the fragments."""
    task = _DeleteTask(sinks, rewrite, {f.name: f for f in rewrite.kept})
    return run_on_spark(task, positions.repartition(min(_MOST_TASKS, len(rewrite.kept)), _FILE))


@dataclass(frozen=True)
class _DeleteTask:
    """Writes one task's positions of deleted rows."""

    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    files: Mapping[str, DataFile]

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        found: defaultdict[str, list[pa.Array]] = defaultdict(list)
        for page in pages:
            names, places = page.column(_FILE), page.column(_PLACE)
            for name in names.unique().to_pylist():
                found[name].append(places.filter(pc.equal(names, name)))
        if not found:
            return []
        sink = self.provider.create_delete_sink(self.rewrite, SinkId(order))
        try:
            for name in sorted(found):
                sink.delete_rows(self.files[name], pa.concat_arrays(found[name]))
            return sink.finish()
        except BaseException:
            sink.abort()
            raise
