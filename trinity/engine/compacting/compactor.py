"""The protocol of compactors, of which there are two: this process, and Spark. They write files, and commit nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from trinity.engine.compacting.rewrite_task import RewriteTask, sidecar_target
from trinity.engine.executes import NotLocal
from trinity.engine.reading.plan import FoldPlan
from trinity.hidden import ARRIVAL, SINCE
from trinity.merge.sidecar import Retention
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, PageSinkProvider, RewriteTableHandle, SinkId, SplitSource, Tier, WriteTarget


def highest_commit(files: Sequence[DataFile]) -> int:
    """Return the commit number of the files that a compaction of ``files`` writes (K6)."""
    return max(f.commit or 0 for f in files)


def sidecar_of(rewrite: RewriteTableHandle, spec: MergeSpec) -> WriteTarget | None:
    """Return the target of a rewrite's sidecar, with the time of each row's entry; None for a table without sidecar.

    For an engine that folds by column its rows are whole row versions, with their order. Columns are nullable, since a
    row that a group's -D removes keeps only its thresholds (D5).
    """
    if not spec.may_need_sidecar:
        return None
    storage, further = rewrite.target.storage, [pa.field(SINCE, pa.int64())]
    if spec.by_column:
        columns = [f.with_nullable(True) for f in storage]
        further.append(pa.field(ARRIVAL, pa.int64()))
    else:
        columns = [f for f in storage if spec.tombstone_rows or f.name in spec.sidecar_columns]
    return sidecar_target(rewrite.target, f"{rewrite.table.location}/_trinity", pa.schema([*columns, *further]))


@dataclass(frozen=True)
class Resolve:
    """A resolve that has begun. It folds log, sidecar and runs; other base files stay."""

    fold: FoldPlan
    sinks: PageSinkProvider
    rewrite: RewriteTableHandle
    retention: Retention

    @property
    def replaced(self) -> list[DataFile]:
        """The files that are removed: log and runs."""
        return [*self.fold.log, *self.fold.runs]

    @property
    def rewrite_task(self) -> RewriteTask:
        """The task that writes live rows to the new run, and others to the sidecar."""
        sidecar, commit = sidecar_of(self.rewrite, self.fold.spec), highest_commit(self.fold.splits.files)
        return RewriteTask(self.sinks, self.rewrite.target, Tier.BASE, commit, None, sidecar)


@dataclass(frozen=True)
class DeleteTask:
    """The task that writes positions of deleted rows. ``files`` has the files by any keys that identify them."""

    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    files: Mapping[Any, DataFile]

    def write(self, order: int, found: Mapping[Any, list[pa.Array]]) -> list[bytes]:
        """Write deleted positions, given by the key of their file, and return the fragments."""
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


class Compactor(Protocol):
    """A compactor of rows. Each method returns fragments, or why this process leaves the work to Spark."""

    def fold(
        self, fold: FoldPlan, write: RewriteTask, buckets: int | None, retention: Retention
    ) -> list[bytes] | NotLocal:
        """Fold base, log and sidecar, sorted by key, into as many buckets; None for files by partition.

        The retention says which tombstones the new sidecar has.
        """
        ...

    def fold_log(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        """Fold a part of the log, tombstones included, into ``count`` files; None for files by partition.

        For an engine that folds by column all row versions stay, in their order.
        """
        ...

    def concatenate(
        self, splits: SplitSource, groups: Sequence[Sequence[DataFile]], write: RewriteTask
    ) -> list[bytes] | NotLocal:
        """Write the rows of each group of a plain table's files into one file, in their order."""
        ...

    def winners_of_others(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        """Fold an external table. Arguments as for :meth:`fold_log`; rows with a NULL in their key stay (K1)."""
        ...

    def resolve(self, work: Resolve) -> tuple[list[bytes], list[bytes]] | NotLocal:
        """Return (fragments of a run and its sidecar, fragments of the positions that these supersede) (R1)."""
        ...
