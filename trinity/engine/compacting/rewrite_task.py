"""The task of a compaction: its rows go to base, sidecar and log, in the process or in a task of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.writing.casts import cast_array
from trinity.engine.writing.ingest import Prepare, Route, drain
from trinity.errors import TrinityError
from trinity.hidden import BUCKET, DELETED, LEFT
from trinity.spi import Bucket, PageSink, PageSinkProvider, SinkId, Tier, WriteTarget
from trinity.storage.parquet_sink import OWN_ENDING


@dataclass(frozen=True)
class RewriteTask:
    """A task of a compaction: it writes live rows to ``tier``, and tombstones to the sidecar.

    Attributes:
        commit: highest commit number that was folded (K6).
        buckets: the first bucket; the column :data:`BUCKET` has the number of a row's bucket. None for files without
            buckets.
        sidecar: the target, with its columns, to which tombstones are written; None where they stay among the rows.
        in_log: True when rows marked :data:`LEFT` go to a log file of their own.
    """

    provider: PageSinkProvider
    target: WriteTarget
    tier: Tier
    commit: int
    buckets: Bucket | None = None
    sidecar: WriteTarget | None = None
    in_log: bool = False

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        routes: list[Route] = [self._buckets(order) if self.buckets else (self._sink(order), self._rows)]
        if self.sidecar:
            kept = self.provider.create_page_sink(self.sidecar, SinkId(order, Tier.SIDECAR, None, self.commit))
            routes.append((kept, self._tombstones))
        if self.in_log:
            left = self.provider.create_page_sink(self.target, SinkId(order, Tier.LOG, None, self.commit))
            routes.append((left, self._left))
        return drain(routes, pages)

    def _sink(self, order: int, bucket: Bucket | None = None) -> PageSink:
        return self.provider.create_page_sink(self.target, SinkId(order, self.tier, bucket, self.commit))

    def _buckets(self, order: int) -> Route:
        assert self.buckets is not None
        first = self.buckets
        # bucket sinks prepare pages themselves: they need the column of the bucket, which is not stored
        return _BucketSinks(lambda index: self._sink(order, replace(first, index=index)), self._rows), lambda page: page

    def _rows(self, page: pa.RecordBatch) -> pa.RecordBatch:
        if self.tier is Tier.BASE:
            page = page.filter(pc.invert(page.column(DELETED)))
        if LEFT in page.schema.names:
            page = self._without_left(page)
        return in_storage_form(page, self.target.storage)

    def _without_left(self, page: pa.RecordBatch) -> pa.RecordBatch:
        left = page.column(LEFT)
        if not self.in_log and left.true_count:
            raise TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", "A folded value does not fit into its column.")
        return page.filter(pc.invert(left))

    def _left(self, page: pa.RecordBatch) -> pa.RecordBatch:
        return in_storage_form(page.filter(page.column(LEFT)), self.target.storage)

    def _tombstones(self, page: pa.RecordBatch) -> pa.RecordBatch:
        assert self.sidecar is not None
        return in_storage_form(page.filter(page.column(DELETED)), self.sidecar.storage)


def in_storage_form(page: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a page from Spark in storage form: Spark changes time zones, and names within nested types."""
    present = set(page.schema.names)
    # a column may be missing: stamps of rows that are older than the table's column for stamps
    columns = [page.column(f.name) if f.name in present else pa.nulls(page.num_rows, f.type) for f in schema]
    cast = [cast_array(c, f.type, f.name, "UTC") for c, f in zip(columns, schema, strict=True)]
    return pa.record_batch(cast, schema=schema)


class _BucketSinks(PageSink):
    """The sinks of the buckets of which a task has rows.

    There is one bucket, unless Spark has coalesced several small tasks. Spark does so if an earlier exchange of its own
    has partitioned the rows as the rewrite requires: it may change the number of that exchange's tasks.

    Args:
        made: makes the sink of a bucket.
        prepare: converts a page to the rows and columns to store.
    """

    def __init__(self, made: Callable[[int], PageSink], prepare: Prepare) -> None:
        self._made = made
        self._prepare = prepare
        self._sinks: dict[int, PageSink] = {}

    def append_page(self, page: pa.RecordBatch) -> None:
        buckets = page.column(BUCKET)
        found = sorted(buckets.unique().to_pylist())
        for bucket in found:
            if bucket not in self._sinks:
                self._sinks[bucket] = self._made(bucket)
            part = page if len(found) == 1 else page.filter(pc.equal(buckets, bucket))
            self._sinks[bucket].append_page(self._prepare(part))

    def finish(self) -> list[bytes]:
        return [fragment for sink in self._sinks.values() for fragment in sink.finish()]

    def abort(self) -> None:
        for sink in self._sinks.values():
            sink.abort()


def sidecar_target(target: WriteTarget, folder: str, storage: pa.Schema) -> WriteTarget:
    """Return the target of a rewrite's sidecar files, in a folder whose files other readers do not take for data."""
    return replace(target, folder=folder, storage=storage, statistics=(), partition_by=(), ending=OWN_ENDING)
