"""Resolve: the log becomes deletes by position and a run of rows; no base file is rewritten (R1).

The run is part of the base: live rows whose keys have no other row in the base that is not deleted. It has the log's
winners or, where the engine folds by column, the fold of base rows and log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from trinity.engine.compacting.compactor import Compactor, Resolve
from trinity.engine.executes import NotLocal
from trinity.engine.reading.files import tiers, well_bucketed
from trinity.engine.reading.plan import FoldPlan
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
)

_GROWTH: Final = 2
"""A run is folded again up to this ratio of its rows to the log's: so a row is written a few times at most."""


def resolve(
    compactor: Compactor, connector: Connector, table: TableHandle, splits: SplitSource, spec: MergeSpec
) -> CommitResult | NotLocal | None:
    """Resolve the log of the pinned version; commits that come meanwhile stay in it.

    Returns:
        the commit, ``skipped`` when there is no log; None when there is no base beside which a run could stand, or all
            the sidecar keeps row versions, so that it takes a full compaction.

    Raises:
        TrinityError: NOT_SUPPORTED when the connector cannot delete rows by position.
    """
    fold = _fold(splits, spec)
    rewrite = connector.metadata.begin_resolve(table, [*fold.log, *fold.runs], fold.base)
    if not fold.log:
        return CommitResult(splits.version, skipped=True)
    if not fold.base or spec.keeps_history:
        return None
    written = compactor.resolve(Resolve(fold, connector.sinks, rewrite))
    return written if isinstance(written, NotLocal) else connector.metadata.finish_resolve(rewrite, *written)


def _fold(splits: SplitSource, spec: MergeSpec) -> FoldPlan:
    """Return the plan of what is folded: the log, and small runs of earlier resolves; other base files stay."""
    base, log = tiers(splits.files)
    rows, runs = sum(f.live_rows for f in log), list[DataFile]()
    # (of a partitioned table no base file has a bucket)
    unbucketed = [f for f in base if not f.bucket and not splits.definition.partition_by]
    for run in sorted(unbucketed, key=lambda f: f.live_rows):
        if run.live_rows > _GROWTH * rows:
            break
        runs.append(run)
        rows += run.live_rows
    folded = {f.path for f in runs}
    kept = [f for f in base if f.path not in folded]
    return FoldPlan(splits, spec, kept, runs, well_bucketed([f for f in kept if f.bucket], splits.definition))


@dataclass(frozen=True)
class DeleteTask:
    """Writes positions of deleted rows of files; a file is identified by any key."""

    provider: PageSinkProvider
    rewrite: RewriteTableHandle
    files: Mapping[Any, DataFile]

    def write(self, order: int, found: Mapping[Any, list[pa.Array]]) -> list[bytes]:
        """Write the positions in each file, and return the fragments."""
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
