"""The engine's part of a resolve, by hand, for tests of adapters on tables of ``id`` and ``v`` (R1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from trinity.spi import CommitResult, Connector, SinkId, TableHandle, Tier

__all__ = ["BASE", "resolve"]

BASE = [{"id": n, "v": "a"} for n in (1, 2, 3)]
"""The rows of a base."""


def resolve(
    lake: Connector, table: TableHandle, rows: list[dict[str, Any]], positions: list[int]
) -> Callable[[], CommitResult]:
    """The log into a run of some rows, and rows of the one file in a bucket deleted; the call commits it."""
    splits = lake.metadata.get_splits(table)
    log = [f for f in splits.files if f.tier is Tier.LOG]
    kept = [f for f in splits.files if f.tier is Tier.BASE]
    rewrite = lake.metadata.begin_resolve(dataclasses.replace(table, version=splits.version), log, kept)
    folded = max(f.commit or 0 for f in splits.files)
    run = lake.sinks.create_page_sink(rewrite.target, SinkId(0, Tier.BASE, None, folded))
    run.append_page(pa.RecordBatch.from_pylist(rows, schema=rewrite.target.storage))
    fragments = run.finish()
    sink = lake.sinks.create_delete_sink(rewrite, SinkId())
    [base] = [f for f in kept if f.bucket]
    sink.delete_rows(base, pa.array(positions, pa.int64()))
    deletes = sink.finish()
    return lambda: lake.metadata.finish_resolve(rewrite, fragments, deletes)
