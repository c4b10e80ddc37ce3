"""The fold of whole rows in Spark: the winners of the log, and their join with the base (U1-U8, E2)."""

from __future__ import annotations

import pyarrow as pa

from trinity.hidden import BASE_WINS, DELETED, SINCE
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.fold import beats, is_deleted, winners
from trinity.merge.sql.rows import AnyRows
from trinity.spark_names import DataFrame, F
from trinity.spi import SplitSource
from trinity.syntax.quoting import quoted


def newest_versions(versions: DataFrame, spec: MergeSpec, storage: pa.Schema) -> DataFrame:
    """Return the winner of each key among row versions, in storage form with ``DELETED`` and ``SINCE``."""
    found = winners(spec, versions)
    return found.selectExpr(*_stored(storage), f"{is_deleted(spec, found)} AS {DELETED}", SINCE)


def without_null_keys(versions: AnyRows, splits: SplitSource, spec: MergeSpec) -> AnyRows:
    """Leave out the rows of other writers that have a NULL in their key (K1)."""
    nullable = [k for k in spec.key if splits.definition.external and splits.definition.column(k).nullable]
    return versions.where(" AND ".join(f"{quoted(k)} IS NOT NULL" for k in nullable)) if nullable else versions


def join_with_base(base: DataFrame, newest: DataFrame, spec: MergeSpec, storage: pa.Schema) -> DataFrame:
    """Return the winning version of every key among base rows in storage form and :func:`newest_versions`."""
    matched = " AND ".join(f"b.{quoted(k)} = l.{quoted(k)}" for k in spec.key)
    both = base.alias("b").join(newest.alias("l").hint("merge"), F.expr(matched), "full_outer")
    # a column of its own, so that it is decided once and not for every column
    both = both.selectExpr("*", f"l.{quoted(spec.key[0])} IS NULL OR {beats(spec, 'b', 'l')} AS {BASE_WINS}")
    columns = [f"CASE WHEN {BASE_WINS} THEN b.{name} ELSE l.{name} END AS {name}" for name in _stored(storage)]
    deleted = f"NOT {BASE_WINS} AND coalesce(l.{DELETED}, false) AS {DELETED}"
    return both.selectExpr(*columns, deleted, f"l.{SINCE}")


def _stored(storage: pa.Schema) -> list[str]:
    return [quoted(f.name) for f in storage]
