"""The compactor in this process: no job, and no JVM.

First the rows that stay are found, by key, ordering columns and marks of deletion. Then they are read once, each into
its part, and each part is sorted and written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from trinity.arrays import as_arrow
from trinity.engine.compacting.bucket_merge import BucketMerge, BucketTask, in_order
from trinity.engine.compacting.compactor import DeleteTask, Resolve
from trinity.engine.compacting.local.by_column import ColumnRewrite
from trinity.engine.compacting.local.parts import PartLayout, Parts
from trinity.engine.compacting.local.winners import LogFiles, LogWinners, RetainedRows, stored_schema
from trinity.engine.compacting.rewrite_task import RewriteTask
from trinity.engine.executes import NotLocal
from trinity.engine.reading.files import may_share_keys, order_is_lost, why_not_files
from trinity.engine.reading.plan import (
    FoldPlan,
    why_not_by_column,
    why_not_by_position,
)
from trinity.limits import Limit
from trinity.merge.sidecar import Retention
from trinity.spi import DataFile, SplitSource
from trinity.storage.parquet_files import rows_in

_T = TypeVar("_T")
_R = TypeVar("_R")
_NOTHING: Final = np.empty(0, np.int64)
LOG_ROWS_AT_ONCE: Final = Limit(2_000_000)
"""Most rows of the log whose key and ordering columns are in memory at once: some hundred MB."""
_FILES_AT_ONCE: Final = 8
"""Files whose key and ordering columns are read in parallel: opening dominates the cost of a small file."""


class LocalCompactor:
    """The :class:`~trinity.engine.compacting.compactor.Compactor` that runs in this process."""

    def fold(
        self, fold: FoldPlan, write: RewriteTask, buckets: int | None, retention: Retention
    ) -> list[bytes] | NotLocal:
        if fold.spec.by_column:
            return _why_not_folded(fold) or _rewritten(ColumnRewrite(fold, buckets or 1, retention), write)
        if (why := _why_not(fold)) is not None:
            return why
        spec, storage = fold.spec, fold.splits.storage
        by_bucket = buckets is not None and fold.in_buckets_by_arrow(buckets)
        base = {f.bucket.index: f for f in fold.base if f.bucket} if by_bucket else {}
        # a merge by bucket needs tombstones, to drop the base rows that they delete
        found = _find_winners(fold, [] if by_bucket else fold.base, deleted_too=by_bucket or spec.keeps_tombstones)
        base_rows = (
            [] if by_bucket else [RetainedRows.all_of(f, lost) for f, lost in zip(fold.base, found.lost, strict=True)]
        )
        stays = [*base_rows, *found.retained]
        layout = PartLayout.of_partitions(fold.splits.files, spec) if buckets is None else PartLayout(spec.key, buckets)
        task = BucketTask(write, BucketMerge(spec, storage, base, retention))
        with _read_into_parts(stays, storage, layout) as parts:
            return _fragments_in_threads(lambda part: task.of_bucket(part, parts.take(part)), sorted({*parts, *base}))

    def fold_log(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        spec = fold.spec
        if (why := why_not_files(fold.splits) if spec.by_column else _why_not(fold)) is not None:
            return why
        if spec.by_column:  # all rows stay, and rows of one key keep their order
            if order_is_lost(fold.splits):
                return NotLocal("another engine has rewritten files of its log (compact('full') folds them here)")
            stays = [RetainedRows.all_of(file) for file in fold.splits.in_arrival_order(fold.log)]
        else:
            stays = [*_find_winners(fold, [], deleted_too=True).retained]
        return self._rewritten_log(fold, [replace(rows, stamped=True) for rows in stays], write, count)

    def _rewritten_log(
        self, fold: FoldPlan, stays: Sequence[RetainedRows], write: RewriteTask, count: int | None
    ) -> list[bytes]:
        spec, storage = fold.spec, fold.splits.storage
        layout = PartLayout.of_partitions(fold.log, spec) if count is None else PartLayout(spec.key, count)

        def write_part(part: int) -> list[bytes]:
            rows = parts.take(part)
            return write(part, in_order(rows, np.arange(len(rows)), spec.key))

        with _read_into_parts(stays, storage, layout, ordered=spec.by_column) as parts:
            return _fragments_in_threads(write_part, list(parts))

    def concatenate(
        self, splits: SplitSource, groups: Sequence[Sequence[DataFile]], write: RewriteTask
    ) -> list[bytes] | NotLocal:
        if (why := why_not_files(splits)) is not None:
            return why

        def pages(files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
            for file in files:
                yield from RetainedRows.all_of(file).pages(splits.storage)

        return _fragments_in_threads(lambda group: write(group, pages(groups[group])), range(len(groups)))

    def winners_of_others(self, fold: FoldPlan, write: RewriteTask, count: int | None) -> list[bytes] | NotLocal:
        if (why := _why_not(fold)) is not None:
            return why
        if [(f.name, f.type) for f in fold.splits.storage] != [(f.name, f.type) for f in write.target.storage]:
            return NotLocal("fields within its columns have other names in files")
        found = _find_winners(fold, [], deleted_too=True, keyless_too=True)
        return self._rewritten_log(fold, [*found.retained], write, count)

    def resolve(self, work: Resolve) -> tuple[list[bytes], list[bytes]] | NotLocal:
        fold, spec = work.fold, work.fold.spec
        if spec.by_column:
            return _resolved_by_column(work)
        if (why := _why_not(fold)) is not None:
            return why
        touched = may_share_keys(fold.base, fold.log, fold.splits.definition)
        found = _find_winners(fold, touched, deleted_too=spec.keeps_tombstones)
        losing = {f.path: [as_arrow(lost)] for f, lost in zip(touched, found.lost, strict=True) if len(lost)}
        storage = fold.splits.storage
        partitioned = fold.splits.definition.partition_by
        layout = PartLayout.of_partitions(work.replaced, spec) if partitioned else PartLayout(spec.key, 1)
        task = BucketTask(work.rewrite_task, BucketMerge(spec, storage, {}, work.retention))
        deletes = DeleteTask(work.sinks, work.rewrite, {file.path: file for file in touched})
        with _read_into_parts(found.retained, storage, layout) as parts:
            rows = _fragments_in_threads(lambda part: task.of_bucket(part, parts.take(part)), list(parts))
        return rows, deletes.write(0, losing)


def _resolved_by_column(work: Resolve) -> tuple[list[bytes], list[bytes]] | NotLocal:
    fold = work.fold
    if (why := _why_not_folded(fold)) is not None:
        return why
    rewrite = ColumnRewrite(fold, 1, work.retention, stays=True)
    rows = _rewritten(rewrite, work.rewrite_task)
    deletes = DeleteTask(work.sinks, work.rewrite, {file.path: file for file in rewrite.touched})
    return rows, deletes.write(0, rewrite.lost)


def _rewritten(rewrite: ColumnRewrite, write: RewriteTask) -> list[bytes]:
    with rewrite.lay_out() as parts:
        return _fragments_in_threads(lambda part: rewrite.write(parts, part, write), list(parts))


def _why_not_folded(fold: FoldPlan) -> NotLocal | None:
    return why_not_files(fold.splits) or why_not_by_column(fold.splits, fold.spec, fold.log)


def _why_not(fold: FoldPlan) -> NotLocal | None:
    return why_not_by_position(fold.splits, fold.spec, fold.base, log=())


class _FoldOutcome(NamedTuple):
    """The outcome of a fold: the winners by file, and for each searched base file the ascending positions of losers."""

    retained: Sequence[RetainedRows]
    lost: Sequence[np.ndarray]


def _find_winners(
    fold: FoldPlan, base: Sequence[DataFile], *, deleted_too: bool, keyless_too: bool = False
) -> _FoldOutcome:
    """Find the rows that win: in a large log for a share of the keys at a time, so that memory holds them.

    Args:
        fold: the files.
        base: base files that winners are compared with here.
        deleted_too: False to leave out winners that delete their keys.
        keyless_too: True to keep the rows that have a NULL in their key.
    """
    files, key = LogFiles(fold), fold.spec.key
    count = max(1, math.ceil(sum(map(rows_in, fold.log)) / LOG_ROWS_AT_ONCE.value))
    shares, lost = PartLayout(key, count), list[list[np.ndarray]]()
    with Parts(files.schema) as parts:

        def read(number: int) -> None:
            for page in files.rows_of(number):
                parts.add(page, shares.of_rows(page))
                if keyless_too:
                    files.retain_keyless(page)

        _map_in_threads(read, range(len(files.files)), _FILES_AT_ONCE)
        for share in range(count):
            winners = LogWinners.of(fold, parts.take(share))
            losing = _map_in_threads(winners.losers, base)
            winners.keep_in(
                files, np.concatenate([_NOTHING, *(numbers for _, numbers in losing)]), deleted_too=deleted_too
            )
            lost.append([positions for positions, _ in losing])
            del winners, losing
            pa.default_memory_pool().release_unused()  # unused memory would count against later steps
    return _FoldOutcome(files.retained(), [np.sort(np.concatenate(shares)) for shares in zip(*lost, strict=True)])


@contextmanager
def _read_into_parts(
    stays: Sequence[RetainedRows], storage: pa.Schema, layout: PartLayout, *, ordered: bool = False
) -> Iterator[Parts]:
    """Read the rows that stay, each into its part; several files at a time unless the rows must stay in order."""
    with Parts(stored_schema(storage)) as parts:

        def read(rows: RetainedRows) -> None:
            for page in rows.pages(storage):
                parts.add(page, layout.parts(rows.file, page))

        if ordered:
            for rows in stays:
                read(rows)
        else:
            _map_in_threads(read, stays)
        pa.default_memory_pool().release_unused()
        yield parts


def _map_in_threads(work: Callable[[_T], _R], items: Iterable[_T], threads: int | None = None) -> list[_R]:
    with ThreadPoolExecutor(threads or pa.cpu_count()) as pool:
        return list(pool.map(work, items))


def _fragments_in_threads(work: Callable[[int], list[bytes]], numbers: Iterable[int]) -> list[bytes]:
    return [fragment for fragments in _map_in_threads(work, numbers) for fragment in fragments]
