"""How the files of a version lie: in tiers, and in a compacted base in buckets, a sorted file for each."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from trinity.engine.reading.spark_hash import buckets_of
from trinity.spi import DataFile, TableDefinition, Tier

__all__ = ["bucket_types", "split_buckets_and_runs", "tiers", "well_bucketed", "with_buckets_of"]


def tiers(files: Sequence[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Return (base files, log files)."""
    return [f for f in files if f.tier is Tier.BASE], [f for f in files if f.tier is Tier.LOG]


def bucket_types(definition: TableDefinition) -> str:
    """Return the types by which buckets are hashed now (see :class:`~trinity.spi.Bucket`)."""
    return ";".join(definition.column(k).type for k in definition.primary_key)


def well_bucketed(files: Sequence[DataFile], definition: TableDefinition) -> int | None:
    """Return the number of buckets when there is exactly one file for each non-empty bucket, else None."""
    buckets = [f.bucket for f in files if f.bucket]
    layouts = {(b.count, b.types) for b in buckets}
    if len(buckets) != len(files) or not files or len(layouts) != 1 or buckets[0].types != bucket_types(definition):
        return None
    return buckets[0].count if len({b.index for b in buckets}) == len(buckets) else None


def split_buckets_and_runs(
    base: Sequence[DataFile], definition: TableDefinition
) -> tuple[list[DataFile], list[DataFile]]:
    """Return (files in buckets, the runs that resolves wrote beside them); (all files, none) of a base without buckets.

    No key is in two files. The runs are the smaller part, so a read exchanges them and not the others.
    """
    bucketed, runs = [f for f in base if f.bucket], [f for f in base if not f.bucket]
    larger = sum(f.live_rows for f in bucketed) >= sum(f.live_rows for f in runs)
    if runs and larger and well_bucketed(bucketed, definition):
        return bucketed, runs
    return list(base), []


def with_buckets_of(files: Sequence[DataFile], definition: TableDefinition, keys: pa.Table) -> list[DataFile]:
    """Leave out the files of buckets that have none of some keys.

    Args:
        files: candidates. Those in no bucket, or hashed by earlier types, stay.
        definition: a keyed table.
        keys: its key columns in their logical types.
    """
    types = bucket_types(definition)
    counts = {file.bucket.count for file in files if file.bucket and file.bucket.types == types}
    buckets = {count: set(buckets_of(keys, definition.primary_key, count).tolist()) for count in counts}
    return [f for f in files if not f.bucket or f.bucket.types != types or f.bucket.index in buckets[f.bucket.count]]
