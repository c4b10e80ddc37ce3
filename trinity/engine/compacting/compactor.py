"""What rewrites the rows of a compaction: this process, or Spark. It writes files, and commits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from trinity.engine.compacting.rewriting import highest_commit
from trinity.engine.not_local import NotLocal
from trinity.engine.reading.plan import FoldPlan
from trinity.engine.writing.run_sinks import RewriteTask, sidecar_target
from trinity.spi import DataFile, PageSinkProvider, RewriteTableHandle, SplitSource, Tier

__all__ = ["Compactor", "Resolve"]


@dataclass(frozen=True)
class Resolve:
    """A resolve that has begun.

    Attributes:
        fold: folds log, sidecar and runs; its base files stay.
        sinks: make the sinks.
        rewrite: the connector's handle.
    """

    fold: FoldPlan
    sinks: PageSinkProvider
    rewrite: RewriteTableHandle

    @property
    def replaced(self) -> list[DataFile]:
        """The files that go."""
        return [*self.fold.log, *self.fold.runs]

    def rewrite_task(self, sidecar_columns: pa.Schema | None) -> RewriteTask:
        """Return what writes live rows to the run, and others to a sidecar of some columns; None for no sidecar."""
        target = self.rewrite.target
        sidecar = (
            None
            if sidecar_columns is None
            else sidecar_target(target, f"{self.rewrite.table.location}/_trinity", sidecar_columns)
        )
        return RewriteTask(self.sinks, target, Tier.BASE, highest_commit(self.fold.splits.files), None, sidecar)


class Compactor(Protocol):
    """Rewrites rows. Each method returns fragments, or why this process leaves the work to Spark."""

    def fold(self, fold: FoldPlan, write: RewriteTask, buckets: int | None) -> list[bytes] | NotLocal:
        """Fold base, log and sidecar, sorted by key.

        Args:
            fold: all files of a version.
            write: writes live rows, and tombstones into the sidecar.
            buckets: how many files the base gets; None for files by partition.
        """
        ...

    def fold_log(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        """Fold some of the log into as many files, tombstones among the rows.

        Of an engine that folds by column all versions stay, in their order.

        Args:
            fold: the files to fold.
            write: writes the rows.
            count: the number of files; None for files by partition.
        """
        ...

    def concatenate(
        self, splits: SplitSource, groups: Sequence[Sequence[DataFile]], write: RewriteTask
    ) -> list[bytes] | NotLocal:
        """Write the rows of each group of a plain table's files into one file, in their order."""
        ...

    def winners_of_others(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        """Fold a table of others. Arguments as for :meth:`fold_log`; rows without a key stay (K1)."""
        ...

    def resolve(self, resolve: Resolve) -> tuple[list[bytes], list[bytes]] | NotLocal:
        """Return the fragments of a run with its sidecar, and those of the positions of what they supersede (R1)."""
        ...
