"""The files of a version: tiers, who wrote them, the buckets of a compacted base, and those without a wanted row (L9).

In a bucket there is one sorted file. A file is left out where its partition, its bucket or its statistics show that no
row of it can meet a predicate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from trinity.depth import deep_recursion
from trinity.engine.executes import NotLocal
from trinity.engine.reading.predicate import Predicate
from trinity.engine.reading.spark_hash import buckets_of
from trinity.spi import DataFile, Origin, SplitSource, TableDefinition, Tier, parse_type
from trinity.storage.parquet_files import live_rows_in


def tiers(files: Sequence[DataFile]) -> tuple[list[DataFile], list[DataFile]]:
    """Return (base files, log files)."""
    return [f for f in files if f.tier is Tier.BASE], [f for f in files if f.tier is Tier.LOG]


def are_own(files: Iterable[DataFile]) -> bool:
    """Return True for files that Trinity wrote."""
    return all(f.origin is Origin.OWN for f in files)


def why_not_files(splits: SplitSource) -> NotLocal | None:
    """Return why this process cannot read the files of a version one by one; None when it can."""
    if splits.native is None or splits.native.not_local is None:
        return None
    return NotLocal(splits.native.not_local)


def order_is_lost(splits: SplitSource) -> bool:
    """Return True when files alone do not tell the order of rows, and stamps of the rows do (L3)."""
    lost = (Origin.REWRITTEN, Origin.UNSURE)
    return splits.definition.stamped and any(f.tier is Tier.LOG and f.origin in lost for f in splits.files)


def bucket_types(definition: TableDefinition) -> str:
    """Return the types whose values new buckets hash (see :class:`~trinity.spi.Bucket`)."""
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
    """Return (files in buckets, runs that resolves wrote beside them); (all files, none) for a base without buckets.

    No key is in two files. The runs are the smaller part: a read exchanges them, and not the files in buckets.
    """
    bucketed, runs = [f for f in base if f.bucket], [f for f in base if not f.bucket]
    if runs and well_bucketed(bucketed, definition) and live_rows_in(bucketed) >= live_rows_in(runs):
        return bucketed, runs
    return list(base), []


def _with_buckets_of(files: Sequence[DataFile], definition: TableDefinition, keys: pa.Table) -> list[DataFile]:
    """Drop files whose bucket holds none of the keys, which have logical types.

    Files in no bucket, or hashed by earlier types, stay.
    """
    types = bucket_types(definition)
    counts = {file.bucket.count for file in files if file.bucket and file.bucket.types == types}
    buckets = {count: set(buckets_of(keys, definition.primary_key, count).tolist()) for count in counts}
    return [f for f in files if not f.bucket or f.bucket.types != types or f.bucket.index in buckets[f.bucket.count]]


def prune(
    files: Sequence[DataFile], predicate: Predicate | NotLocal | None, columns: Collection[str] | None = None
) -> list[DataFile]:
    """Return the files that may hold a row for which a predicate is true.

    Args:
        files: candidates. Partition values are exact, statistics are bounds, and a bucket of a keyed table tells
            which keys it may have; a file without any of them stays.
        predicate: AND, OR, comparisons with literals, IN, BETWEEN, IS [NOT] NULL and boolean columns are understood;
            the rest prunes nothing.
        columns: the only columns by which files may be left out; all by default.
    """
    if not isinstance(predicate, Predicate):
        return list(files)
    from trinity.predicates.stats_tests import stats_of

    with deep_recursion():
        test = predicate.stats_test(None if columns is None else frozenset(columns))
        left = [f for f in files if test(stats_of(f))]
        listed = predicate.listed_keys if any(f.bucket for f in left) else None
    return left if listed is None else _with_buckets_of(left, predicate.definition, listed)


def may_share_keys(
    files: Sequence[DataFile], others: Sequence[DataFile], definition: TableDefinition
) -> list[DataFile]:
    """Return the files that may hold a key of a keyed table's other files, by the bounds of the key columns."""
    for name in definition.primary_key:
        if not parse_type(definition.column(name).type).is_floating:
            files = _files_within(files, name, [file.bounds(name) for file in others])
    return list(files)


def _files_within(files: Sequence[DataFile], name: str, wanted: Sequence[tuple[Any, Any] | None]) -> Sequence[DataFile]:
    """Return the files in which a column may have values within the bounds; all files if some bounds are unknown."""
    known = [bounds for bounds in wanted if bounds is not None]
    if len(known) < len(wanted):
        return files
    try:
        low, high = min(bounds[0] for bounds in known), max(bounds[1] for bounds in known)
        return [f for f in files if (bounds := f.bounds(name)) is None or (low <= bounds[1] and high >= bounds[0])]
    except TypeError:  # bounds of more than one type
        return files
