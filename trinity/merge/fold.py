"""The deduplicate fold as Spark columns (U1-U8). Needs no Python worker."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trinity.merge.spec import MergeSpec
from trinity.spi import ROW_KIND

__all__ = ["ARRIVAL", "SINCE", "beats", "freshest_first", "is_deleted", "retained", "winners"]

ARRIVAL: Final = "_trinity_arrival"
"""BIGINT: place of a row version in the arrival order of one read; larger is later."""

SINCE: Final = "_trinity_since"
"""BIGINT, in sidecar files: when compaction put the tombstone aside, milliseconds since the epoch (U4)."""

_RANK: Final = "_trinity_rank"


def is_deleted(spec: MergeSpec, of: DataFrame) -> Column:
    """True, never NULL, where a winning row means that its key is deleted (U3, U6, U8)."""
    marks = [F.lit(False)]
    if spec.tombstone:
        column = of[spec.tombstone]
        kind = of.schema[spec.tombstone].dataType.typeName()
        if kind == "boolean":
            marks.append(column)
        elif spec.tombstone_value is not None:
            marks.append(column == F.lit(spec.tombstone_value))
        else:
            marks.append(column.isNotNull())
    if spec.row_kind:
        marks.append(F.rtrim(of[spec.row_kind]).isin("-U", "-D"))
    if spec.hidden_row_kind:
        marks.append(of[ROW_KIND] == 3)
    found = marks[-1]
    for mark in marks[:-1]:
        found = found | mark
    return F.coalesce(found, F.lit(False))


def freshest_first(spec: MergeSpec) -> list[Column]:
    """Sort order of the versions of a key, winner first: watermark, then arrival (K3, K4)."""
    order = [F.asc_nulls_last(c) if spec.descending else F.desc_nulls_last(c) for c in spec.ordering]
    return [*order, F.desc(ARRIVAL)]


def retained(versions: DataFrame, spec: MergeSpec) -> DataFrame:
    """The versions that take part in the fold: all, or the adds only under ``ignore-delete`` (D1)."""
    if not (spec.ignore_delete and spec.row_kind):
        return versions
    return versions.where(~F.coalesce(F.rtrim(versions[spec.row_kind]).isin("-U", "-D"), F.lit(False)))


def winners(versions: DataFrame, spec: MergeSpec) -> DataFrame:
    """The winning version of each key, deleted ones included.

    A window sorts by key first, which is the order that the sort-merge join with the base wants next; the
    same through ``max_by`` would sort twice.
    """
    window = Window.partitionBy(*spec.key).orderBy(*freshest_first(spec))
    ranked = retained(versions, spec).withColumn(_RANK, F.row_number().over(window))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK)


def beats(spec: MergeSpec, earlier: DataFrame, later: DataFrame) -> Column:
    """True where the earlier arrival wins all the same, by a strictly fresher watermark (K3, K4)."""
    wins: Column = F.lit(False)
    for name in reversed(spec.ordering):
        mine, other = earlier[name], later[name]
        fresher = (mine < other) if spec.descending else (mine > other)
        strictly = F.coalesce(fresher, mine.isNotNull() & other.isNull())
        wins = strictly | (mine.eqNullSafe(other) & wins)
    return wins
