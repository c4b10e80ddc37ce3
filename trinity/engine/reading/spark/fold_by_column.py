"""Reads of tables whose engine folds column by column (partial-update, aggregation).

A base row is an added row that came before the log: most tables need nothing else. Where a late row needs more than
the folded values (E3), compaction puts the row versions themselves into the sidecar, and a read folds these and
the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity.engine.reading.files import tiers
from trinity.engine.reading.spark.fold_bounds import packed_orders, small_sums
from trinity.engine.reading.spark.scan import log_scan, plain_scan
from trinity.hidden import ARRIVAL, DELETED, KEPT, SINCE, VISIBLE
from trinity.merge.kernels.bitmap_unions import BITMAP_UNIONS, united_bitmaps
from trinity.merge.row_kinds import FoldKind, StoredKind
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.by_column import ColumnFold, kind_of
from trinity.merge.sql.rows import AnyRows
from trinity.spark_names import DataFrame
from trinity.spi import CARRIED, ROW_KIND, DataFile, SplitSource
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def versions(spark: SparkSession, splits: SplitSource, spec: MergeSpec, *, ordered: bool = False) -> DataFrame:
    """Return the row versions to be folded, with :data:`~trinity.hidden.ARRIVAL`: base, sidecar and log.

    The arrival is the true one if the fold needs it, or ``ordered``.
    """
    # not by buckets: Spark 4.1 believes a union of such rows to be partitioned by key, and then folds halves of a key
    base = needed_base(splits, spec)
    earlier = plain_scan(spark, base, splits.storage) if base else None
    return union_with_base(earlier, later_versions(spark, splits, spec, ordered=ordered), splits, spec)


def later_versions(spark: SparkSession, splits: SplitSource, spec: MergeSpec, *, ordered: bool = False) -> DataFrame:
    """Return the part of :func:`versions` that is in sidecar and log."""
    register_bitmap_unions(spark, spec)
    _, log = tiers(splits.files)
    in_order = ordered or _may_have(splits, ROW_KIND) or not spec.folds_without_order
    rows = log_scan(spark, splits, spec, log, splits.sidecar, ordered=True, arrival=in_order)
    return with_carried(rows, splits)


def union_with_base(base: DataFrame | None, later: DataFrame, splits: SplitSource, spec: MergeSpec) -> DataFrame:
    """Return the row versions to be folded: base rows in storage form, and :func:`later_versions`."""
    if base is not None:
        base = base.selectExpr("*", f"CAST(NULL AS BIGINT) AS {SINCE}")
    return with_base(later, base, splits, spec)


def with_carried(rows: AnyRows, splits: SplitSource) -> AnyRows:
    """Add the column that tells a row's carried columns where it lacks: rows of other engines carry all (P1)."""
    return rows.selectExpr("*", f"CAST(NULL AS STRING) AS {CARRIED}") if splits.definition.external else rows


def needed_base(splits: SplitSource, spec: MergeSpec) -> list[DataFile]:
    """Return the base files that may be folded: none where the sidecar has all versions that they were folded from."""
    return [] if spec.has_all_history else tiers(splits.files)[0]


def with_base(rows: AnyRows, base: AnyRows | None, splits: SplitSource, spec: MergeSpec) -> AnyRows:
    """Return the row versions to be folded.

    Those of log and sidecar have :data:`~trinity.hidden.ARRIVAL`; those of :func:`needed_base` come without it.
    """
    if _may_have(splits, ROW_KIND):
        rows = _folded_first(rows, spec)
    if base is not None:
        rows = rows.unionByName(base.selectExpr("*", f"{_OF_FOLDED}L AS {ARRIVAL}"))
    return _without_kept(rows, spec) if spec.history_changed and splits.sidecar else rows


_OF_FOLDED: Final = -1
"""Arrival of rows that are the fold of others: after those of the sidecar, and before those of the log."""


def _without_kept(rows: AnyRows, spec: MergeSpec) -> AnyRows:
    """Leave out the rows that are the fold of others, if the sidecar has an added row of their key, and so all (E3)."""
    added = f"{ARRIVAL} < {_OF_FOLDED} AND {kind_of(spec, cuts=True)} = {FoldKind.ADD}"
    kept = f"max(IF({added}, 1, 0)) OVER (PARTITION BY {', '.join(map(quoted, spec.key))}) AS {KEPT}"
    return rows.selectExpr("*", kept).where(f"{ARRIVAL} <> {_OF_FOLDED} OR {KEPT} = 0").drop(KEPT)


def _folded_first(rows: AnyRows, spec: MergeSpec) -> AnyRows:
    """Put rows of the log that are the fold of others, which have a row kind of their own, before all other rows.

    They are base rows that another engine rewrote into the log, say. Where no base row is folded they are dropped.
    """
    # the sidecar may have such rows, too, which stay in its own order
    is_folded = f"{ARRIVAL} >= 0 AND {ROW_KIND} <=> {StoredKind.FOLDED}"
    if spec.has_all_history:
        return rows.where(f"NOT ({is_folded})")
    columns = [quoted(name) for name, _ in rows.dtypes if name != ARRIVAL]
    return rows.selectExpr(*columns, f"IF({is_folded}, {_OF_FOLDED}L, {ARRIVAL}) AS {ARRIVAL}")


def folded(rows: AnyRows, splits: SplitSource, spec: MergeSpec) -> AnyRows:
    """Return one row per key of :func:`with_base` in storage form, with ``DELETED`` (True where it is not visible)."""
    fold = column_fold(splits, spec, pack=isinstance(rows, DataFrame))
    found = fold(fold.contributions(rows))
    return found.selectExpr(*[quoted(f.name) for f in splits.storage], f"NOT {VISIBLE} AS {DELETED}")


def column_fold(splits: SplitSource, spec: MergeSpec, *, pack: bool = True) -> ColumnFold:
    """Return the fold. ``pack`` uses the files' bounds, which would make the text of a view hard to understand."""
    carried, kinds = _may_have(splits, CARRIED), _may_have(splits, ROW_KIND)
    fold = ColumnFold(splits.definition, spec, omits=carried, hard_deletes=kinds)
    return replace(fold, orders=packed_orders(splits, spec), small=small_sums(splits, spec)) if pack else fold


def unsupported(splits: SplitSource, spec: MergeSpec, dialect: str) -> dict[str, str]:
    """Return column -> its aggregate function, for functions that the dialect of a merge view lacks."""
    return ColumnFold(splits.definition, spec).not_in(dialect)


def _may_have(splits: SplitSource, column: str) -> bool:
    """Return False when the statistics say that a hidden column is NULL in every row of the log."""
    if splits.definition.external:  # it has no hidden columns
        return False
    known = [(file, file.stats.get(column)) for file in tiers(splits.files)[1]]
    return bool(splits.sidecar) or not all(stats is not None and stats.nulls == file.rows for file, stats in known)


def register_bitmap_unions(spark: SparkSession, spec: MergeSpec) -> None:
    """Register in Spark the functions that unite bitmaps, as far as a table's aggregate functions need them."""
    from pyspark.sql.pandas.functions import arrow_udf

    make: Any = arrow_udf  # its type hints lack functions of arrays
    for name in {f.name for f in spec.functions.values()} & set(BITMAP_UNIONS):
        spark.udf.register(BITMAP_UNIONS[name], make(_union(name), "binary"))


def _union(name: str) -> Callable[[Any], Any]:
    def union(lists: pa.Array) -> pa.Array:
        return united_bitmaps(name, lists)

    union.__annotations__ = {"lists": pa.Array, "return": pa.Array}  # arrow_udf takes the types from annotations
    return union
