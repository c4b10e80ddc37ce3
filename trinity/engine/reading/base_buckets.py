"""The buckets of a compacted base, one sorted file for each part of the key space (:class:`~trinity.spi.Bucket`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from trinity.engine.reading.arrow_keys import compared_alike
from trinity.engine.reading.literals import literal_value
from trinity.engine.reading.spark_hash import buckets_of
from trinity.spark_tree import conjuncts
from trinity.spi import DataFile, TableDefinition

__all__ = ["bucket_types", "layers", "well_bucketed", "with_buckets_of"]

_MOST_KEYS: Final = 10_000
"""Keys of a predicate whose buckets are looked for: more are in all of them."""


def bucket_types(definition: TableDefinition) -> str:
    """The types by which buckets are hashed now (see :class:`~trinity.spi.Bucket`)."""
    return ";".join(definition.column(k).type for k in definition.primary_key)


def well_bucketed(files: Sequence[DataFile], definition: TableDefinition) -> int | None:
    """The number of buckets when there is exactly one file for each non-empty bucket, else None."""
    buckets = [f.bucket for f in files if f.bucket]
    layouts = {(b.count, b.types) for b in buckets}
    if len(buckets) != len(files) or not files or len(layouts) != 1 or buckets[0].types != bucket_types(definition):
        return None
    return buckets[0].count if len({b.index for b in buckets}) == len(buckets) else None


def layers(base: Sequence[DataFile], definition: TableDefinition) -> tuple[list[DataFile], list[DataFile]]:
    """(files in buckets, one for each; runs beside them that resolves have written); all and none without buckets.

    No key is in two files. The runs are the smaller part, so that a read exchanges them and not the others.
    """
    inside, beside = [f for f in base if f.bucket], [f for f in base if not f.bucket]
    larger = sum(f.live_rows for f in inside) >= sum(f.live_rows for f in beside)
    if beside and larger and well_bucketed(inside, definition):
        return inside, beside
    return list(base), []


def with_buckets_of(
    files: Sequence[DataFile], definition: TableDefinition, tree: exp.Expr, timezone: Callable[[], str]
) -> list[DataFile]:
    """The files but for those in buckets that have none of the keys which a predicate lists.

    A predicate lists keys when it compares every key column with literals, by ``=`` or IN that AND joins.

    Args:
        files: candidates. Those in no bucket, or hashed by earlier types, stay.
        definition: a keyed table.
        tree: the predicate over bare column names.
        timezone: see :func:`~trinity.engine.reading.literals.literal_value`.
    """
    types = bucket_types(definition)
    counts = {file.bucket.count for file in files if file.bucket and file.bucket.types == types}
    keys = _keys(definition, tree, timezone) if counts else None
    if keys is None:
        return list(files)
    held = {count: set(buckets_of(keys, definition.primary_key, count).tolist()) for count in counts}
    return [f for f in files if not f.bucket or f.bucket.types != types or f.bucket.index in held[f.bucket.count]]


def _keys(definition: TableDefinition, tree: exp.Expr, timezone: Callable[[], str]) -> pa.Table | None:
    """The keys that a predicate lists; None where it does not, or where it is not certain what Spark compares."""
    key = definition.primary_key
    if not compared_alike(definition, key):
        return None
    listed = dict[str, list[Any]]()
    for part in conjuncts(tree):
        name, literals = _listed(part)
        if name.lower() in (k.lower() for k in key):
            column = definition.column(name)
            listed.setdefault(column.name, [literal_value(v, column.type, timezone) for v in literals])
    if set(listed) != set(key) or any(None in values for values in listed.values()):
        return None
    every = list(itertools.islice(itertools.product(*(listed[k] for k in key)), _MOST_KEYS + 1))
    schema = pa.schema([definition.column(k).to_arrow() for k in key])
    try:
        return pa.table(list(zip(*every, strict=True)), schema) if len(every) <= _MOST_KEYS else None
    except (pa.ArrowException, OverflowError):  # a value that no key has, as 2 ** 70 for a BIGINT
        return None


def _listed(part: exp.Expr) -> tuple[str, Sequence[exp.Expr]]:
    """(a column, the expressions one of which it equals); no name for another predicate."""
    if isinstance(part, exp.In) and isinstance(part.this, exp.Column) and part.expressions:
        return part.this.name, part.expressions
    if isinstance(part, exp.EQ):
        for column, value in ((part.left, part.right), (part.right, part.left)):
            if isinstance(column, exp.Column):
                return column.name, [value]
    return "", []
